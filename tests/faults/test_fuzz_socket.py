"""Any bytes on a connection, any question in a request: an answer or a typed refusal, and the next one is answered."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client import codec
from memd_client.messages import (
    Embed,
    Explain,
    Failure,
    Found,
    Get,
    Hello,
    Reindex,
    Reply,
    Request,
    Search,
    Stop,
    Sync,
    Warm,
)
from tests.awkward import markdown, wire
from tests.awkward.streams import pieces
from tests.faults.house import House, few, housed
from tests.server.stranger import framed

_CODES = {
    "bad_request",
    "unsupported",
    "too_large",
    "unknown_agent",
    "denied",
    "busy",
    "timed_out",
    "unavailable",
    "protocol",
}
_GREETING = framed(wire.GREETING)
_AGENTS = st.sampled_from([None, None, "main", "fresh", "nobody", "", "\0"])
_KEYS = st.sampled_from(
    [
        None,
        None,
        "agent:main:main",
        "agent:main:discord:group:1",
        "agent:main:telegram:direct:1",
        "agent:x:main",
        "main",
        "",
        "agent:",
        ":::",
        "a" * 5000,
    ]
)
_QUESTIONS = markdown.TEXTS | st.sampled_from(
    [
        "anchorword",
        "NEAR(a b)",
        '"',
        "text:*",
        "AND OR NOT",
        "-" * 999,
        "🙂" * 500,
        "的" * 3000,
        "a\0b",
        "'; DROP TABLE chunks",
        "x " * 9000,
    ]
)
_FIELDS = {"agent": _AGENTS, "session_key": _KEYS}
_ASKED = {
    "query": _QUESTIONS,
    "max_results": st.none() | wire.NUMBERS,
    "min_score": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "source": st.sampled_from([None, "memory", "sessions"]),
}
_PATHS = (
    st.sampled_from(
        [
            "memory/anchor.md",
            "sessions/chats/a.jsonl",
            "../x",
            "/etc/hostname",
            "memory/\0",
            "",
            "memory/",
            "a" * 5000,
            "\\",
        ]
    )
    | wire.WORDS
)
_REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(Search, max_chars=st.none() | wire.NUMBERS, **_FIELDS, **_ASKED),
    st.builds(Explain, **_FIELDS, **_ASKED),
    st.builds(
        Get,
        path=_PATHS,
        start_line=wire.NUMBERS,
        lines=st.none() | wire.NUMBERS,
        max_chars=st.none() | wire.NUMBERS,
        **_FIELDS,
    ),
    st.builds(Sync, force=st.booleans(), wait=st.booleans(), patience_ms=st.none() | wire.NUMBERS, **_FIELDS),
    st.builds(Warm, agent=_AGENTS, session_key=_KEYS.map(str)),
    st.builds(Reindex, dry_run=st.just(True), **_FIELDS),
    st.builds(Embed, action=st.sampled_from(["resume", "confirm", "batch_on"]), **_FIELDS),
    # The owner's ends the daemon.
    st.builds(Stop, session_key=_KEYS.filter(lambda key: key is not None)),
    wire.REQUESTS.filter(lambda one: not isinstance(one, Reindex | Embed | Stop)),
)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this module, with a note in it."""
    with housed() as one:
        yield one


@given(asked=_REQUESTS)
def test_any_request_is_answered(house: House, asked: Request) -> None:
    """Whatever its fields hold, the reply is an answer or says what is wrong with the request, and is none of a bug."""

    async def ask() -> tuple[Reply, Reply]:
        reader, writer = await asyncio.open_unix_connection(str(house.socket))
        try:
            writer.write(_GREETING + framed(codec.encode_request(7, asked)))
            writer.write(framed(codec.encode_request(8, Search(query="anchorword", agent="main"))))
            await _read(reader)
            told: dict[int, Reply] = {}
            while len(told) < 2:
                number, reply = codec.decode_reply(await _read(reader))
                told[number] = reply
            return told[7], told[8]
        finally:
            writer.close()

    reply, after = house.do(ask())
    if isinstance(asked, Stop):
        assert isinstance(reply, Failure)
        assert reply.code == "denied"
    if isinstance(reply, Failure):
        assert reply.code in _CODES, reply
        assert len(reply.message) < 2000
    assert isinstance(after, Found)
    assert after.results


@few
@given(stream=wire.STREAMS, greets=st.booleans(), data=st.data())
def test_any_bytes_end_in_replies_alone(
    house: House, stream: bytes, greets: bool, data: st.DataObject
) -> None:
    """Whatever comes, in whatever pieces: whole replies of the protocol come back, and the next connection works."""
    cut = data.draw(pieces(_GREETING * greets + stream))

    async def say() -> bytes:
        reader, writer = await asyncio.open_unix_connection(str(house.socket))
        heard = b""
        try:
            for piece in cut:
                writer.write(piece)
                await writer.drain()
            writer.write_eof()
            while more := await reader.read(1 << 16):
                heard += more
        except (ConnectionResetError, BrokenPipeError):  # it was refused before it was through
            pass
        finally:
            writer.close()
        return heard

    heard = codec.FrameReader(codec.REPLY_LIMIT)
    heard.feed(house.do(say()))
    payloads = list(iter(heard.next_frame, None))
    for payload in payloads:
        reply = _message(payload)
        assert not isinstance(reply, Failure) or reply.code in _CODES, reply
    assert house.do(house.client.search("anchorword", agent="main")).results


async def _read(reader: asyncio.StreamReader) -> bytes:
    length = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(length)


def _message(payload: bytes) -> Hello | Reply:
    try:
        return codec.decode_hello(payload)
    except codec.InvalidPayload:
        return codec.decode_reply(payload)[1]
