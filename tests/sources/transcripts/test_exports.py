"""Exports as files: each conversation is a session, whatever the file looks like, in bounded memory."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memd.domain_types import FoundFile, Kind
from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable
from memd.sources.scan import scan
from memd.sources.scan_result import Scan, SkipReason
from memd.sources.transcripts import chats, exports
from memd.sources.transcripts.database_reader import entry_growth, list_sessions, read_entry
from memd.sources.transcripts.reader import UnchangedTranscript, WholeTranscript
from memd.text.memory_paths import SessionPaths
from tests.bounds import shipped
from tests.sources.transcripts.exports import chatgpt_talk, claude, claude_message, write
from tests.sources.transcripts.transcripts import Hider, replace

NAME = "conversations.json"
TALKS = (
    chatgpt_talk("one", ("user", 'a "quoted" question with [brackets] and {braces}'), ("assistant", "ends with \\")),
    chatgpt_talk("two", ("user", "第二个问题"), ("assistant", "an answer")),
    claude("three", claude_message("m", "human", "a third one")),
)  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def root(base: Path) -> SessionPaths:
    return SessionPaths(base, "exported", "plain")


def _ids(root: SessionPaths) -> list[str]:
    return [one.id for one in list_sessions(root, (NAME,)).sessions]


def _found(root: SessionPaths, identity: str) -> FoundFile:
    stamp = next(one.stamp for one in list_sessions(root, (NAME,)).sessions if one.id == identity)
    name = f"sessions/exported/{identity}.jsonl"
    return FoundFile(name, str(root.directory / NAME), Kind.SESSION, stamp, identity)


def _look(root: SessionPaths) -> Scan:
    return scan([root], max_bytes=10)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("piece", [1, 7, shipped("memd.sources.transcripts.exports._PIECE_BYTES")])
def test_conversations_are_found_however_the_file_is_cut(
    root: SessionPaths, monkeypatch: pytest.MonkeyPatch, piece: int, indent: int | None
) -> None:
    """Also in the middle of a text, an escape or a character."""
    monkeypatch.setattr(exports, "_PIECE_BYTES", piece)
    write(root.directory / NAME, TALKS, indent=indent)
    assert _ids(root) == ["one", "two", "three"]
    reading = read_entry(_found(root, "one"), [root], None, redactor=None, subagents=False)
    assert [turn.text for turn in reading.turns] == [  # type: ignore[union-attr]
        'a "quoted" question with [brackets] and {braces}',
        "ends with \\",
    ]


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (b"\xef\xbb\xbf" + json.dumps(TALKS).encode(), ["one", "two", "three"]),
        (json.dumps(TALKS[1]).encode(), ["two"]),
        (b"[]", []),
        (b"", []),
        (b"  \n", []),
        (b"no JSON at all", []),
        (b'["text", 5, null, [{}], {"other": {"id": "x"}}]', []),
        (json.dumps([{"x": 1}, TALKS[0], TALKS[0]]).encode(), ["one"]),
        (b"]}]" + json.dumps(TALKS).encode(), []),
        (b"[" * 100_000 + b"]" * 100_000, []),
    ],
)
def test_odd_files(root: SessionPaths, content: bytes, ids: list[str]) -> None:
    """What is no conversation is passed over."""
    (root.directory / NAME).write_bytes(content)
    assert _ids(root) == ids


def test_a_file_that_is_not_whole_is_waited_for(root: SessionPaths) -> None:
    """It is being copied: what is indexed stays."""
    content = json.dumps(TALKS).encode()
    for end in (1, 100, len(content) // 2, len(content) - 1):
        (root.directory / NAME).write_bytes(content[:end])
        with pytest.raises(FileHeld):
            list_sessions(root, (NAME,))
    seen = _look(root)
    assert (list(seen.skipped.values()), list(seen.blind)) == ([SkipReason.HELD], ["sessions/exported"])


def test_a_conversation_that_is_too_long_costs_no_other(
    root: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed over in pieces."""
    monkeypatch.setattr(exports, "_PIECE_BYTES", 1000)
    monkeypatch.setattr(exports, "MAX_CONVERSATION_BYTES", 20_000)
    words = [("user", Random(number).randbytes(500).hex()) for number in range(60)]
    write(root.directory / NAME, [TALKS[0], chatgpt_talk("long", *words), TALKS[1]])
    assert _ids(root) == ["one", "two"]


def test_a_text_without_an_end_is_given_up(root: SessionPaths) -> None:
    """A file can be made so; memory does not hold more than a conversation."""
    file = root.directory / NAME
    file.write_bytes(b'[{"mapping": "')
    os.truncate(file, exports.MAX_CONVERSATION_BYTES + 4 * (1 << 20))
    with pytest.raises(FileUnreadable, match="too long"):
        list_sessions(root, (NAME,))


def test_a_new_export_is_read_only_where_something_changed(root: SessionPaths) -> None:
    """By the bytes of each conversation, wherever in the file it is now."""
    write(root.directory / NAME, TALKS)
    one, two = _found(root, "one"), _found(root, "two")
    first = read_entry(one, [root], None, redactor=Hider("quoted"), subagents=False)
    assert isinstance(first, WholeTranscript)
    assert "[REDACTED:word]" in first.turns[0].text
    second = read_entry(two, [root], None, redactor=None, subagents=False)
    growth = entry_growth(two, [root], None, at_most=10)
    unit = shipped("memd.sources.transcripts.exports._UNIT_BYTES")
    assert unit <= growth.bytes <= max(unit, (root.directory / NAME).stat().st_size)
    assert growth.lines == 0  # it has none of its own
    changed = chatgpt_talk("two", ("user", "第二个问题"), ("assistant", "an answer"), ("user", "more"))
    replace(root.directory / NAME, json.dumps([changed, TALKS[0]]).encode())
    again = read_entry(_found(root, "one"), [root], first.progress, redactor=None, subagents=False)
    assert isinstance(again, UnchangedTranscript)
    assert _found(root, "one").stamp == one.stamp
    assert _found(root, "two").stamp != two.stamp
    grown = read_entry(_found(root, "two"), [root], second.progress, redactor=None, subagents=False)
    assert isinstance(grown, WholeTranscript)
    assert grown.turns[-1].text == "more"
    gone = FoundFile("sessions/exported/three.jsonl", one.location, Kind.SESSION, one.stamp, "three")
    with pytest.raises(FileMissing):
        read_entry(gone, [root], None, redactor=None, subagents=False)


def test_an_export_that_is_written_in_the_middle_of_a_reading_is_waited_for(
    root: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of another conversation, or of a half of one, is taken for what was found."""
    file = root.directory / NAME
    write(file, TALKS)
    found = _found(root, "two")
    look = exports._places  # noqa: SLF001 - the moment between the two looks

    def then_written(*of: Any) -> Any:
        places = look(*of)
        content = file.read_bytes()
        file.write_bytes(content.replace(b"an answer", b"a reply.."))
        return places

    monkeypatch.setattr(exports, "_places", then_written)
    with pytest.raises(FileHeld, match="being written"):
        read_entry(found, [root], None, redactor=None, subagents=False)
    monkeypatch.undo()
    read = read_entry(_found(root, "two"), [root], None, redactor=None, subagents=False)
    assert isinstance(read, WholeTranscript)
    assert read.turns[-1].text == "a reply.."


def test_exports_are_found_in_a_directory_and_by_name(base: Path) -> None:
    """In parts, too; of two exports the conversation that was changed last counts; an id that is no name is passed over."""
    write(base / "chatgpt" / "conversations-000.json", [TALKS[0]])
    newer = chatgpt_talk("one", ("user", "newer"), update_time=2_000_000_000.0)
    write(base / "chatgpt" / "later" / NAME, [newer, chatgpt_talk("../x", ("user", "A"))])
    write(base / "chatgpt" / "shared_conversations.json", [TALKS[1]])
    directory = SessionPaths(base / "chatgpt", "exported", "plain")
    seen = _look(directory)
    assert {path: found.file.parent.name for path, found in seen.found.items()} == {
        "sessions/exported/one.jsonl": "later"
    }
    assert set(seen.skipped.values()) == {SkipReason.CONTROL, SkipReason.SAME_SESSION}
    single = SessionPaths(base / "chatgpt", "exported", "plain", file="conversations-000.json")
    assert list(_look(single).found) == ["sessions/exported/one.jsonl"]


def test_each_version_of_a_file_is_gone_through_once(
    root: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until so many others came."""
    told: list[int] = []
    identify = chats.identify

    def counted(content: bytes) -> chats.ExportedChat | None:
        told.append(len(content))
        return identify(content)

    monkeypatch.setattr(chats, "identify", counted)
    monkeypatch.setattr(exports, "reliable_stamp", lambda *_: None)
    write(root.directory / NAME, TALKS)
    _ids(root)
    _ids(root)
    assert len(told) == 2 * len(TALKS)  # one that was just written may change once more
    monkeypatch.setattr(exports, "reliable_stamp", lambda stamp, _: stamp)
    told.clear()
    _ids(root)
    _ids(root)
    assert len(told) == len(TALKS)
    kept = shipped("memd.sources.transcripts.exports.KEPT_EXPORTS")
    for count, is_known in ((kept - 1, True), (kept, False)):
        told.clear()
        for number in range(count):
            other = SessionPaths(root.directory / f"{count} {number}", "exported", "plain")
            write(other.directory / NAME, [TALKS[0]])
            _ids(other)
        _ids(root)
        assert len(told) == count + (0 if is_known else len(TALKS))
    # What is looked at stays, however long ago it came.
    told.clear()
    for number in range(exports.KEPT_EXPORTS + 2):
        other = SessionPaths(root.directory / f"more {number}", "exported", "plain")
        write(other.directory / NAME, [TALKS[0]])
        _ids(other)
        _ids(root)
    assert len(told) == exports.KEPT_EXPORTS + 2


def test_so_much_of_a_file_is_read_at_a_time(root: SessionPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """More only while something in it goes on."""
    piece = shipped("memd.sources.transcripts.exports._PIECE_BYTES")
    words = [("user", "word " * 1000) for _ in range(3 * piece // 5000)]
    write(
        root.directory / NAME, [chatgpt_talk(str(number), *words[:20]) for number in range(len(words) // 20)]
    )
    read, pread = list[int](), os.pread

    def noted(descriptor: int, length: int, at: int) -> bytes:
        read.append(len(some := pread(descriptor, length, at)))
        return some

    monkeypatch.setattr(os, "pread", noted)
    assert len(_ids(root)) == len(words) // 20
    assert read[0] == piece


def test_the_size_of_a_conversation_is_told_in_units(root: SessionPaths) -> None:
    """As for events in a database."""
    unit = shipped("memd.sources.transcripts.exports._UNIT_BYTES")
    write(root.directory / NAME, [chatgpt_talk("one", ("user", "word " * 2 * unit))])
    whole = (root.directory / NAME).stat().st_size
    assert _found(root, "one").stamp.size == (whole - len("[]")) // unit
