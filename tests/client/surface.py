"""What both clients are asked to do in their tests."""

from typing import Any, NamedTuple

import msgspec

from memd_client import codec
from memd_client.messages import (
    PROTOCOL,
    AgentTags,
    ChunkList,
    Chunks,
    DuplicateList,
    Duplicates,
    Embed,
    Embedding,
    EmbedReport,
    Explain,
    Explanation,
    Failure,
    FileList,
    Files,
    Found,
    Get,
    Hello,
    Hit,
    ListedFile,
    ListedTurn,
    Note,
    NoteLines,
    NotePair,
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
    Warm,
)


class Call(NamedTuple):
    """A call of a method, what the daemon must hear, and what it answers."""

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    request: Request
    reply: Reply


FOUND = Found(results=[Hit(path="MEMORY.md", start_line=1, end_line=2, score=0.5, snippet="PostgreSQL")])
NOTE = Note(path="MEMORY.md", text="PostgreSQL", end_line=1)
STATUS = StatusReport(
    version="0.1.0", protocol=2, pid=7, uptime_s=0.5, socket="/run/s", config=None, agents={}
)
ASKER: dict[str, Any] = {"agent": "work", "session_key": "agent:work:main"}
ASKER_KEY: dict[str, Any] = {"session_key": "agent:work:main"}
SEARCH: dict[str, Any] = {"max_results": 50, "min_score": 0.1, "source": "sessions"} | ASKER

CALLS = [
    Call("search", ("which?",), {}, Search(query="which?"), FOUND),
    Call("search", ("which?",), SEARCH, Search(query="which?", **SEARCH), FOUND),
    Call("get", ("MEMORY.md",), {}, Get(path="MEMORY.md"), NOTE),
    Call(
        "get",
        ("MEMORY.md",),
        {"start_line": 5, "lines": 2} | ASKER,
        Get(path="MEMORY.md", start_line=5, lines=2, **ASKER),
        NOTE,
    ),
    Call("status", (), {}, Status(), STATUS),
    Call("status", ("work",), {}, Status(agent="work"), STATUS),
    Call("status", ("work",), ASKER_KEY, Status(agent="work", **ASKER_KEY), STATUS),
    Call("reindex", (), {}, Reindex(), ReindexReport(agents=["main"])),
    Call("reindex", (), ASKER_KEY, Reindex(**ASKER_KEY), ReindexReport(agents=["work"])),
    Call("sync", (), ASKER_KEY, Sync(**ASKER_KEY), SyncReport()),
    Call(
        "reindex",
        (),
        {"agent": "work", "force": True, "dry_run": True},
        Reindex(agent="work", force=True, dry_run=True),
        ReindexReport(agents=["work"], dry_run=True),
    ),
    Call("explain", ("why?",), {}, Explain(query="why?"), Explanation(found=FOUND)),
    Call("explain", ("why?",), SEARCH, Explain(query="why?", **SEARCH), Explanation(found=FOUND)),
    Call("files", (), {}, Files(), FileList(agent="main")),
    Call(
        "files",
        ("work",),
        {
            "folder": "memory/",
            "since": "7d",
            "tags": "ops",
            "path": ["a/**"],
            "sort": "time",
            "after": "0 a",
            "max_files": 1,
        },
        Files(
            agent="work",
            folder="memory/",
            since="7d",
            only=["tag:ops", "path:a/**"],
            sort="time",
            after="0 a",
            max_files=1,
        ),
        FileList(agent="work", files=[ListedFile(path="a/b.md", size=3)], next="0 a/b.md"),
    ),
    Call("chunks", ("MEMORY.md",), {}, Chunks(path="MEMORY.md"), ChunkList(path="MEMORY.md")),
    Call(
        "chunks",
        ("MEMORY.md",),
        {"agent": "work", "skip": 3, "max_chunks": 2},
        Chunks(path="MEMORY.md", agent="work", skip=3, max_chunks=2),
        ChunkList(path="MEMORY.md", missing=True),
    ),
    Call("turns", ("sessions/a",), {}, Turns(path="sessions/a"), TurnList(path="sessions/a")),
    Call(
        "turns",
        ("sessions/a",),
        {"agent": "work", "skip": 3, "max_turns": 2},
        Turns(path="sessions/a", agent="work", skip=3, max_turns=2),
        TurnList(path="sessions/a", turns=[ListedTurn(role="user", start_line=1, end_line=1, text="hi")]),
    ),
    Call("duplicates", (), {}, Duplicates(), DuplicateList()),
    Call(
        "duplicates",
        (),
        {"agent": "work"},
        Duplicates(agent="work"),
        DuplicateList(pairs=[NotePair(why="copy", one=NoteLines(path="a.md"))], more=True),
    ),
    Call("warm", ("main",), {}, Warm(session_key="main"), SyncReport(files=1)),
    Call("warm", ("main",), {"agent": "work"}, Warm(session_key="main", agent="work"), SyncReport()),
    Call(
        "embed",
        ("pause",),
        {},
        Embed(action="pause"),
        EmbedReport(agents={"main": Embedding(state="paused")}),
    ),
    Call("embed", ("confirm", "work"), ASKER_KEY, Embed(action="confirm", **ASKER), EmbedReport()),
    Call("sync", (), {}, Sync(), SyncReport(vectors="waiting", waiting_chunks=3)),
    Call("tags", (), {}, Tags(), TagsReport(agents={"main": AgentTags(omitted=3)})),
    Call("tags", ("work",), ASKER_KEY, Tags(**ASKER), TagsReport()),
    Call("redact", ("a text",), ASKER, RedactText(text="a text", **ASKER), RedactedText(text="a text")),
    Call("ask", (Get(path="a.md", agent="work"),), {}, Get(path="a.md", agent="work"), NOTE),
    Call("reload", (), {}, Reload(), Reloaded(changed=["agents.main.citations"])),
    Call("stop", (), {}, Stop(), Stopping(pid=4711)),
    Call(
        "sync",
        (),
        {"agent": "work", "force": True, "wait": False, "vectors": False},
        Sync(agent="work", force=True, wait=False, vectors=False),
        SyncReport(),
    ),
]


def frame(payload: bytes) -> bytes:
    return codec.encode_frame(payload, codec.REPLY_LIMIT)


def packed(value: Any) -> bytes:
    return frame(msgspec.msgpack.encode(value))


HELLO = codec.encode_hello(Hello(protocol=PROTOCOL, version="9.9"))

# What a daemon may send instead of an answer, such that nothing after it can be trusted.
BROKEN = {
    "4 GB announced": b"\xff\xff\xff\xff",
    "over the limit": (codec.REPLY_LIMIT + 1).to_bytes(4, "big"),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no msgpack": frame(b"\xc1"),
    "nothing": frame(b""),
    "no envelope": packed({"type": "found"}),
    "id of a wrong type": packed(["1", {"type": "found"}]),
    "nested without end": frame(b"\x92\x01" + b"\x91" * 100_000 + b"\xc0"),
    "greets twice": frame(HELLO),
    "no id": frame(codec.encode_reply(0, Found())),
}

# What it may say about one request, such that the next one has every chance.
UNFIT = {
    "unknown": {"type": "hologram"},
    "wrong field": {"type": "found", "stale": 1},
    "wrong type": {"type": "found", "results": {}},
    "of another request": {"type": "note", "path": "a.md"},
    "of no kind": 5,
}

REFUSAL = Failure(code="protocol", message="You are somebody else.", hint="Be yourself.")
