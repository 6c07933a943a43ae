"""What is deleted is soon in no file of memd: not in free pages, not in the keyword index, not in the log."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from memd.domain_types import Chunk, Kind, Turn
from memd.maintenance.tasks import MaintenanceTriggers, optimize_keywords, truncate_wal
from memd.store.index import Index
from memd.store.sessions import SessionChange
from tests.maintenance.keeping import keep
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, ranked, vector_of
from tests.wait import until_async

NOTE, SESSION = "memory/quux.md", "sessions/here/zed.jsonl"
# Each stands nowhere else. Parts of words, as the keyword index stores what differs from the word before.
SAID = {
    "a note": b"lighthouse on Kjolvarg",
    "a note in Chinese": "魑魅魍魉的灯塔".encode(),
    "a word of a note": b"olvarg",
    "a character of a note": "魍".encode(),
    "a turn": b"password of the Wyxnzeppel",
    "a turn in Chinese": "饕餮的口令".encode(),
    "a word of a turn": b"yxnzeppel",
    "a character of a turn": "饕".encode(),
    "the name of a note": b"quux",
    "the name of a session": b"zed.jsonl",
    "a vector": vector_of(5)[4:24],
}


def secret_note() -> Chunk:
    return chunk_of("The lighthouse on Kjolvarg 魑魅魍魉的灯塔 is ours. " * 12, context="quux")


def secret_turns() -> SessionChange:
    turn = Turn("t1", "user", 1.0, 1, 2, "The password of the Wyxnzeppel is 饕餮的口令. " * 200)
    return SessionChange(
        found=found_file(SESSION, kind=Kind.SESSION),
        hash=b"h" * 32,
        progress=b"zed.jsonl as it was read",
        turns=[turn],
        chunks=[msgspec.structs.replace(chunk_of(turn.text[:700]), numbers=(1,), turn=0)],
        resume=0,
    )


def left(directory: Path) -> set[str]:
    """What of it is in any file."""
    files = [path.read_bytes() for path in directory.iterdir()]
    return {name for name, said in SAID.items() if any(said in data for data in files)}


@asynccontextmanager
async def remembered(directory: Path, *, late_s: float) -> AsyncIterator[tuple[Index, MaintenanceTriggers]]:
    """An index of many notes, with one of each kind among them that is to be forgotten."""
    index = Index(directory / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    tidy = MaintenanceTriggers(late_s=late_s)
    for number in range(60):
        if number == 30:
            note = secret_note()
            await index.replace(found_file(NOTE), b"1", [note], {note.hash: vector_of(5)}, frozenset())
            await index.replace_sessions([secret_turns()], {}, frozenset())
        chunks = [
            chunk_of(f"number {number} {part} 第{number}号 " * 20, context="weather") for part in range(4)
        ]
        vectors = {chunk.hash: vector_of(number * 9 + 100) for chunk in chunks}
        await index.replace(found_file(f"memory/{number}.md"), b"1", chunks, vectors, frozenset())
    await index.database.truncate_wal()
    assert left(directory) == set(SAID)
    tasks = [
        asyncio.create_task(keep(optimize_keywords(index, tidy))),
        asyncio.create_task(keep(truncate_wal(index, tidy, again_s=0.01))),
    ]
    try:
        yield index, tidy
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await index.close()


async def test_what_was_taken_out_is_in_no_file(tmp_path: Path) -> None:
    """Neither while the daemon runs nor afterwards; what is still there is found as before."""
    async with remembered(tmp_path, late_s=3600.0) as (index, tidy):
        await index.remove([NOTE, SESSION])
        tidy.note()
        await until_async(lambda: not left(tmp_path), 20)
        assert len(await ranked(index, '"weather"', 400, frozenset(Kind))) == 240
    assert left(tmp_path) == set()


async def test_a_few_changes_are_enough_after_a_while(tmp_path: Path) -> None:
    """An edit that takes a line out needs no hundred others; nor does one that an earlier life did not come to."""
    async with remembered(tmp_path, late_s=0.05) as (index, tidy):
        await until_async(lambda: _is_idle(tidy), 20)
        edited = chunk_of("The lighthouse is ours.", context="weather")
        await index.replace(found_file(NOTE), b"2", [edited], {}, frozenset())
        await index.remove([SESSION])
        tidy.note(2)
        await until_async(lambda: left(tmp_path) == {"the name of a note"}, 20)


def _is_idle(tidy: MaintenanceTriggers) -> bool:
    return not tidy.is_due


async def test_what_was_moved_to_the_end_is_in_no_file_either(tmp_path: Path) -> None:
    """A note that is written anew again and again leaves none of its versions."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    for number in range(30):
        text = f"version {hashlib.sha256(bytes([number])).hexdigest()} 第{number}版 " * 60
        await index.replace(found_file("memory/a.md"), bytes([number]), [chunk_of(text)], {}, frozenset())
    while await index.tidy_keywords(begin=True):
        pass
    await index.close()
    data = (tmp_path / "main.sqlite").read_bytes()
    there = [n for n in range(30) if hashlib.sha256(bytes([n])).hexdigest()[8:40].encode() in data]
    assert there == [29]
