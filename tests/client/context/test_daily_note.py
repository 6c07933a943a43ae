import fcntl
import json
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.daily_note import (
    LONGEST_BYTES,
    Appended,
    NoteNotWritten,
    append_daily_note,
    local_day,
    note_path,
    plain_text,
    recent_notes,
    unsaid,
)
from memd_client.errors import MemdClientError
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until

NOW = datetime(2026, 2, 9, 16, 30, tzinfo=UTC)
NOTE = "memory/2026-02-09.md"

WRITER = """
import sys
from datetime import UTC, datetime
from memd_client.context.daily_note import append_daily_note
now = datetime(2026, 2, 9, tzinfo=UTC)
for n in range(25):
    append_daily_note(sys.argv[1], f"- Writer {sys.argv[2]}\\n  wrote line {n}.", now, UTC)
    append_daily_note(sys.argv[1], f"- All write this {n}.", now, UTC)
"""


def append(workspace: Path, text: str, now: datetime = NOW) -> Appended:
    return append_daily_note(workspace, text, now, UTC)


def append_as_other_user(workspace: str) -> list[str]:
    """What happens to somebody who may not write; run as another user."""
    try:
        return [append(Path(workspace), "- x").outcome]
    except NoteNotWritten as error:
        return [error.path, error.reason, str(error)]


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """A disk that takes no more than so many bytes a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_first_note_is_made_with_its_directory(tmp_path: Path) -> None:
    """memory/ and the note come into being, for their owner alone."""
    done = append(tmp_path, "- We picked PostgreSQL.")
    assert done == Appended(outcome="appended", path=NOTE, written="- We picked PostgreSQL.", line=1)
    assert (tmp_path / NOTE).read_text() == "- We picked PostgreSQL.\n"
    assert stat.S_IMODE((tmp_path / "memory").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / NOTE).stat().st_mode) == 0o600


@pytest.mark.parametrize("before", ["- old", "- old\n", "- old\n\n"])
def test_what_is_there_stays_and_stands_apart(tmp_path: Path, before: str) -> None:
    """Nothing is overwritten, and a blank line stands between, also after a last line without an end."""
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_text(before)
    append(tmp_path, "\n\n- new  \n\n")
    assert (tmp_path / NOTE).read_text() == before + ("\n\n" if before == "- old" else "\n") + "- new\n"


def test_a_repeated_block_is_not_written_twice(tmp_path: Path) -> None:
    """The second time nothing happens, and that is told."""
    append(tmp_path, "- We picked PostgreSQL.\n\n- Because of JSONB.")
    before = (tmp_path / NOTE).stat()
    assert append(tmp_path, "- We picked   PostgreSQL.\n- Because of JSONB.\n").outcome == "repeated"
    after = (tmp_path / NOTE).stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_of_a_whole_note_that_is_written_again_only_the_rest_is_new(tmp_path: Path) -> None:
    """A model that updates the file by writing all of it appends what it added."""
    append(tmp_path, "# Monday\n- a")
    assert append(tmp_path, "# Monday\n- a\n- b").written == "- b"
    assert (tmp_path / NOTE).read_text() == "# Monday\n- a\n\n- b\n"


@pytest.mark.parametrize("text", ["", " \n\t\n", "\0", "\ufeff"])
def test_no_text_leaves_the_disk_as_it_is(tmp_path: Path, text: str) -> None:
    """Nothing is made for nothing."""
    assert append(tmp_path, text).outcome == "empty"
    assert list(tmp_path.iterdir()) == []


def test_odd_characters_are_written_as_far_as_they_can_be(tmp_path: Path) -> None:
    """NUL is left out, and half a surrogate pair replaced."""
    append(tmp_path, "- a\0b \ud800 数据库")
    assert (tmp_path / NOTE).read_text() == "- ab ? 数据库\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- a \x1b[2K\x1b[1G- I trust Bob", "- a [2K[1G- I trust Bob"),
        ("- \u202eeno\u202c\u2066 two\u2069 \u200fשלום", "- eno two \u200fשלום"),
        ("- a\x08\x7f\x9b2K\u009d\tb", "- a2K\tb"),
        ("- a\r- b\x85- c\r\n- d\x0c- e", "- a\n- b\n- c\r\n- d\n- e"),
    ],
)
def test_what_would_show_a_person_other_text_is_left_out(tmp_path: Path, text: str, written: str) -> None:
    """What a terminal obeys, and what turns the order of signs round; tabs and line ends stay."""
    append(tmp_path, text)
    assert (tmp_path / NOTE).read_bytes().decode() == f"{written}\n"


def test_every_control_character_is_left_out() -> None:
    """C0, DEL and C1; of these only tabs and ends of lines stay."""
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
    assert set(plain_text(controls)) == {"\t", "\n"}
    directions = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
    assert plain_text(f"a{directions}b") == "ab"


def test_a_note_that_is_no_utf8_is_appended_to(tmp_path: Path) -> None:
    """What is in the note stays byte for byte."""
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_bytes(b"\xff caf\xe9\n")
    append(tmp_path, "- b")
    assert (tmp_path / NOTE).read_bytes() == b"\xff caf\xe9\n\n- b\n"


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_a_note_in_another_encoding_stays_as_it_is(tmp_path: Path, encoding: str) -> None:
    """Text in two encodings would be garbage in one of them; the error says which encoding it is."""
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_bytes(raw := "- 我们的新机器明天到\n".encode(encoding))
    named = {"gbk": "GB18030", "utf-16": "UTF-16"}[encoding]
    with pytest.raises(NoteNotWritten, match=f"it is {named}, and not UTF-8") as raised:
        append(tmp_path, "- b")
    assert raised.value.hint == "Save the note as UTF-8."
    assert (tmp_path / NOTE).read_bytes() == raw


def test_the_note_is_that_of_the_users_day(tmp_path: Path) -> None:
    """Late in the evening of UTC it is tomorrow in Shanghai."""
    assert append_daily_note(tmp_path, "- x", NOW, ZoneInfo("Asia/Shanghai")).path == "memory/2026-02-10.md"
    assert (tmp_path / "memory" / "2026-02-10.md").exists()


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Four processes write a hundred blocks, none of which is lost, torn or doubled."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)]) for number in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    blocks = (tmp_path / NOTE).read_text().split("\n\n")
    own = [f"- Writer {number}\n  wrote line {n}." for number in range(4) for n in range(25)]
    shared = [f"- All write this {n}." for n in range(25)]
    assert sorted(block.rstrip("\n") for block in blocks) == sorted(own + shared)


@pytest.mark.parametrize(("edited", "after"), [("- edited\n", "- edited\n\n- b\n"), (None, "- b\n")])
def test_a_writer_waits_for_the_lock_and_follows_a_file_that_was_exchanged(
    tmp_path: Path, edited: str | None, after: str
) -> None:
    """What an editor saved meanwhile by renaming is appended to, not the file that is gone; one that was deleted is made again."""
    append(tmp_path, "- a")
    note = tmp_path / NOTE
    with note.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=append, args=(tmp_path, "- b"))
        writer.start()
        until(lambda: times_open(note) == 2, 20)
        if edited is None:
            note.unlink()
        else:
            saved = tmp_path / "memory" / "edited"
            saved.write_text(edited)
            saved.replace(note)
    writer.join(60)
    assert note.read_text() == after


def times_open(file: Path) -> int:
    """How many descriptors of this process have a file open."""
    status, count = file.stat(), 0
    for descriptor in Path("/dev/fd").iterdir():
        with suppress(OSError):
            count += os.path.samestat(os.fstat(int(descriptor.name)), status)
    return count


def test_a_writer_that_does_not_end_is_not_waited_for_without_end(tmp_path: Path) -> None:
    """The lock of a process that was stopped is told, and nothing is written past it."""
    append(tmp_path, "- a")
    with (tmp_path / NOTE).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(NoteNotWritten, match="another writer"):
            append_daily_note(tmp_path, "- b", NOW, UTC, patience_s=0.02)
    assert append(tmp_path, "- b").outcome == "appended"


@pytest.mark.parametrize("name", ["memory", NOTE])
def test_a_symlink_is_not_followed(tmp_path: Path, name: str) -> None:
    """Neither the directory nor the note may lead out of the workspace."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    if name == "memory":
        outside.mkdir()
    else:
        (workspace / "memory").mkdir()
        outside.write_text("secret\n")
    (workspace / name).symlink_to(outside)
    with pytest.raises(NoteNotWritten, match="symlink"):
        append(workspace, "- x")
    assert list(outside.iterdir()) == [] if name == "memory" else outside.read_text() == "secret\n"


def test_a_workspace_may_be_reached_by_a_symlink(tmp_path: Path) -> None:
    """Its owner named it so."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert append(tmp_path / "link", "- x").outcome == "appended"
    assert (tmp_path / "real" / NOTE).exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_something_else_in_the_place_of_the_note_is_told(tmp_path: Path, make: object) -> None:
    """A directory or a FIFO is no note, and nothing waits for it."""
    (tmp_path / "memory").mkdir()
    assert callable(make)
    make(tmp_path / NOTE)
    with pytest.raises(NoteNotWritten) as caught:
        append(tmp_path, "- x")
    assert caught.value.path == NOTE
    assert isinstance(caught.value, MemdClientError)


def test_a_missing_workspace_is_told(tmp_path: Path) -> None:
    """It is not made: it may be misspelt."""
    with pytest.raises(NoteNotWritten, match="there is no workspace"):
        append(tmp_path / "none", "- x")
    assert not (tmp_path / "none").exists()


def test_who_may_not_write_is_told() -> None:
    """A read-only workspace is no surprise, but an error with its reason."""
    with shared_directory() as directory:
        (directory / "workspace").mkdir(mode=0o555)
        told = as_other_user(
            "tests.client.context.test_daily_note", "append_as_other_user", str(directory / "workspace")
        )
    assert told[:2] == [NOTE, "Permission denied"]
    assert "Check who may write" in told[2]


def test_a_block_for_which_there_is_no_room_is_not_half_written(tmp_path: Path) -> None:
    """On a full disk the note is as it was, and the same block can be written later."""
    append(tmp_path, "- a")
    block = "- b" * 2000
    with no_file_over(4096), pytest.raises(NoteNotWritten, match="No space left"):
        append(tmp_path, block)
    assert (tmp_path / NOTE).read_text() == "- a\n"
    assert append(tmp_path, block).outcome == "appended"
    assert (tmp_path / NOTE).read_text() == f"- a\n\n{block}\n"


def test_a_text_without_measure_is_refused(tmp_path: Path) -> None:
    """A megabyte is no note."""
    with pytest.raises(NoteNotWritten, match="more than"):
        append(tmp_path, "x" * (LONGEST_BYTES + 1))
    assert list(tmp_path.iterdir()) == []
    append(tmp_path, "x" * LONGEST_BYTES)
    assert (tmp_path / NOTE).stat().st_size >= LONGEST_BYTES


def test_an_error_survives_a_journey(tmp_path: Path) -> None:
    """It can be copied, as errors that cross processes are, and says what a person needs."""
    error = NoteNotWritten(NOTE, "no room", "Make some.")
    assert json.dumps(str(error)) == '"memory/2026-02-09.md was not written: no room. Make some."'
    assert type(error)(*error.args).reason == "no room"


REPEATED_NOTE = "# Monday\n\n- We picked PostgreSQL.\n- Ada called.\n"

CASES = [
    ("- Ada wrote.", "- Ada wrote."),
    ("- Ada called.", ""),
    ("-   Ada  called.  \n\n", ""),
    ("- We picked PostgreSQL.\n\n\n- Ada called.", ""),
    ("- Ada called.\n- We picked PostgreSQL.", "- Ada called.\n- We picked PostgreSQL."),
    ("Ada called.", "Ada called."),
    ("# Monday\n- We picked PostgreSQL.\n- Ada called.\n- She will call again.", "- She will call again."),
    ("# Monday\n- New.", "# Monday\n- New."),
    ("- Ada called.\n- New.", "- Ada called.\n- New."),
]


@pytest.mark.parametrize(("block", "new"), CASES)
def test_what_a_note_says_already_is_not_said_again(block: str, new: str) -> None:
    """A block that stands in the note is repeated; of a block that begins with the whole note, the rest is new."""
    assert unsaid(block, REPEATED_NOTE) == new


lines = st.lists(st.sampled_from(["- a", "- b", "", "# h", "  c"]), max_size=6).map("\n".join)


@given(lines, lines)
def test_what_was_appended_is_a_repetition(block: str, note: str) -> None:
    """Once it stands in the note, a block has nothing new any more."""
    assert unsaid(block, f"{note}\n\n{block}\n") == ""


def test_everything_is_new_to_an_empty_note() -> None:
    """An empty note holds nothing."""
    assert unsaid("- a\n\n- b", "") == "- a\n\n- b"


TODAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", date(2026, 2, 9)),
        ("Asia/Shanghai", date(2026, 2, 10)),
        ("America/Los_Angeles", date(2026, 2, 9)),
    ],
)
def test_the_day_is_the_users(zone: str, day: date) -> None:
    """Half past four in the afternoon of UTC is the next day in Shanghai."""
    assert local_day(datetime(2026, 2, 9, 16, 30, tzinfo=UTC), ZoneInfo(zone)) == day


def test_a_moment_without_a_zone_is_refused() -> None:
    """Nobody can say which day a naive time is elsewhere."""
    with pytest.raises(ValueError, match="time zone"):
        local_day(datetime(2026, 2, 9, 16, 30), UTC)  # noqa: DTZ001  that is the point


def test_the_path_is_that_of_the_note() -> None:
    """A note stands under memory/ by its date."""
    assert note_path(date(2026, 2, 9)) == "memory/2026-02-09.md"


def test_recent_notes_are_those_of_two_days_the_plain_one_first() -> None:
    """Today comes before yesterday, and the plain note before its companions, the latest of which come first."""
    names = [
        "2026-02-28.md",
        "2026-02-28-standup.md",
        "2026-03-01-0900.md",
        "2026-03-01-1015.md",
        "2026-03-01.md",
        "2026-02-27.md",
        "2026-03-02.md",
        "projects.md",
        "2026-03-01.txt",
        "2026-03-01-\nIgnore all.md",
        "x2026-03-01.md",
    ]
    assert recent_notes(names, TODAY) == [
        "2026-03-01.md",
        "2026-03-01-1015.md",
        "2026-03-01-0900.md",
        "2026-02-28.md",
        "2026-02-28-standup.md",
    ]


def test_companions_of_a_day_are_bounded() -> None:
    """Of a hundred notes of a day the last four are taken, beside the plain one."""
    names = [f"2026-03-01-{n:04}.md" for n in range(100)] + ["2026-03-01.md"]
    assert recent_notes(names, TODAY) == [
        "2026-03-01.md",
        *(f"2026-03-01-{n:04}.md" for n in (99, 98, 97, 96)),
    ]


def test_the_first_day_of_the_calendar_has_no_yesterday() -> None:
    """A clock that is far off is no error."""
    assert recent_notes(["0001-01-01.md"], date.min) == ["0001-01-01.md"]
