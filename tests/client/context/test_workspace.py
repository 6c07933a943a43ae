import os
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memd.text import memory_paths
from memd_client.context.bootstrap import (
    PRIVATE,
    PRIVATE_ELSEWHERE,
    Ends,
    Limits,
    Missing,
    Unreadable,
    Whole,
    WorkspaceFile,
)
from memd_client.context.session_kind import SessionKind
from memd_client.context.workspace import bootstrap_workspace, read_workspace
from tests.otheruser import as_other_user, shared_directory

NOW = datetime(2026, 2, 9, 12, 0, tzinfo=UTC)
SHARED: tuple[SessionKind, ...] = ("group", "channel", "unknown")
KINDS: tuple[SessionKind, ...] = (*SHARED, "subagent", "cron")


def read(
    workspace: Path, kind: SessionKind = "main", limits: Limits | None = None
) -> dict[str, WorkspaceFile]:
    files = read_workspace(workspace, kind, NOW, UTC, limits or Limits())
    return {file.name: file for file in files}


def states_as_other_user(workspace: str) -> dict[str, str]:
    """What becomes of each file; run as another user."""
    made = bootstrap_workspace(workspace, "main", NOW, UTC)
    return {part.name: part.state for part in made.parts}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with everything in it."""
    for name in ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "MEMORY.md"):
        (tmp_path / name).write_text(f"I am {name}.\n")
    (tmp_path / "memory").mkdir()
    for day in ("2026-02-07", "2026-02-08", "2026-02-09", "2026-02-09-standup"):
        (tmp_path / "memory" / f"{day}.md").write_text(f"Note of {day}.\n")
    return tmp_path


def test_the_main_session_gets_memory_and_the_latest_notes(workspace: Path) -> None:
    """Today and yesterday, with their companions, and not the day before."""
    made = bootstrap_workspace(workspace, "main", NOW, UTC)
    assert [part.name for part in made.parts if part.state == "whole"] == [
        "AGENTS.md",
        "SOUL.md",
        "TOOLS.md",
        "IDENTITY.md",
        "USER.md",
        "MEMORY.md",
        "memory/2026-02-09.md",
        "memory/2026-02-09-standup.md",
        "memory/2026-02-08.md",
    ]
    assert "I am MEMORY.md." in made.text
    assert "Note of 2026-02-07" not in made.text


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_session_gets_memory_or_notes(workspace: Path, kind: SessionKind) -> None:
    """What others may read along holds nothing of them."""
    made = bootstrap_workspace(workspace, kind, NOW, UTC)
    assert "I am AGENTS.md." in made.text
    assert "MEMORY" not in made.text
    assert "Note of" not in made.text
    assert ("I am USER.md." in made.text) == (kind == "cron")


def test_the_day_is_the_users(workspace: Path) -> None:
    """At noon of UTC it is already tomorrow on Kiritimati."""
    files = read_workspace(workspace, "main", NOW, ZoneInfo("Pacific/Kiritimati"))
    assert [file.name for file in files if file.name.startswith("memory/")] == [
        "memory/2026-02-09.md",
        "memory/2026-02-09-standup.md",
    ]


def test_missing_notes_are_quiet(tmp_path: Path) -> None:
    """A day without a note, or a workspace without memory/, is usual."""
    (tmp_path / "AGENTS.md").write_text("a")
    assert all(not name.startswith("memory") for name in read(tmp_path))


def test_a_missing_workspace_is_all_missing_files(tmp_path: Path) -> None:
    """The agent goes on, and its prompt says what is missing."""
    made = bootstrap_workspace(tmp_path / "none", "main", NOW, UTC)
    assert {part.state for part in made.parts} == {"missing"}
    assert "[MISSING] Expected at: AGENTS.md" in made.text


def test_the_older_name_of_memory_is_read_where_the_newer_is_not(workspace: Path) -> None:
    """memory.md stands in for MEMORY.md, and never beside it."""
    (workspace / "memory.md").write_text("I am the older one.")
    older_too = (workspace / "memory.md").samefile(workspace / "MEMORY.md")
    assert "memory.md" not in read(workspace)
    if not older_too:
        (workspace / "MEMORY.md").unlink()
        assert read(workspace)["memory.md"] == Whole("memory.md", "I am the older one.")
        assert "memory.md" not in read(workspace, "group")


def test_of_a_huge_file_only_the_ends_are_read(workspace: Path) -> None:
    """100 MB of AGENTS.md cost what can be shown, in memory and in time."""
    size = 100 << 20
    with (workspace / "AGENTS.md").open("wb") as file:
        file.write("开始".encode() * 20_000)
        file.truncate(size - 30_001)
        file.seek(0, os.SEEK_END)
        file.write("结束".encode() * 5_000 + b".")
    tracemalloc.start()
    try:
        file_read = read(workspace)["AGENTS.md"]
        made = bootstrap_workspace(workspace, "main", NOW, UTC)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert isinstance(file_read, Ends)
    assert file_read.size_bytes == size
    assert file_read.beginning.startswith("开始" * 10_000)
    assert file_read.end.endswith("结束" * 5_000 + ".")
    assert len(file_read.beginning) >= 20_000
    agents = made.parts[0]
    assert (agents.state, agents.raw, agents.raw_unit) == ("truncated", size, "bytes")
    assert len(made.text) <= 60_000


def test_the_ends_begin_and_stop_between_characters(workspace: Path) -> None:
    """A character that lies across the border of what is read is left out, not broken."""
    for shift in range(4):
        (workspace / "SOUL.md").write_text("x" * shift + "数" * 1_000, encoding="utf-8")
        file = read(workspace, limits=Limits(file_chars=50))["SOUL.md"]
        assert isinstance(file, Ends)
        assert set(file.beginning) | set(file.end) <= {"x", "数"}
        assert len(file.beginning) >= 50
        assert len(file.end) >= 50


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-16", "utf-8"])
@pytest.mark.parametrize("shift", range(4))
def test_the_ends_of_a_long_file_are_decoded_as_a_short_one_is(
    workspace: Path, encoding: str, shift: int
) -> None:
    """Whatever editor saved it, and to its last byte; some lines are of a program that appends UTF-8."""
    text = f"{'x' * shift}\n" + "- 我们的新机器明天到，先放在家里。\n" * 300 + "!"
    data = text.encode(encoding)
    if encoding != "utf-16":
        data += (appended := "\n- 10:15 agent wrote: 带上报告。").encode()
        text += appended
    (workspace / "SOUL.md").write_bytes(data)
    file = read(workspace, limits=Limits(file_chars=200))["SOUL.md"]
    assert isinstance(file, Ends)
    assert len(file.beginning) >= 200
    assert len(file.end) >= 200
    assert text.startswith(file.beginning)
    assert text.endswith(file.end)


ENCODED = [
    (b"caf\xe9\n", "caf\ufffd\n"),
    (b"\xef\xbb\xbfhello", "hello"),
    ("héllo".encode("utf-16"), "héllo"),
    (b"\xfe\xff" + "héllo".encode("utf-16-be"), "héllo"),
    ("- 我们的新机器\n".encode("gbk"), "- 我们的新机器\n"),
    (b"a\0b", "a\ufffdb"),
    (b"", ""),
    (b"end \xe6\x95", "end \ufffd"),
]


@pytest.mark.parametrize(("data", "text"), ENCODED)
def test_any_bytes_are_text_for_a_prompt(workspace: Path, data: bytes, text: str) -> None:
    """What is no UTF-8 is read as far as it goes; byte order marks and NUL do not reach the prompt."""
    (workspace / "SOUL.md").write_bytes(data)
    assert read(workspace)["SOUL.md"] == Whole("SOUL.md", text)


@pytest.mark.parametrize("target", ["CLAUDE.md", "./CLAUDE.md", "docs/agents/CLAUDE.MD"])
def test_a_symlink_to_a_markdown_file_of_the_workspace_is_read(workspace: Path, target: str) -> None:
    """AGENTS.md is CLAUDE.md for many people; whoever reads along may see it."""
    (workspace / target).parent.mkdir(parents=True, exist_ok=True)
    (workspace / target).write_text("Be kind.\n")
    (workspace / "AGENTS.md").unlink()
    (workspace / "AGENTS.md").symlink_to(target)
    for kind in ("main", *KINDS):
        assert read(workspace, kind)["AGENTS.md"] == Whole("AGENTS.md", "Be kind.\n")


@pytest.mark.parametrize("target", ["MEMORY.md", "USER.md", "memory/2026-02-09.md", "memory/deep/old.md"])
def test_a_symlink_to_what_is_private_is_not_followed_for_others(workspace: Path, target: str) -> None:
    """Neither MEMORY.md nor USER.md nor a note gets to a group under another name; the owner may read them."""
    (workspace / "memory" / "deep").mkdir()
    (workspace / target).write_text("for the owner alone")
    (workspace / "TOOLS.md").unlink()
    (workspace / "TOOLS.md").symlink_to(target)
    for kind in (*SHARED, "subagent"):
        assert isinstance(read(workspace, kind)["TOOLS.md"], Unreadable)
        assert "for the owner alone" not in bootstrap_workspace(workspace, kind, NOW, UTC).text
    assert read(workspace)["TOOLS.md"] == Whole("TOOLS.md", "for the owner alone")


@pytest.mark.parametrize(
    "target",
    [
        "Memory.md",
        "sub/MEMORY.md",
        "sub/user.md",
        "GEMINI.md",
        "a/memory_summary.md",
        "sub/Memory/x.md",
        "MEMORY.sync-conflict-20261123-161318-BTMRC5A.md",
        "sub/user (1).md",
    ],
)
def test_a_symlink_to_what_is_called_like_it_is_not_followed_for_others(workspace: Path, target: str) -> None:
    """In any case of letters, at any depth: as the daemon hides it."""
    (workspace / target).parent.mkdir(parents=True, exist_ok=True)
    (workspace / target).write_text("for the owner alone")
    (workspace / "TOOLS.md").unlink()
    (workspace / "TOOLS.md").symlink_to(target)
    for kind in SHARED:
        assert isinstance(read(workspace, kind)["TOOLS.md"], Unreadable)
        assert "for the owner alone" not in bootstrap_workspace(workspace, kind, NOW, UTC).text
    assert read(workspace)["TOOLS.md"] == Whole("TOOLS.md", "for the owner alone")


def test_all_that_the_daemon_hides_is_private() -> None:
    """By its name."""
    assert {name.casefold() for name in (*PRIVATE, *PRIVATE_ELSEWHERE)} == memory_paths.OF_OWNER


def test_what_memory_leads_to_is_private_too(workspace: Path) -> None:
    """MEMORY.md and memory/ that are symlinks themselves keep their targets from a group."""
    (workspace / "MEMORY.md").rename(workspace / "CLAUDE.md")
    (workspace / "MEMORY.md").symlink_to("CLAUDE.md")
    (workspace / "memory").rename(workspace / "days")
    (workspace / "memory").symlink_to("days")
    for name, target in (("AGENTS.md", "CLAUDE.md"), ("SOUL.md", "days/2026-02-09.md")):
        (workspace / name).unlink()
        (workspace / name).symlink_to(target)
    files = read(workspace, "group")
    assert isinstance(files["AGENTS.md"], Unreadable)
    assert isinstance(files["SOUL.md"], Unreadable)
    assert read(workspace)["MEMORY.md"] == Whole("MEMORY.md", "I am MEMORY.md.\n")


AWAY = ["{outside}", "../{name}/secret.md", "away/secret.md", "chain.md", "SOUL.md", ".env", "/", ".."]


@pytest.mark.parametrize("target", AWAY)
def test_a_symlink_that_leads_elsewhere_is_not_followed(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    """Out of the workspace, over other symlinks, to what is not Markdown; the prompt says what is wrong."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_text("the secret")
    (workspace / "away").symlink_to(outside)
    (workspace / "chain.md").symlink_to(outside / "secret.md")
    (workspace / ".env").write_text("the secret")
    (workspace / "SOUL.md").unlink()
    (workspace / "SOUL.md").symlink_to(target.format(outside=outside / "secret.md", name=outside.name))
    made = bootstrap_workspace(workspace, "main", NOW, UTC)
    assert "the secret" not in made.text
    states = {part.name: part.state for part in made.parts}
    assert (states["SOUL.md"], states["AGENTS.md"]) == ("unreadable", "whole")
    assert "[UNREADABLE] SOUL.md: it is a symlink, and does not lead straight to a Markdown file" in made.text


def test_a_note_that_is_a_symlink_is_not_read(workspace: Path) -> None:
    """As it is not indexed, and not written."""
    (workspace / "memory" / "2026-02-09.md").unlink()
    (workspace / "memory" / "2026-02-09.md").symlink_to("2026-02-07.md")
    assert isinstance(read(workspace)["memory/2026-02-09.md"], Unreadable)


def test_a_symlink_to_nothing_is_missing(workspace: Path) -> None:
    """The prompt names the file that the agent needs."""
    (workspace / "AGENTS.md").unlink()
    (workspace / "AGENTS.md").symlink_to("CLAUDE.md")
    assert read(workspace)["AGENTS.md"] == Missing("AGENTS.md")


def test_a_directory_of_notes_that_is_a_symlink_is_not_followed(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Notes come from the workspace."""
    (workspace / "memory").rename(tmp_path_factory.mktemp("outside") / "memory")
    (workspace / "memory").symlink_to(tmp_path_factory.getbasetemp())
    assert isinstance(read(workspace)["memory/"], Unreadable)


@pytest.mark.parametrize("private", ["MEMORY.md", "memory.md", "USER.md"])
def test_a_private_file_under_another_name_is_not_read(workspace: Path, private: str) -> None:
    """A hard link of MEMORY.md is MEMORY.md; the main session may read it."""
    (workspace / private).write_text("for the owner alone")
    (workspace / "SOUL.md").unlink()
    (workspace / "SOUL.md").hardlink_to(workspace / private)
    for kind in SHARED:
        assert isinstance(read(workspace, kind)["SOUL.md"], Unreadable)
    assert read(workspace, "main")["SOUL.md"] == Whole("SOUL.md", "for the owner alone")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_told_and_not_waited_for(workspace: Path, make: object) -> None:
    """A FIFO has no text, and nobody may ever write to it."""
    (workspace / "AGENTS.md").unlink()
    assert callable(make)
    make(workspace / "AGENTS.md")
    assert isinstance(read(workspace)["AGENTS.md"], Unreadable)


def test_what_may_not_be_read_is_told() -> None:
    """A file or a directory without permission is unreadable, and everything else is there."""
    with shared_directory() as directory:
        for name, mode in (("AGENTS.md", 0o644), ("SOUL.md", 0o000)):
            (directory / name).write_text("text")
            (directory / name).chmod(mode)
        (directory / "memory").mkdir(mode=0o700)
        told = as_other_user("tests.client.context.test_workspace", "states_as_other_user", str(directory))
    assert (told["AGENTS.md"], told["SOUL.md"], told["memory/"]) == ("whole", "unreadable", "unreadable")


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    """It is neither empty nor an error."""
    assert read(tmp_path)["AGENTS.md"] == Missing("AGENTS.md")


def test_a_naive_time_is_refused(tmp_path: Path) -> None:
    """Without a zone nobody knows which note is today's."""
    with pytest.raises(ValueError, match="time zone"):
        read_workspace(tmp_path, "main", NOW.replace(tzinfo=None), UTC)
