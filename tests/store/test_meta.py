"""What an index that was built for something else may be used for until it is rebuilt."""

import apsw
import msgspec
import pytest

from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, miscounted, total, usable_part, why_rebuild
from tests.store.conftest import FINGERPRINT, chunk_of, found_file

WANTED = Fingerprint("c2", "t1", ("memory",), "fake", "small", "k", 8)
STORED = Fingerprint("c1", "t1", ("memory",), "fake", "large", "k", 16)


@pytest.mark.parametrize(
    ("stored", "usable"),
    [
        (STORED, Fingerprint("c1", "t1", ("memory",), "fake", "large", "k", 16, is_mixed=True)),
        (None, Fingerprint("c2", "t1", ("memory",), is_mixed=True)),
    ],
)
def test_what_is_there_is_used_and_what_is_not_is_not_begun(
    stored: Fingerprint | None, usable: Fingerprint
) -> None:
    """Its own text and vectors; where it does not say whose they are, its text."""
    assert usable_part(stored, WANTED) == usable


async def test_what_an_index_says_of_itself_and_cannot_be_read_is_not_said(index: Index) -> None:
    """It is built anew then; mounts that nobody knows cover nothing, and totals that are gone are damage."""
    await index.put_mounts([("/m", "memory/")])
    assert await index.fingerprint() == FINGERPRINT
    assert await index.mounts() == [("/m", "memory/")]

    def spoil(connection: apsw.Connection) -> None:
        connection.execute("UPDATE meta SET value = 'none' WHERE key IN ('fingerprint', 'mounts')")

    await index.database.write(spoil)
    assert await index.fingerprint() is None
    assert await index.mounts() == []
    await index.database.write(lambda connection: connection.execute("DELETE FROM meta").fetchall())
    assert await index.fingerprint() is None
    assert await index.mounts() == []
    await index.database.write(lambda connection: connection.execute("DELETE FROM totals").fetchall())
    with pytest.raises(StoreDamaged, match="how many chunks"):
        await index.database.read(total, "chunks")


async def test_totals_are_those_of_their_tables(index: Index) -> None:
    """Each that is not is told, with what it says."""
    await index.replace(found_file("a.md"), b"1", [chunk_of("one"), chunk_of("two", 2)], {}, frozenset())
    assert await index.database.read(total, "chunks") == 2
    assert await index.database.read(total, "files") == 1
    assert await index.database.read(miscounted) == ()
    await index.database.write(
        lambda one: one.execute("UPDATE totals SET n = 7 WHERE name = 'files'").fetchall()
    )
    assert await index.database.read(miscounted) == ("the number of files is not 7",)


OF_NOTES = Fingerprint("c", "t", ("memory",), redaction="r")
OF_BOTH = Fingerprint("c", "t", ("memory", "sessions"), redaction="r", sessions="s")


@pytest.mark.parametrize(
    ("stored", "wanted", "reason"),
    [
        (None, OF_BOTH, "it does not say what it was built for"),
        (OF_NOTES, OF_BOTH, None),
        (msgspec.structs.replace(OF_NOTES, sessions="old"), OF_BOTH, "sources and sessions changed"),
        (
            msgspec.structs.replace(OF_NOTES, chunking="d"),
            OF_BOTH,
            "chunking and sources and sessions changed",
        ),
        (OF_NOTES, msgspec.structs.replace(OF_NOTES, sources=("memory", "sessions")), "sources changed"),
        (OF_NOTES, msgspec.structs.replace(OF_BOTH, sources=("memory",)), "sessions changed"),
        (OF_NOTES, msgspec.structs.replace(OF_BOTH, sources=("sessions",)), "sources and sessions changed"),
        (OF_NOTES, msgspec.structs.replace(OF_NOTES, provider="p", model="m"), None),
        (
            msgspec.structs.replace(OF_NOTES, provider="p", model="m"),
            msgspec.structs.replace(OF_NOTES, provider="p", model="n"),
            "the embedding model changed from p/m to p/n",
        ),
        (msgspec.structs.replace(OF_NOTES, provider="p", model="m"), OF_NOTES, None),
    ],
)
def test_only_transcripts_are_added_to_what_there_is(
    stored: Fingerprint | None, wanted: Fingerprint, reason: str | None
) -> None:
    """An index that lacks nothing else serves on; without a provider its vectors are left as they are."""
    assert why_rebuild(stored, wanted) == reason
