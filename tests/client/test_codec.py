import math
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.codec import (
    REPLY_LIMIT,
    REQUEST_LIMIT,
    FrameReader,
    FrameTooLarge,
    InvalidMessage,
    InvalidPayload,
    Unencodable,
    decode_hello,
    decode_reply,
    decode_request,
    encode_frame,
    encode_hello,
    encode_reply,
    encode_request,
)
from memd_client.messages import (
    AgentStatus,
    AgentTags,
    BackendFallback,
    BatchStatus,
    ChunkList,
    Chunks,
    Degraded,
    DuplicateList,
    Duplicates,
    Embed,
    Embedding,
    EmbedReport,
    Explain,
    ExplainedHit,
    Explanation,
    Failure,
    FileList,
    Files,
    Found,
    Get,
    Health,
    Hello,
    Hit,
    ListedChunk,
    ListedFile,
    ListedTurn,
    NameCount,
    Note,
    NoteLines,
    NotePair,
    Pass,
    QmdStatus,
    RedactedText,
    RedactText,
    Reindex,
    ReindexReport,
    Reload,
    Reloaded,
    Reply,
    Request,
    Search,
    Status,
    StatusReport,
    Stop,
    Stopping,
    Sync,
    SyncReport,
    Tags,
    TagsReport,
    TurnList,
    Turns,
    VectorHealth,
    Vectors,
    Warm,
)
from tests.awkward import wire
from tests.awkward.streams import pieces
from tests.awkward.wire import STREAMS
from tests.bounds import shipped
from tests.table import table
from tests.work import calls, peak_bytes

pack = msgspec.msgpack.encode

DEEP = b"\x91" * 900_000 + b"\xc0"

# What clients of any age send. A later version may add lines here, and may never change one.
GOLDEN: list[tuple[Request, str]] = [
    (
        Search(query="which database?"),
        "920182a474797065a6736561726368a57175657279af77686963682064617461626173653f",
    ),
    (
        Search(
            query="数据库",
            max_results=50,
            min_score=0.5,
            source="sessions",
            agent="work",
            session_key="agent:work:main",
        ),
        (
            "920187a474797065a6736561726368a57175657279a9e695b0e68daee5ba93ab6d61785f726573756c747332a96d696e5f73636f7265"
            "cb3fe0000000000000a6736f75726365a873657373696f6e73a56167656e74a4776f726bab73657373696f6e5f6b6579af6167656e74"
            "3a776f726b3a6d61696e"
        ),
    ),
    (
        Search(
            query="q",
            max_results=3,
            min_score=0.5,
            source="memory",
            agent="main",
            session_key="agent:main:main",
            max_chars=2000,
            now="2026-02-09",
        ),
        (
            "920189a474797065a6736561726368a57175657279a171ab6d61785f726573756c747303a96d696e5f73636f7265cb3fe00000000000"
            "00a6736f75726365a66d656d6f7279a56167656e74a46d61696eab73657373696f6e5f6b6579af6167656e743a6d61696e3a6d61696e"
            "a96d61785f6368617273cd07d0a36e6f77aa323032362d30322d3039"
        ),
    ),
    (
        Search(
            query="q",
            max_results=3,
            min_score=0.5,
            source="memory",
            agent="main",
            session_key="agent:main:main",
            max_chars=2000,
            now="2026-02-09",
            strict=True,
            mode="vector",
            since="last week",
            until="2026-02-09",
            sort="time",
            only=["tag:家", "path:memory/**"],
        ),
        (
            "92018fa474797065a6736561726368a57175657279a171ab6d61785f726573756c747303a96d696e5f73636f7265cb3fe00000000000"
            "00a6736f75726365a66d656d6f7279a56167656e74a46d61696eab73657373696f6e5f6b6579af6167656e743a6d61696e3a6d61696e"
            "a96d61785f6368617273cd07d0a36e6f77aa323032362d30322d3039a6737472696374c3a46d6f6465a6766563746f72a573696e6365"
            "a96c617374207765656ba5756e74696caa323032362d30322d3039a4736f7274a474696d65a46f6e6c7992a77461673ae5aeb6ae7061"
            "74683a6d656d6f72792f2a2a"
        ),
    ),
    (Get(path="MEMORY.md"), "920182a474797065a3676574a470617468a94d454d4f52592e6d64"),
    (
        Get(path="memory/a.md", start_line=300, lines=20, agent="main", session_key="main", max_chars=2000),
        (
            "920187a474797065a3676574a470617468ab6d656d6f72792f612e6d64aa73746172745f6c696e65cd012ca56c696e657314a5616765"
            "6e74a46d61696eab73657373696f6e5f6b6579a46d61696ea96d61785f6368617273cd07d0"
        ),
    ),
    (Sync(), "920181a474797065a473796e63"),
    (
        Sync(agent="main", force=True, wait=False, vectors=False, patience_ms=9300),
        (
            "920186a474797065a473796e63a56167656e74a46d61696ea5666f726365c3a477616974c2a7766563746f7273c2ab70617469656e63"
            "655f6d73cd2454"
        ),
    ),
    (
        Sync(
            agent="work",
            force=True,
            wait=False,
            vectors=False,
            patience_ms=9500,
            session_key="agent:work:main",
        ),
        (
            "920187a474797065a473796e63a56167656e74a4776f726ba5666f726365c3a477616974c2a7766563746f7273c2ab70617469656e63"
            "655f6d73cd251cab73657373696f6e5f6b6579af6167656e743a776f726b3a6d61696e"
        ),
    ),
    (Reindex(), "920181a474797065a77265696e646578"),
    (
        Reindex(agent="work", force=True, dry_run=True, session_key="agent:work:main"),
        (
            "920185a474797065a77265696e646578a56167656e74a4776f726ba5666f726365c3a76472795f72756ec3ab73657373696f6e5f6b65"
            "79af6167656e743a776f726b3a6d61696e"
        ),
    ),
    (
        Reindex(agent="main", force=True, dry_run=True),
        "920184a474797065a77265696e646578a56167656e74a46d61696ea5666f726365c3a76472795f72756ec3",
    ),
    (Explain(query="why?"), "920182a474797065a76578706c61696ea57175657279a47768793f"),
    (
        Explain(
            query="why?",
            max_results=1,
            min_score=0.25,
            source="memory",
            agent="main",
            session_key="main",
            now="2026-02-09",
        ),
        (
            "920188a474797065a76578706c61696ea57175657279a47768793fab6d61785f726573756c747301a96d696e5f73636f7265cb3fd000"
            "0000000000a6736f75726365a66d656d6f7279a56167656e74a46d61696eab73657373696f6e5f6b6579a46d61696e"
            "a36e6f77aa323032362d30322d3039"
        ),
    ),
    (
        Explain(
            query="q",
            max_results=3,
            min_score=0.5,
            source="memory",
            agent="main",
            session_key="agent:main:main",
            now="2026-02-09",
            since="last week",
            until="2026-02-09",
            sort="time",
            only=["tag:家", "path:memory/**"],
        ),
        (
            "92018ca474797065a76578706c61696ea57175657279a171ab6d61785f726573756c747303a96d696e5f73636f7265cb3fe000000000"
            "0000a6736f75726365a66d656d6f7279a56167656e74a46d61696eab73657373696f6e5f6b6579af6167656e743a6d61696e3a6d6169"
            "6ea36e6f77aa323032362d30322d3039a573696e6365a96c617374207765656ba5756e74696caa323032362d30322d3039a4736f7274"
            "a474696d65a46f6e6c7992a77461673ae5aeb6ae706174683a6d656d6f72792f2a2a"
        ),
    ),
    (Warm(session_key="main"), "920182a474797065a47761726dab73657373696f6e5f6b6579a46d61696e"),
    (
        Warm(session_key="main", agent="main"),
        "920183a474797065a47761726dab73657373696f6e5f6b6579a46d61696ea56167656e74a46d61696e",
    ),
    (RedactText(text="x"), "920182a474797065a6726564616374a474657874a178"),
    (
        RedactText(text="x", agent="work", session_key="agent:work:main"),
        "920184a474797065a6726564616374a474657874a178a56167656e74a4776f726bab73657373696f6e5f6b6579af6167656e743a776f726b3a6d61696e",
    ),
    (Reload(), "920181a474797065a672656c6f6164"),
    (Reload(session_key="main"), "920182a474797065a672656c6f6164ab73657373696f6e5f6b6579a46d61696e"),
    (Files(), "920181a474797065a566696c6573"),
    (
        Files(
            agent="work",
            source="sessions",
            folder="a/",
            since="7d",
            until="today",
            only=["tag:家"],
            sort="time",
            after="0 a",
            max_files=2,
            session_key="main",
        ),
        (
            "92018ba474797065a566696c6573a56167656e74a4776f726ba6736f75726365a873657373696f6e73a6666f6c646572a2612fa573696e6365a23764a5756e74696ca5746f646179a46f6e6c7991a77461673ae5aeb6a4736f7274a474696d65a56166746572a3302061a96d61785f66696c657302ab73657373696f6e5f6b6579a46d61696e"
        ),
    ),
    (Chunks(path="a.md"), "920182a474797065a66368756e6b73a470617468a4612e6d64"),
    (
        Chunks(path="a.md", agent="work", skip=3, max_chunks=4, session_key="main"),
        (
            "920186a474797065a66368756e6b73a470617468a4612e6d64a56167656e74a4776f726ba4736b697003aa6d61785f6368756e6b7304ab73657373696f6e5f6b6579a46d61696e"
        ),
    ),
    (Turns(path="sessions/s"), "920182a474797065a57475726e73a470617468aa73657373696f6e732f73"),
    (
        Turns(path="sessions/s", agent="work", skip=3, max_turns=4, session_key="main"),
        (
            "920186a474797065a57475726e73a470617468aa73657373696f6e732f73a56167656e74a4776f726ba4736b697003a96d61785f7475726e7304ab73657373696f6e5f6b6579a46d61696e"
        ),
    ),
    (Duplicates(), "920181a474797065aa6475706c696361746573"),
    (
        Duplicates(agent="work", session_key="main"),
        "920183a474797065aa6475706c696361746573a56167656e74a4776f726bab73657373696f6e5f6b6579a46d61696e",
    ),
    (Tags(), "920181a474797065a474616773"),
    (
        Tags(agent="work", session_key="agent:work:main"),
        "920183a474797065a474616773a56167656e74a4776f726bab73657373696f6e5f6b6579af6167656e743a776f726b3a6d61696e",
    ),
    (Stop(), "920181a474797065a473746f70"),
    (Stop(session_key="main"), "920182a474797065a473746f70ab73657373696f6e5f6b6579a46d61696e"),
    (Embed(action="pause"), "920182a474797065a5656d626564a6616374696f6ea57061757365"),
    (
        Embed(action="batch_on", agent="work", session_key="agent:work:main"),
        (
            "920184a474797065a5656d626564a6616374696f6ea862617463685f6f6ea56167656e74a4776f726bab73657373696f6e5f6b6579af"
            "6167656e743a776f726b3a6d61696e"
        ),
    ),
    (Status(), "920181a474797065a6737461747573"),
    (Status(agent="main"), "920182a474797065a6737461747573a56167656e74a46d61696e"),
    (
        Status(agent="work", session_key="agent:work:main"),
        (
            "920183a474797065a6737461747573a56167656e74a4776f726bab73657373696f6e5f6b6579af6167656e743a776f726b3a6d61696e"
        ),
    ),
]

FOUND = Found(
    results=[
        Hit(
            path="MEMORY.md",
            start_line=3,
            end_line=9,
            score=0.61,
            snippet="选了 PostgreSQL\n",
            citation="MEMORY.md#L3-L9",
        )
    ],
    mode="keyword",
    degraded=[Degraded(part="vector", reason="no extension")],
)
REPLIES: list[Reply] = [
    Found(),
    FOUND,
    Note(path="memory/today.md", missing=True),
    Note(path="a.md", text="one\ntwo\0three", start_line=5, end_line=6, next_line=7),
    SyncReport(),
    SyncReport(files=3, vectors="waiting", waiting_chunks=12, reason="the provider does not answer"),
    SyncReport(missing=["/home/ann/notes"]),
    ReindexReport(agents=["main"], dry_run=True, tokens=12_345_678),
    Explanation(
        found=FOUND,
        terms=["数", "据"],
        candidates=[
            ExplainedHit(path="a.md", start_line=1, end_line=2, score=0.1, window=(1, 2), cut="min_score")
        ],
    ),
    RedactedText(
        text="[REDACTED:token]", counts={"token": 1}, agent="main", workspace="/w", timezone="Asia/Shanghai"
    ),
    Reloaded(config="/c.toml", changed=["agents.main.scope.default"]),
    Reloaded(error="config.toml:1: no"),
    Stopping(pid=4711),
    FileList(
        agent="main",
        files=[ListedFile(path="a.md", size=7, tags=["家"])],
        folders={"memory/": 2},
        total=3,
        next="0 a.md",
    ),
    ChunkList(
        path="a.md",
        chunks=[ListedChunk(start_line=1, end_line=9, text="t", windows=[(1, 4), (5, 9)])],
        redacted={"token": 1},
    ),
    TurnList(
        path="s",
        turns=[ListedTurn(role="user", at=1.5, start_line=1, end_line=1, text="t", cut=3)],
        total=2,
        next=1,
    ),
    DuplicateList(
        agent="main",
        pairs=[
            NotePair(
                why="copy",
                one=NoteLines(path="a.md", start_line=1, end_line=2),
                other=NoteLines(path="家.md"),
                by="家",
            )
        ],
        more=True,
    ),
    TagsReport(agents={"main": AgentTags(tags=[NameCount(name="家", notes=2)], omitted=1)}),
    EmbedReport(
        agents={"main": Embedding(state="waiting_for_confirmation", chunks=30_000, tokens=12_000_000)}
    ),
    StatusReport(
        version="0.1.0",
        protocol=2,
        pid=1,
        uptime_s=1.5,
        socket="/run/memd.sock",
        config=None,
        agents={
            "main": AgentStatus(
                workspace="/w",
                backend="builtin",
                provider="local",
                model="m",
                files=1,
                chunks=2,
                vectors=Vectors(done=1, waiting=1, eta_s=0.25),
                dirty=0,
                skipped={"too_large": 1},
                keyword=Health(),
                vector=VectorHealth(ok=False, reason="broken"),
                watcher=Health(),
                provider_health=Health(),
                store_bytes=4096,
                last_pass=Pass(at=1.5, took_s=0.5),
                embedding=Embedding(state="paused", batch=BatchStatus(enabled=True, failures=1, at=1.5)),
                backend_fallback=BackendFallback(from_="qmd", reason="gone", since=1.5, retry_at=61.5),
                qmd=QmdStatus(
                    command="/usr/bin/qmd", version="2.8.3", collections=["memory"], last_update=1.5
                ),
            )
        },
    ),
    Failure(code="busy", message="later"),
]


def test_golden_hello() -> None:
    """The greeting is a bare map, and its bytes are those that PROTOCOL.md has."""
    wire = bytes.fromhex("83a474797065a568656c6c6fa870726f746f636f6c02a776657273696f6ea5302e312e30")
    assert encode_hello(Hello(protocol=2, version="0.1.0")) == wire
    assert decode_hello(wire) == Hello(protocol=2, version="0.1.0")


@table(("request_", "wire"), GOLDEN)
def test_golden_requests(request_: Request, wire: str) -> None:
    """The bytes of every request are those of the first version, in both directions."""
    assert encode_request(1, request_).hex() == wire
    assert decode_request(bytes.fromhex(wire)) == (1, request_)


def test_golden_is_complete() -> None:
    """Every request stands among the golden bytes with every field set and with its defaults."""
    for kind in get_args(Request):
        ours = [request_ for request_, _ in GOLDEN if isinstance(request_, kind)]
        fields = kind.__struct_fields__
        given = zip(reversed(fields), reversed(kind.__struct_defaults__), strict=False)
        defaults = {name: getattr(each, "factory", lambda each=each: each)() for name, each in given}
        assert any(all(getattr(one, field) != default for field, default in defaults.items()) for one in ours)
        assert any(all(getattr(one, field) == default for field, default in defaults.items()) for one in ours)


@table("reply", REPLIES)
def test_replies_come_back(reply: Reply) -> None:
    """Every reply is what it was after a trip over the wire, under its id."""
    assert decode_reply(encode_reply(64, reply)) == (64, reply)


def test_every_reply_is_tried() -> None:
    """No kind of reply is left out of the trip above."""
    assert {type(reply) for reply in REPLIES} == set(get_args(Reply))


def test_id_zero_is_the_daemons() -> None:
    """A reply may have the id 0, a request may not."""
    assert decode_reply(encode_reply(0, Failure(code="protocol", message="no")))[0] == 0
    with pytest.raises(InvalidPayload):
        decode_request(encode_request(0, Status()))


@pytest.mark.parametrize("request_id", [1, 2**31, 2**63, 2**64 - 1])
def test_ids_of_64_bits(request_id: int) -> None:
    """A client may choose any id above 0 that msgpack can carry."""
    assert decode_request(encode_request(request_id, Status())) == (request_id, Status())


GARBAGE = [
    b"",
    b"\xc1",
    b"GET / HTTP/1.1\r\n\r\n",
    b'{"type":"status"}',
    pack([]),
    pack([1]),
    pack({}),
    pack(None),
    pack("status"),
    pack({"type": "status"}),
    pack(["1", {"type": "status"}]),
    pack([None, {"type": "status"}]),
    pack([1.0, {"type": "status"}]),
    pack([True, {"type": "status"}]),
    pack([-1, {"type": "status"}]),
    pack([{"type": "status"}, 1]),
    pack([1, {"type": "status"}]) + b"\xc0",  # something after the end
    pack([1, {"type": "status"}])[:-1],
    b"\xdd\xff\xff\xff\xff\x01",  # an array of four thousand million items that are not there
    b"\x92\x01\xc6\xff\xff\xff\xff",
    b"\x92\x01" + DEEP,
    b"\x92\x01\x82\xa4type\xa6status\xa1x" + DEEP,
]


@table("payload", GARBAGE)
def test_garbage(payload: bytes) -> None:
    """What is no envelope with an id cannot be answered, in either direction."""
    with pytest.raises(InvalidPayload):
        decode_request(payload)
    with pytest.raises(InvalidPayload):
        decode_reply(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        pack([1, {"type": "status"}]),
        pack({"type": "status"}),
        pack({"type": "hello"}),
        pack({"type": "hello", "protocol": "1", "version": "1"}),
        pack({"type": "hello", "protocol": True, "version": "1"}),
        b"\x83\xa4type\xa5hello\xa8protocol\x01\xa7version\xa1\xff",
        DEEP,
    ],
)
def test_no_hello(payload: bytes) -> None:
    """A first payload that is no greeting is garbage."""
    with pytest.raises(InvalidPayload):
        decode_hello(payload)


def test_hello_of_a_later_version() -> None:
    """A greeting with fields that are unknown here is understood."""
    later = pack({"new": [1], "type": "hello", "protocol": 2, "version": "9", "features": ["x"]})
    assert decode_hello(later) == Hello(protocol=2, version="9")


@table(
    ("body", "code", "message"),
    [
        ({"type": "teleport"}, "unsupported", "'teleport'"),
        ({"type": "Search", "query": "x"}, "unsupported", "'Search'"),
        ({"type": ""}, "unsupported", "''"),
        ({"type": "found"}, "unsupported", "'found'"),  # a reply is no request
        ({"type": "hello", "protocol": 2, "version": "1"}, "unsupported", "'hello'"),
        ({"type": "x" * 100_000}, "unsupported", "xxx..."),
        ({"query": "x"}, "bad_request", "`type`"),
        ({"type": 5}, "bad_request", "$.type"),
        ({"type": None}, "bad_request", "$.type"),
        ({}, "bad_request", "`type`"),
        ({"type": "search"}, "bad_request", "`query`"),
        ({"type": "search", "query": 5}, "bad_request", "$.query"),
        ({"type": "search", "query": b"bytes"}, "bad_request", "$.query"),
        ({"type": "search", "query": None}, "bad_request", "$.query"),
        ({"type": "search", "query": "x", "max_results": "6"}, "bad_request", "$.max_results"),
        ({"type": "search", "query": "x", "max_results": 6.5}, "bad_request", "$.max_results"),
        ({"type": "search", "query": "x", "max_results": True}, "bad_request", "$.max_results"),
        ({"type": "search", "query": "x", "source": "attic"}, "bad_request", "$.source"),
        ({"type": "search", "query": "x", "source": "y" * 100_000}, "bad_request", "yyy..."),
        ({"type": "search", "query": "x", "min_score": math.nan}, "bad_request", "$.min_score"),
        ({"type": "explain", "query": "x", "min_score": math.inf}, "bad_request", "$.min_score"),
        ({"type": "explain", "query": "x", "min_score": -math.inf}, "bad_request", "$.min_score"),
        ({"type": "sync", "force": 1}, "bad_request", "$.force"),
        ({"type": "get", "path": ["a"]}, "bad_request", "$.path"),
        ({1: 2}, "bad_request", "key"),
        ([], "bad_request", "object"),
        (["search"], "bad_request", "object"),
        (None, "bad_request", "object"),
        (7, "bad_request", "object"),
        ("search", "bad_request", "object"),
        (msgspec.msgpack.Ext(5, b"x"), "bad_request", "object"),
        (msgspec.Raw(b"\x82\xa4type\xa6search\xa5query\xa1\xff"), "bad_request", "UTF-8"),
        (msgspec.Raw(b"\x82\xa4type\xa6search\xa5query\xa3\xed\xa0\x80"), "bad_request", "UTF-8"),  # U+D800
        (msgspec.Raw(b"\x81\xa4type\xa1\xff"), "bad_request", "UTF-8"),
        (
            msgspec.Raw(b"\x83\xa4type\xa6search\xa5query\xa1x\xa4type\xa4sync"),
            "bad_request",
            "$.type",
        ),  # twice
    ],
)
def test_not_understood(body: Any, code: str, message: str) -> None:
    """A request that is wrong in a sound envelope keeps its id; the complaint names the place and is short."""
    with pytest.raises(InvalidMessage) as caught:
        decode_request(pack([9, body]))
    assert (caught.value.request_id, caught.value.code) == (9, code)
    assert message in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        ({"type": "search", "query": "x", "later": {"a": [1, None]}}, Search(query="x")),
        ({"later": 1, "query": "x", "type": "search"}, Search(query="x")),
        ({"type": "search", "query": "x", "agent": None}, Search(query="x")),
        ({"type": "search", "query": "x", "min_score": 1}, Search(query="x", min_score=1.0)),
        (
            {"type": "search", "query": "x", "max_results": 2**64 - 1},
            Search(query="x", max_results=2**64 - 1),
        ),
        ({"type": "search", "query": "a\0b\U0001f600"}, Search(query="a\0b\U0001f600")),
        (msgspec.Raw(b"\x83\xa4type\xa6search\xa5query\xa1x\xa1\xff\x01"), Search(query="x")),
    ],
)
def test_tolerance(body: Any, request_: Request) -> None:
    """Unknown fields are skipped, whatever they hold; a nil is an absent option; an integer is a float."""
    assert decode_request(pack([9, body])) == (9, request_)


def test_longer_envelope() -> None:
    """A later version may put more into the envelope."""
    assert decode_request(pack([9, {"type": "status"}, "trace", 5])) == (9, Status())


def test_reply_not_understood() -> None:
    """A reply of a later version keeps its id, so that its asker can be told."""
    with pytest.raises(InvalidMessage) as caught:
        decode_reply(pack([9, {"type": "hologram"}]))
    assert (caught.value.request_id, caught.value.code) == (9, "unsupported")
    with pytest.raises(InvalidMessage) as caught:
        decode_reply(pack([9, {"type": "note", "path": 5}]))
    assert (caught.value.request_id, caught.value.code) == (9, "bad_request")


def test_announced_length_takes_no_memory() -> None:
    """A reply that announces more hits than it holds is refused before room is made for them."""
    with pytest.raises(InvalidPayload):
        decode_reply(b"\x92\x01\x82\xa4type\xa5found\xa7results\xdd\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Search(query="half \ud800"), "surrogate"),
        (Search(query="x", max_results=2**70), "int"),
        (Get(path=object()), "object"),  # type: ignore[arg-type]
    ],
)
def test_unsendable(request_: Request, message: str) -> None:
    """A value that msgpack cannot carry is refused in words, before anything is sent."""
    with pytest.raises(Unencodable, match=message):
        encode_request(1, request_)


def test_unsendable_nesting() -> None:
    """So is a value that is nested without end."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(Unencodable, match="recursion"):
        encode_request(1, Search(query=endless))  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_noise(payload: bytes) -> None:
    """Any bytes give a message or one of the typed errors, whoever decodes them."""
    for decode in (decode_hello, decode_request, decode_reply):
        with suppress(InvalidPayload, InvalidMessage):
            assert decode(payload)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from([kind.__struct_config__.tag for kind in (*get_args(Request), *get_args(Reply))]),
    st.dictionaries(
        st.sampled_from(["query", "path", "agent", "lines", "min_score", "results"]), st.text() | st.floats()
    ),
)
def test_structured_noise(value: Any, tag: str, fields: dict[str, Any]) -> None:
    """Well-formed msgpack of any shape gives a message under its id, or a typed error with that id."""
    for body in (value, {**fields, "type": tag}, {"type": value}):
        for decode in (decode_request, decode_reply):
            try:
                request_id, _ = decode(pack([5, body]))
            except InvalidMessage as error:
                request_id = error.request_id
            assert request_id == 5


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.integers(0, 2**63),
    st.none() | st.floats(0, 1),
)
def test_searches_come_back(query: str, max_results: int | None, min_score: float | None) -> None:
    """Whatever is asked is what is heard."""
    request_ = Search(query=query, max_results=max_results, min_score=min_score)
    assert decode_request(encode_request(1, request_)) == (1, request_)


def an_array(count: int, member: bytes) -> bytes:
    """A msgpack array of equal members, as bytes."""
    return b"\xdd" + count.to_bytes(4, "big") + member * count


@pytest.mark.parametrize(
    "body",
    [
        b"\x81\xa4type" + an_array(100_000, b"\x80"),
        b"\x81\xa4type" + an_array(100_000, b"\x90"),
        b"\x82\xa4type\xa6status\xa5later" + an_array(100_000, b"\x80"),
        b"\x82\xa4type\xa6search\xa5query" + an_array(100_000, b"\x80"),
        b"\x82\xa4type\xa5found\xa7results" + an_array(100_000, b"\x80"),
        b"\x82\xa4type\xa5found\xa7results"
        + an_array(3_000, pack({"path": "", "start_line": 1, "end_line": 1, "score": 1, "snippet": ""})),
        pack({"type": "search", "query": "字" * 100_000}),
        pack({"type": "x" * 300_000}),
        pack({str(n): [] for n in range(50_000)}),
        an_array(100_000, b"\x80"),
    ],
)
def test_memory_is_that_of_the_message(body: bytes) -> None:
    """However a message is built, reading it takes a few times its bytes at most."""
    payload = b"\x92\x05" + body
    for decode in (decode_request, decode_reply):

        def read(decode: Any = decode) -> None:
            with suppress(InvalidPayload, InvalidMessage):
                decode(payload)

        assert peak_bytes(read) < 8 * len(payload) + 20_000


@given(
    st.recursive(
        st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5) | st.binary(max_size=5),
        lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=8),
        max_leaves=60,
    ),
    st.integers(1, 200),
)
def test_memory_of_noise_is_bounded(value: Any, often: int) -> None:
    """So it is for messages of any shape, in the place of any field."""
    for field in ("type", "query", "results", "later"):
        payload = pack([5, {"type": "search", field: [value] * often}])
        for decode in (decode_request, decode_reply):

            def read(decode: Any = decode, payload: bytes = payload) -> None:
                with suppress(InvalidMessage):
                    decode(payload)

            assert peak_bytes(read) < 8 * len(payload) + 20_000


@given(wire.IDS, wire.REQUESTS, wire.REPLIES, wire.HELLOS)
def test_every_message_comes_back(number: int, request_: Request, reply: Reply, hello: Hello) -> None:
    """Whatever its fields hold, what is read is what was written."""
    assert decode_request(encode_request(number, request_)) == (number, request_)
    assert decode_reply(encode_reply(number, reply)) == (number, reply)
    assert decode_hello(encode_hello(hello)) == hello


@given(wire.payloads(wire.REQUESTS) | wire.payloads(wire.REPLIES) | wire.payloads(wire.HELLOS))
def test_what_is_nearly_a_message_is_one_or_a_typed_error(payload: bytes) -> None:
    """Fields missing, doubled, of another name, type or size: a complaint is short, and what is read can be sent on."""
    both: list[tuple[Callable[[bytes], tuple[int, Any]], Callable[[int, Any], bytes]]] = [
        (decode_request, encode_request),
        (decode_reply, encode_reply),
    ]
    for decode, encode in both:
        try:
            number, message = decode(payload)
        except (InvalidPayload, InvalidMessage) as error:
            told = str(error)
            assert len(told.encode()) < 1000
            continue
        again = encode(number, message)
        assert encode(*decode(again)) == again
    with suppress(InvalidPayload):
        assert decode_hello(encode_hello(decode_hello(payload))) == decode_hello(payload)


def test_a_complaint_is_told_up_to_a_length() -> None:
    """What was sent is quoted in it."""
    longest, ends = shipped("memd_client.codec._LONGEST_COMPLAINT"), []
    for size in (longest - 2, longest - 1):  # with its quotation marks
        with pytest.raises(InvalidMessage) as caught:
            decode_request(pack([9, {"type": "x" * size}]))
        ends.append(caught.value.message[-4:])
    assert ends == ["xxx'", "x..."]


PAYLOADS = [b"", b"a", b"\0" * 4, bytes(range(256)), b"x" * 100_000]


def drained(reader: FrameReader) -> list[bytes]:
    return list(iter(reader.next_frame, None))


def test_limits() -> None:
    """Requests may have one mebibyte, replies eight."""
    assert (REQUEST_LIMIT, REPLY_LIMIT) == (1_048_576, 8_388_608)


def test_frame_layout() -> None:
    """A frame is four bytes of length, the highest first, then the payload."""
    assert encode_frame(b"abc", 10) == b"\x00\x00\x00\x03abc"
    assert encode_frame(b"", 0) == b"\x00\x00\x00\x00"


def test_one_byte_at_a_time() -> None:
    """Frames are found in whatever pieces they arrive, each as soon as its last byte is there."""
    reader = FrameReader(1 << 20)
    for payload in PAYLOADS:
        *most, last = encode_frame(payload, 1 << 20)
        for byte in most:
            reader.feed(bytes([byte]))
            assert reader.next_frame() is None
            assert reader.is_midway
        reader.feed(bytes([last]))
        assert reader.next_frame() == payload
        assert not reader.is_midway


def test_many_frames_at_once() -> None:
    """All the frames of one piece come out in order, then None."""
    reader = FrameReader(1 << 20)
    reader.feed(b"".join(encode_frame(payload, 1 << 20) for payload in PAYLOADS * 100))
    assert drained(reader) == PAYLOADS * 100
    assert reader.next_frame() is None


def test_limit_is_inclusive() -> None:
    """A payload as long as the limit passes in both directions, one byte more does not."""
    reader = FrameReader(5)
    reader.feed(encode_frame(b"12345", 5))
    assert reader.next_frame() == b"12345"
    with pytest.raises(FrameTooLarge) as too_large:
        encode_frame(b"123456", 5)
    assert (too_large.value.length, too_large.value.limit) == (6, 5)


@pytest.mark.parametrize("length", [6, 1 << 31, (1 << 32) - 1])
def test_refused_by_the_header(length: int) -> None:
    """A frame over the limit is refused before any of its payload came, and as often as it is asked for."""
    reader = FrameReader(5)
    reader.feed(encode_frame(b"fine", 5) + struct.pack(">I", length))
    assert reader.next_frame() == b"fine"
    for _ in range(2):
        with pytest.raises(FrameTooLarge, match=f"{length} bytes where 5"):
            reader.next_frame()


def test_incomplete_header() -> None:
    """Three bytes of a header decide nothing yet."""
    reader = FrameReader(5)
    reader.feed(b"\xff\xff\xff")
    assert reader.next_frame() is None
    assert reader.is_midway


@given(
    st.lists(st.binary(max_size=200), max_size=20),
    st.lists(st.integers(1, 50)),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_any_cut(payloads: list[bytes], cuts: list[int], kind: type) -> None:
    """However the stream is cut, the payloads that went in come out."""
    stream = b"".join(encode_frame(payload, 200) for payload in payloads)
    reader = FrameReader(200)
    came: list[bytes] = []
    for cut in cuts:
        reader.feed(kind(stream[:cut]))
        stream = stream[cut:]
        came += drained(reader)
    reader.feed(kind(stream))
    assert came + drained(reader) == payloads


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_noise_in_frames(pieces: list[bytes]) -> None:
    """Bytes that are no frames give frames within the limit, or the one error, and nothing else."""
    reader = FrameReader(30)
    with suppress(FrameTooLarge):
        for piece in pieces:
            reader.feed(piece)
            assert all(len(payload) <= 30 for payload in drained(reader))


def heard(pieces: list[bytes], limit: int) -> tuple[list[bytes], object]:
    """The payloads of a stream, and how it ended: with a length that is refused, or midway or not."""
    reader = FrameReader(limit)
    came: list[bytes] = []
    try:
        for piece in pieces:
            reader.feed(piece)
            came.extend(iter(reader.next_frame, None))
    except FrameTooLarge as error:
        return came, error.length
    return came, reader.is_midway


@given(
    st.lists(
        st.binary(max_size=12) | st.binary(max_size=30).map(lambda one: encode_frame(one, 30)), max_size=8
    ),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_a_stream_means_the_same_however_it_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    """Frames and noise in any order give the same frames and the same end, in whatever pieces they come."""
    rest = stream = b"".join(parts)
    pieces = []
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert heard([*pieces, rest], 30) == heard([stream], 30)


def test_a_stream_takes_no_more_memory_than_a_frame() -> None:
    """Of a thousand frames that came, nothing is kept."""
    frame, reader = encode_frame(b"x" * 1000, 1000), FrameReader(1000)

    def read() -> None:
        for _ in range(1000):
            reader.feed(frame[:700])
            assert reader.next_frame() is None
            reader.feed(frame[700:])
            assert reader.next_frame() is not None

    assert peak_bytes(read) < 20_000


def test_work_grows_with_the_stream_alone() -> None:
    """Twice as many bytes, one by one, are twice the work, whether they make one frame or many."""

    def read(payload: int, count: int) -> int:
        pieces = [bytes([byte]) for byte in encode_frame(b"x" * payload, 1 << 20) * count]
        return calls(lambda: heard(pieces, 1 << 20))

    assert read(20_000, 1) < 2.2 * read(10_000, 1)
    assert read(100, 200) < 2.2 * read(100, 100)


@given(STREAMS, st.data())
def test_what_a_client_may_say_means_the_same_however_it_is_cut(stream: bytes, data: st.DataObject) -> None:
    """Frames of messages, with headers that lie: the same payloads, each within the limit, for as much work as there is."""
    cut = data.draw(pieces(stream))
    came, end = heard([stream], REQUEST_LIMIT)
    assert heard(cut, REQUEST_LIMIT) == (came, end)
    assert sum(len(payload) + 4 for payload in came) <= len(stream)
    assert all(len(payload) <= REQUEST_LIMIT for payload in came)
    assert calls(lambda: heard(cut, REQUEST_LIMIT)) <= 20 * (len(came) + len(cut) + 1)
    if end is False:  # it came to its end, so nothing is missing
        assert b"".join(encode_frame(payload, REQUEST_LIMIT) for payload in came) == stream
