"""A transcript may be read in parts."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.sources.transcripts.format import Format
from memd.sources.transcripts.parser import FORMATS
from memd.sources.transcripts.turn_builder import TurnBuilder, UnresolvedReference

IDS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["", "one", "two", "NO_REPLY"])
ROLES = st.sampled_from(["user", "assistant"])
PARENTS = st.one_of(st.just({}), st.builds(lambda parent: {"parentId": parent}, st.none() | IDS))


def openclaw(identity: str, parent: dict[str, Any], role: str, text: str, model: str) -> Any:
    message = {"role": role, "content": text, "model": model}
    return {"type": "message", "id": identity, **parent, "message": message}


def claude_code(uuid: str, message: str, role: str, text: str, sidechain: int) -> Any:
    said = {"id": message, "content": [{"type": "text", "text": text}]}
    return {"type": role, "uuid": uuid, "isSidechain": sidechain == 0, "message": said}


def codex(kind: str, role: str, text: str) -> Any:
    match kind:
        case "sent":
            content = [{"type": "text", "text": text}]
            return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}
        case "shown":
            shown = "user_message" if role == "user" else "agent_message"
            return {"type": "event_msg", "payload": {"type": shown, "message": text}}
        case _:
            return {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}


def gemini(identity: str, text: str, kind: str, other: str) -> Any:
    message = {"id": identity, "type": kind, "content": text}
    match kind:
        case "set":
            last = {"id": other, "type": "gemini", "content": "two"}
            return {"$set": {"messages": [{**message, "type": "user"}, last]}}
        case "rewind":
            return {"$rewindTo": identity}
        case _:
            return message


def qwen(identity: str, parent: str | None, kind: str, text: str) -> Any:
    role = "model" if kind == "assistant" else "user"
    record = {"uuid": identity, "parentUuid": parent, "sessionId": "s", "type": kind}
    return {**record, "message": {"role": role, "parts": [{"text": text}]}}


def copilot(identity: str, kind: str, text: str, first: str) -> Any:
    data = {"content": text, "upToEventId": first, "sessionId": "s"}
    return {"type": kind, "id": identity, "parentId": None, "data": data}


RECORDS: dict[str, st.SearchStrategy[Any]] = {
    "openclaw": st.builds(
        openclaw,
        IDS,
        PARENTS,
        st.sampled_from(["user", "assistant", "toolResult"]),
        TEXTS,
        st.sampled_from(["x", "delivery-mirror"]),
    ),
    "claude-code": st.builds(
        claude_code, st.sampled_from("abcdefghij"), st.sampled_from("mno"), ROLES, TEXTS, st.integers(0, 3)
    ),
    "codex": st.builds(codex, st.sampled_from(["sent", "sent", "shown", "shown", "back"]), ROLES, TEXTS),
    "gemini": st.builds(
        gemini, IDS, TEXTS, st.sampled_from(["user", "gemini", "info", "set", "rewind"]), IDS
    ),
    "qwen": st.builds(
        qwen, IDS, PARENTS, st.sampled_from(["user", "assistant", "tool_result", "system"]), TEXTS
    ),
    "copilot": st.builds(
        copilot,
        st.uuids().map(str),
        st.sampled_from(["user.message", "assistant.message", "session.snapshot_rewind", "abort"]),
        TEXTS,
        IDS,
    ),
    "plain": st.builds(lambda role, text: {"role": role, "content": text}, ROLES, TEXTS),
}


def read(kind: Format, lines: Sequence[bytes], state: Any, after: int, builder: TurnBuilder) -> TurnBuilder:
    for number, line in enumerate(lines, after + 1):
        for event in kind.parse(line, state):
            builder.take(number, event)
    return builder


@pytest.mark.parametrize("name", RECORDS)
@given(data=st.data(), cut=st.integers(0, 10))
def test_two_readings_give_what_one_gives(name: str, data: st.DataObject, cut: int) -> None:
    """Wherever the first one ends, the turns are those of one reading, or the second says that it cannot go on."""
    kind = FORMATS[name]
    lines = [json.dumps(record).encode() for record in data.draw(st.lists(RECORDS[name], max_size=10))]
    whole = read(kind, lines, kind.State(), 0, TurnBuilder())
    state = kind.State()
    first = read(kind, lines[:cut], state, 0, TurnBuilder())
    known = first.turns
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=kind.State)
    second = TurnBuilder(len(known), known[-1] if known else None, first.learnt)
    try:
        read(kind, lines[cut:], kept, len(lines[:cut]), second)
    except UnresolvedReference:
        return
    assert known[: second.turns_from] + second.turns == whole.turns
    assert second.learnt == whole.learnt


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "qwen", "copilot", "plain"])
@given(data=st.data())
def test_ids_are_unique(name: str, data: st.DataObject) -> None:
    """No two turns of a session have the same id, whatever is repeated, replaced and taken back."""
    kind = FORMATS[name]
    lines = [json.dumps(record).encode() for record in data.draw(st.lists(RECORDS[name], max_size=10))]
    ids = [turn.id for turn in read(kind, lines, kind.State(), 0, TurnBuilder()).turns if turn.id]
    assert len(set(ids)) == len(ids)
