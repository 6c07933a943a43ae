"""Transcripts that are nearly as agents write them, line by line and as whole files."""

from collections.abc import Sequence
from typing import Any

import zstandard
from hypothesis import strategies as st

from tests.awkward.streams import shuffled, spoilt
from tests.awkward.trees import ODD_JSON, as_json, mutated, tree_of

_IDS = st.sampled_from(["a", "b", "c", "d", "e", "", "0"])
_PARENTS = st.none() | _IDS
_ROLES = st.sampled_from(["user", "user", "assistant", "assistant", "system", "toolResult"])
# Backwards, ahead, in other units, and none.
_TIMES = st.sampled_from(
    [
        "2026-08-10T20:02:51.000Z", "2026-08-10T20:02:50.999Z", "2026-08-11T04:02:51+08:00", "1999-12-31T23:59:60Z", 1786363200,
        1786363200250, 1786363200250000, "1786363200", -5, 1e300, None, "soon",
    ]
)  # fmt: skip
_TEXTS = st.sampled_from(
    [
        "which database did we pick?", "We picked 数据库 SQLite.", "", " \n\t", "NO_REPLY", "HEARTBEAT_OK\nand more", "my password is hunter2",
        "<system-reminder>\nnot said\n</system-reminder>\nsaid", "<system-reminder>never closed", "```\n<skill>\n```\ncode", "a\r\nb\rc\u2028d",
        "[Telegram Ada id:1 2026-08-10 20:02] hello", "[[reply_to_current]] yes", "# AGENTS.md instructions\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
        "System: [2026-08-10 20:02] event\n\nhello", "long " * 400, "字" * 900, "line\n" * 200, "e\u0301👩\u200d👧\u202e\u200b",
    ]
) | st.text(max_size=12)  # fmt: skip


def _blocks(*kinds: str) -> st.SearchStrategy[Any]:
    block = st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(kinds), _TEXTS)
    other = st.sampled_from(
        [{"type": "image", "data": "x"}, {"type": "thinking", "thinking": "x"}, {"text": "bare"}, "bare"]
    )
    return _TEXTS | st.lists(block | other, max_size=3)


def _record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Records of these fields, by their names in the file but for a trailing underscore."""
    return st.fixed_dictionaries({name.rstrip("_"): values for name, values in fields.items()})


_is = st.just
_BOOLEANS = st.sampled_from([False, False, True])
RECORDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "openclaw": st.one_of(
        _record(type=_is("session"), id=_IDS, version=_is(3), timestamp=_TIMES, cwd=_is("/r")),
        *[
            _record(
                type=_is("message"),
                id=_IDS,
                parentId=_PARENTS,
                timestamp=_TIMES,
                message=_record(
                    role=_ROLES,
                    content=_blocks("text", "text", "toolCall"),
                    model=st.sampled_from(["x", "delivery-mirror", "gateway-injected"]),
                    timestamp=_TIMES,
                ),
            )
        ]
        * 4,
        _record(
            type=st.sampled_from(["compaction", "custom", "model_change", "leaf", "reset", "novel"]),
            id=_IDS,
            parentId=_PARENTS,
        ),
    ),
    "claude-code": st.one_of(
        *[
            _record(
                type=st.sampled_from(["user", "assistant"]),
                uuid=_IDS,
                parentUuid=_PARENTS,
                sessionId=_is("s"),
                cwd=_is("/r/app"),
                timestamp=_TIMES,
                isSidechain=_BOOLEANS,
                isMeta=_BOOLEANS,
                message=_record(id=_IDS, role=_ROLES, content=_blocks("text", "tool_use"), model=_is("m")),
            )
        ]
        * 4,
        _record(type=st.sampled_from(["summary", "system", "file-history-snapshot", "novel"]), uuid=_IDS),
    ),
    "codex": st.one_of(
        _record(
            timestamp=_TIMES,
            type=_is("session_meta"),
            payload=_record(
                id=_IDS,
                cwd=_is("C:\\r\\app"),
                timestamp=_TIMES,
                source=st.sampled_from(["cli", {"subagent": "review"}, {"subagent": {"thread_spawn": {}}}]),
            ),
        ),
        *[
            _record(
                timestamp=_TIMES,
                type=_is("response_item"),
                payload=_record(
                    type=_is("message"), role=_ROLES, content=_blocks("input_text", "output_text")
                ),
            ),
            _record(
                timestamp=_TIMES,
                type=_is("event_msg"),
                payload=_record(type=st.sampled_from(["user_message", "agent_message"]), message=_TEXTS),
            ),
        ]
        * 2,
        _record(
            type=_is("event_msg"),
            payload=_record(
                type=_is("thread_rolled_back"), num_turns=st.sampled_from([0, 1, 2, -1, 2**70, True])
            ),
        ),
        _record(type=_is("message"), role=_ROLES, content=_blocks("input_text")),
        _record(id=_IDS, timestamp=_TIMES, instructions=_is("x")),
    ),
    "gemini": st.one_of(
        _record(
            sessionId=_is("s"),
            projectHash=_is("p"),
            startTime=_TIMES,
            kind=st.sampled_from(["main", "subagent"]),
        ),
        *[
            _record(
                id=_IDS,
                timestamp=_TIMES,
                type=st.sampled_from(["user", "gemini", "info", "novel"]),
                content=_blocks("text"),
                displayContent=_TEXTS,
            ),
            _record(id=_IDS, type=_is("user"), content=_TEXTS),
        ]
        * 2,
        _record(**{"$rewindTo": _IDS}),
        _record(
            **{
                "$set": _record(
                    messages=st.lists(_record(id=_IDS, type=_is("user"), content=_TEXTS), max_size=3)
                )
            }
        ),
    ),
    "qwen": st.one_of(
        *[
            _record(
                uuid=_IDS,
                parentUuid=_IDS,
                sessionId=_is("s"),
                timestamp=_TIMES,
                type=st.sampled_from(["user", "assistant", "system", "novel"]),
                provenance=st.sampled_from(["real_user", "assistant_output", "system"]),
                cwd=_TEXTS,
                message=_record(
                    role=_ROLES, parts=st.lists(_record(text=_TEXTS, thought=st.booleans()), max_size=3)
                ),
            ),
            _record(
                uuid=_IDS, sessionId=_is("s"), type=_is("user"), message=_record(parts=_is([{"text": "x"}]))
            ),
        ]
        * 2,
    ),
    "copilot": _record(
        type=st.sampled_from(
            ["session.start", "user.message", "assistant.message", "session.snapshot_rewind", "abort"]
        ),
        id=_IDS,
        timestamp=_TIMES,
        data=_record(content=_TEXTS, upToEventId=_IDS, sessionId=_is("s"), context=_record(cwd=_TEXTS)),
    ),
    "plain": st.one_of(
        _record(role=_ROLES, content=_blocks("text"), timestamp=_TIMES),
        _record(message=_record(role=_ROLES, content=_TEXTS), ts=_TIMES),
    ),
}
"""What a line of each format says, by the name of the format."""

_ENDS = st.sampled_from([b"\n"] * 6 + [b"\r\n", b"\n\n", b"\r", b"", b"\0\0\n", b"\xe2\x80\xa8"])
_STRAY = st.sampled_from(
    [
        b"\n",
        b"\0" * 5000,
        b"\xef\xbb\xbf",
        b"{broken\n",
        b"[1]\n",
        b"null\n",
        b"\xff\xfe\n",
        b"x" * 5000 + b"\n",
        b"{}\n",
        b'{"type":',
    ]
)


def lines(name: str, *, most_changes: int = 2) -> st.SearchStrategy[bytes]:
    """Lines of a format with their ends, right or nearly; now and then what is no line of any."""
    line = st.builds(
        lambda tree, end: as_json(tree) + end,
        mutated(RECORDS[name].map(tree_of), ODD_JSON, most=most_changes),
        _ENDS,
    )
    right = st.builds(lambda record: as_json(tree_of(record)) + b"\n", RECORDS[name])
    return st.one_of(right, right, line, line, line, _STRAY)


def transcripts(name: str, *, most: int = 12) -> st.SearchStrategy[bytes]:
    """Whole files of a format: events missing, doubled, out of order or within each other, bytes gone or others."""
    return spoilt(shuffled(st.lists(lines(name), max_size=most)).map(b"".join), most=1)


FILES = st.sampled_from(sorted(RECORDS)).flatmap(transcripts) | st.builds(
    lambda one, other: one + other,
    st.sampled_from(sorted(RECORDS)).flatmap(lambda name: transcripts(name, most=4)),
    st.sampled_from(sorted(RECORDS)).flatmap(lambda name: transcripts(name, most=4)),
)
"""Files of any format, or of two."""


def packed(frames: Sequence[bytes]) -> bytes:
    """Frames of zstd one after the other."""
    return b"".join(zstandard.compress(frame) for frame in frames)


PACKED = spoilt(
    st.lists(
        FILES | st.sampled_from([b"", b'{"role":"user","content":"' + b"x" * 300_000 + b'"}\n']), max_size=3
    ).map(packed),
    most=2,
)
"""Compressed files: whole frames, cut ones, and such with other bytes in them."""
