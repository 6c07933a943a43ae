"""`memd run` that fails in every way that nobody expects, and each time quotes what it was given."""

import asyncio
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from memd import daemon
from memd.config.reload import Configuration
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Vector
from memd.search import query
from tests.fakes import HashingProvider


class _Gone:
    """Fails when nobody needs it any more."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __del__(self) -> None:
        _fail(self.text)


def _fail(text: str) -> NoReturn:
    raise ValueError(text)


async def _fail_later(text: str) -> NoReturn:
    raise RuntimeError(text)


class Failing(HashingProvider):
    """Does what a question says."""

    async def embed_query(self, text: str) -> Vector:
        loop = asyncio.get_running_loop()
        match text.split(maxsplit=1)[0].lower():
            case "callback":
                loop.call_soon(_fail, text)
            case "task":
                # Nobody waits for it.
                loop.create_task(_fail_later(text), name=text)  # noqa: RUF006
            case "thread":
                threading.Thread(target=_fail, args=(text,), name=text).start()
            case "object":
                _Gone(text)
            case _:
                pass
        return await super().embed_query(text)


def parse(text: str, now: datetime | None = None) -> query.Query:
    """A question, unless it says that a request is to fail."""
    if text.startswith("handler"):
        try:
            _fail(text)
        except ValueError as failure:
            raise KeyError(text) from failure
    return _parse(text, now)


async def follow(_: Configuration) -> NoReturn:
    """Fail as soon as there is a note about a crash, in a task that nothing catches."""
    note = Path(sys.argv[1]).parent / "workspace/memory/crash.md"
    while not (note.exists() and (text := note.read_text("utf-8"))):  # noqa: ASYNC110 - by another process
        await asyncio.sleep(0.02)
    raise LookupError(text)


_parse = query.parse


def choose(_: AgentSettings) -> ProviderChoice:
    """The embedder that fails."""
    return ProviderChoice(Failing(), None)


if __name__ == "__main__":
    query.parse, Configuration.run = parse, follow  # type: ignore[method-assign,assignment]
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
