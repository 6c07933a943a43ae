"""Write the golden frames of this version: python -m tests.client.golden.write."""

import json
from pathlib import Path
from typing import Any

import msgspec

from memd_client import codec
from memd_client.conversation import __version__
from memd_client.messages import Hello
from tests.client.golden.samples import samples

DIRECTORY = Path(__file__).parent
ID = 7  # of every request


def lines() -> list[str]:
    """A JSON document for each message, as the files have them."""
    return [json.dumps(_line(way, message), ensure_ascii=False) for way, message in samples()]


def _line(way: str, message: Any) -> dict[str, Any]:
    match way:
        case "hello":
            assert isinstance(message, Hello)
            payload, limit = codec.encode_hello(message), codec.REQUEST_LIMIT
        case "request":
            payload, limit = codec.encode_request(ID, message), codec.REQUEST_LIMIT
        case _:
            payload, limit = codec.encode_reply(ID, message), codec.REPLY_LIMIT
    frame = codec.encode_frame(payload, limit)
    return {"way": way, "frame": frame.hex(), "means": msgspec.msgpack.decode(payload)}


if __name__ == "__main__":
    (DIRECTORY / f"{__version__}.jsonl").write_text("\n".join(lines()) + "\n", encoding="utf-8")
