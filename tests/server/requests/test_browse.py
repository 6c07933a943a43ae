"""What an index holds, told to its owner alone: through a daemon, with notes and transcripts as they are on disk."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from memd_client import AsyncClient, RequestFailed
from memd_client.messages import Chunks, Duplicates, Failure, Files, NoteLines, Reply, Request, Turns
from tests.bounds import shipped
from tests.daemon import chats
from tests.daemon.inprocess import running, write
from tests.fakes.homes import ClaudeCode
from tests.server.stranger import Stranger

FILES = shipped("memd.server.requests.browse.MAX_FILES")
ENTRIES = shipped("memd.server.requests.browse.MAX_ENTRIES")
PAIRS = shipped("memd.server.requests.browse.MAX_PAIRS")
PAGE_CHARS = shipped("memd.server.requests.browse.MAX_PAGE_CHARS")
# Made up; the rules know its form.
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def home() -> Iterator[Path]:
    """Notes of three days in three folders, one superseded, and a transcript in which a token was pasted."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        write(home, "MEMORY.md", "# Memory\n\nWe picked PostgreSQL.\n")
        write(home, "memory/2026-02-09.md", "# Monday\n\nLighthouse painted. #work/paint\n")
        write(
            home,
            "memory/2026-02-11.md",
            "---\nstatus: superseded\nsuperseded-by: 2026-02-12\n---\nWednesday.\n",
        )
        write(home, "memory/ops/2026-02-10.md", "# Tuesday\n\nServer moved.\n")
        write(home, "memory/ops/深/笔记 1.md", "# 笔记\n\n没有日期。\n")
        write(home, "memory/private.txt", "not a note")
        session = chats.begun(home, "Which database?", f"My token is {TOKEN}, keep it safe.")
        session.assistant("PostgreSQL, as we\nwrote down.", at=chats.AT + 300)
        yield home


@pytest.fixture
async def client(home: Path) -> AsyncIterator[AsyncClient]:
    """A client of a daemon that has read everything."""
    async with running(home, settings=f"{chats.settings(home)}\ntimezone = 'UTC'") as one:
        await one.sync(vectors=False)
        yield one


async def test_files_by_folder(client: AsyncClient) -> None:
    """A folder has its files, and its folders with what lies below them; a page ends within it and the next goes on."""
    top = await client.files(folder="")
    assert ([file.path for file in top.files], top.folders, top.total) == (
        ["MEMORY.md"],
        {"memory/": 4, "sessions/": 1},
        6,
    )
    memory = await client.files(folder="memory/")
    assert memory.folders == {"memory/ops/": 2}
    assert [file.path for file in memory.files] == ["memory/2026-02-09.md", "memory/2026-02-11.md"]
    assert (memory.agent, memory.total, memory.next) == ("main", 4, None)
    first = await client.files(folder="memory/", max_files=2)
    assert (first.folders, [file.path for file in first.files]) == (
        {"memory/ops/": 2},
        ["memory/2026-02-09.md"],
    )
    rest = await client.files(folder="memory/", max_files=2, after=first.next)
    assert ([file.path for file in rest.files], rest.folders, rest.next) == (
        ["memory/2026-02-11.md"],
        {},
        None,
    )
    assert (await client.files(folder="memory/ops/深/")).files[0].path == "memory/ops/深/笔记 1.md"
    assert (await client.files(folder="nowhere/")).total == 0


async def test_files_by_day(client: AsyncClient, home: Path) -> None:
    """The newest first: by what the note says of itself, else by the disk; with size, tags and what replaced it."""
    listed = await client.files(sort="time")
    assert [file.date for file in listed.files[-3:]] == ["2026-02-11", "2026-02-10", "2026-02-09"]
    assert [file.file_date for file in listed.files] == [True, True, False, False, False, False]
    by_path = {file.path: file for file in listed.files}
    monday = by_path["memory/2026-02-09.md"]
    stat = os.stat(home / "workspace" / "memory/2026-02-09.md")  # noqa: PTH116 - of a local file
    assert (monday.size, round(monday.modified - stat.st_mtime, 3)) == (stat.st_size, 0)
    assert (monday.chunks, monday.tags, monday.source) == (1, ["work/paint"], "memory")
    wednesday = by_path["memory/2026-02-11.md"]
    assert (wednesday.superseded, wednesday.superseded_by) == (True, "2026-02-12")
    [session] = (await client.files(source="sessions")).files
    assert (session.source, session.date) == ("sessions", "2026-03-02")
    pages, after = [], None
    for _ in range(6):
        page = await client.files(sort="time", max_files=1, after=after)
        pages += page.files
        after = page.next
    assert (pages, after) == (listed.files, None)


async def test_files_are_filtered_as_hits_are(client: AsyncClient) -> None:
    """By time, tag and path together."""
    some = await client.files(since="2026-02-10", until="2026-02-11")
    assert [file.path for file in some.files] == ["memory/2026-02-11.md", "memory/ops/2026-02-10.md"]
    assert [file.path for file in (await client.files(tags="work")).files] == ["memory/2026-02-09.md"]
    globbed = await client.files(path=["memory/ops/**", "!memory/ops/深/"])
    assert [file.path for file in globbed.files] == ["memory/ops/2026-02-10.md"]


async def test_a_transcript_as_chunks_and_as_turns(client: AsyncClient) -> None:
    """What was taken out of it is counted by kind, and its value is in no answer."""
    [session] = (await client.files(source="sessions")).files
    said = await client.turns(session.path)
    assert [(turn.role, turn.at) for turn in said.turns] == [
        ("user", chats.AT),
        ("user", chats.AT + 60),
        ("assistant", chats.AT + 300),
    ]
    assert said.turns[2].text == "PostgreSQL, as we\nwrote down."
    assert (said.total, said.next) == (3, None)
    cut = await client.chunks(session.path)
    assert (cut.source, cut.missing, sum(cut.redacted.values())) == ("sessions", False, 1)
    assert TOKEN not in str(said) + str(cut)
    assert "Which database?" in cut.chunks[0].text
    one = await client.turns(session.path, skip=1, max_turns=1)
    assert (one.turns, one.next) == ([said.turns[1]], 2)


async def test_a_note_as_chunks(client: AsyncClient, home: Path) -> None:
    """Pages in the order of the lines, with the lines of each part; a note has no turns."""
    sections = [
        f"## Part {number}\n\n" + f"Sentence {number} about the sea. " * 12 + "\n" for number in range(30)
    ]
    write(home, "memory/long.md", "# Long\n\n" + "\n".join(sections))
    whole = await client.chunks("memory/long.md", max_chunks=ENTRIES)
    assert whole.total == len(whole.chunks) > 10
    assert [chunk.start_line for chunk in whole.chunks] == sorted(chunk.start_line for chunk in whole.chunks)
    for chunk in whole.chunks:
        assert all(chunk.start_line <= first <= last <= chunk.end_line for first, last in chunk.windows)
    assert any(chunk.windows for chunk in whole.chunks)
    first = await client.chunks("memory/long.md", max_chunks=4)
    second = await client.chunks("memory/long.md", skip=4, max_chunks=4)
    assert (first.next, first.chunks + second.chunks) == (4, whole.chunks[:8])
    assert (await client.turns("memory/long.md")).missing


async def test_a_page_of_text_is_bounded(client: AsyncClient, home: Path) -> None:
    """Long turns come one to a page, and of one that is longer than a page the rest is counted."""
    session = ClaudeCode(home).session("/home/li/long", at=chats.AT)
    chats.say(session, "a" + "b" * PAGE_CHARS, "x" * (PAGE_CHARS - 10), "y" * 11)
    await client.sync(vectors=False)
    path = chats.name_of(session)
    first = await client.turns(path)
    [turn] = first.turns
    assert (len(turn.text), turn.cut, first.next) == (PAGE_CHARS, 1, 1)
    second = await client.turns(path, skip=1)
    assert ([len(turn.text) for turn in second.turns], second.next) == ([PAGE_CHARS - 10], 2)


async def test_what_is_superseded_and_what_is_a_copy(client: AsyncClient, home: Path) -> None:
    """Each beside the other: what is superseded first, then copies, the earlier first; a note that is there once has none."""
    said = "The harbour crane was repaired on the second pier after the storm of that week, by Ann and Bob."
    write(home, "memory/2026-02-12.md", f"# Thursday\n\n{said}\n")
    write(home, "memory/ops/2026-02-14.md", f"# Thursday\n\n{said}\n")
    write(
        home,
        "memory/ops/2026-02-13.md",
        f"# Thursday\n\n{said.replace('Ann', 'Zoe').replace('second', 'third')}\n",
    )
    write(home, "memory/2026-03-01.md", "---\nstatus: archived\n---\nOld.\n")
    write(home, "memory/2026-03-02.md", "---\nreplaced-by: '[[nowhere]]'\n---\nOlder.\n")
    write(home, "memory/深.md", "港口的起重机在那一周的风暴之后由安和鲍勃修好了,在第二个码头。\n")
    write(home, "memory/ops/深2.md", "港口的起重机在那一周的风暴之后由安和鲍勃修好了,在第二个码头!\n")
    found = await client.duplicates()
    assert (found.agent, found.more) == ("main", False)
    told = [
        (pair.why, pair.one.path, None if pair.other is None else pair.other.path, pair.by)
        for pair in found.pairs
    ]
    assert told[:3] == [
        ("superseded", "memory/2026-02-11.md", "memory/2026-02-12.md", "2026-02-12"),
        ("superseded", "memory/2026-03-01.md", None, None),
        ("superseded", "memory/2026-03-02.md", None, "[[nowhere]]"),
    ]
    assert told[3] == ("copy", "memory/2026-02-12.md", "memory/ops/2026-02-14.md", None)
    assert [{one, other} for why, one, other, _ in told[4:]] == [{"memory/深.md", "memory/ops/深2.md"}]
    assert found.pairs[3].one == NoteLines(path="memory/2026-02-12.md", start_line=1, end_line=3)


async def test_copies_are_told_once_and_up_to_a_number(client: AsyncClient, home: Path) -> None:
    """Of a note that is there often each with one other, and no more than a page shows."""
    for number in range(PAIRS + 3):
        write(
            home,
            f"memory/many/{number:03}.md",
            f"# Plan {number // 3}\n\nStep {number // 3} of it was done by Ann today.\n",
        )
    found = await client.duplicates()
    copies = [pair for pair in found.pairs if pair.why == "copy"]
    assert not found.more
    assert len(copies) == len({pair.one.path for pair in copies}) == 2 * (PAIRS + 3) // 3
    for number in range(PAIRS + 3):
        write(
            home,
            f"memory/again/{number:03}.md",
            f"# Plan {number // 3}\n\nStep {number // 3} of it was done by Ann today.\n",
        )
    found = await client.duplicates()
    assert (len(found.pairs), found.more) == (PAIRS, True)


@pytest.mark.parametrize(
    "path", ["memory/private.txt", "../config.toml", "/etc/passwd", "memory", "", "MEMORY.md\0"]
)
async def test_what_is_not_indexed_is_missing(client: AsyncClient, path: str) -> None:
    """By whatever name."""
    assert (await client.chunks(path)).missing
    assert (await client.turns(path)).missing


@pytest.mark.parametrize(
    "key", ["agent:main:main", "main", "agent:main:telegram:direct:7", "agent:main:telegram:group:7", ""]
)
async def test_a_session_is_denied(client: AsyncClient, home: Path, key: str) -> None:
    """Any: a list of all files is for the owner, in a request without a key."""
    path = "MEMORY.md"
    asked = (
        Files(session_key=key),
        Chunks(path=path, session_key=key),
        Turns(path=path, session_key=key),
        Duplicates(session_key=key),
    )
    for reply in await asyncio.to_thread(_answers, home, asked):
        assert isinstance(reply, Failure)
        assert (reply.code, reply.message) == ("denied", "only the owner may do this")
    assert (await client.files()).total == 6


def _answers(home: Path, requests: Sequence[Request]) -> list[Reply]:
    with Stranger(home / "s") as stranger:
        stranger.greet()
        stranger.ask(*requests)
        return list(stranger.hear_some(len(requests)).values())


async def test_what_is_out_of_range_is_refused(client: AsyncClient) -> None:
    """With the name of the field."""
    for asked, name in (
        (client.files(max_files=0), "max_files"),
        (client.files(max_files=FILES + 1), "max_files"),
        (client.files(folder="memory"), "folder"),
        (client.files(after="x y"), "after"),
        (client.files(tags=" "), "only"),
        (client.files(since="lst week"), "since"),
        (client.chunks("MEMORY.md", max_chunks=ENTRIES + 1), "max_chunks"),
        (client.chunks("MEMORY.md", skip=-1), "skip"),
        (client.turns("MEMORY.md", max_turns=0), "max_turns"),
        (client.turns("MEMORY.md", skip=-1), "skip"),
    ):
        with pytest.raises(RequestFailed, match=name) as refused:
            await asked
        assert refused.value.code == "bad_request"
    assert (await client.files(max_files=FILES)).total == 6
    with pytest.raises(RequestFailed) as unknown:
        await client.files("nobody")
    assert unknown.value.code == "unknown_agent"
