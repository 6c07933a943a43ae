"""What must be true of an index after everything: the same as of one that is made anew."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import apsw
import numpy as np

from memd.domain_types import embedded_text
from memd.providers.provider import Vectors
from tests.daemon.contents import Content, contents, differences

Embed = Callable[[Sequence[str]], Vectors]

_SHOWN = 20  # differences, of however many


class Diverged(AssertionError):
    """An index is not what a fresh one is, or a process did not do what it should."""


def differing(main: Path, fresh: Path, notes: Iterable[str], embed: Embed) -> list[str]:
    """Where an index differs from a fresh one, from the notes that are there, or from what the embedder gives.

    Args:
        main: The file of the index.
        fresh: That of one that was made anew.
        notes: The paths that are to be in it, beside those of transcripts.
        embed: What gives the vectors of all chunks.
    """
    found = contents(main)
    wrong = differences(found, contents(fresh))
    memory = {path for path in found if not path.startswith("sessions/")}
    wrong += [f"{path} is indexed, or is not, against the rules" for path in sorted(set(notes) ^ memory)]
    return wrong + _misplaced(found, embed)


def _misplaced(found: Mapping[str, list[Content]], embed: Embed) -> list[str]:
    """The chunks without the vector that the embedder gives for them."""
    chunks = [chunk for path, each in found.items() if not path.endswith(" (turns)") for chunk in each]
    without = [chunk for chunk in chunks if chunk.vector is None]
    if not without and chunks:
        expected = embed([embedded_text(chunk.context, chunk.text) for chunk in chunks])
        far = (
            np.abs(np.array([chunk.vector for chunk in chunks]) - expected).max(axis=1) > 4e-5
        )  # as the cache has them
        without = [chunk for chunk, is_far in zip(chunks, far, strict=True) if is_far]
    return [f"{chunk.text[:40]!r} has not its vector" for chunk in without]


def misplaced_parts(main: Path, embed: Embed) -> list[str]:
    """The parts of chunks without the vector that the embedder gives for them, where parts are embedded."""
    connection = apsw.Connection(str(main))
    connection.set_busy_timeout(10_000)
    try:
        rows = connection.execute(
            "SELECT substr(text, first + 1, last - first), parts.vector FROM parts JOIN chunks ON chunks.id = chunk_id"
        ).fetchall()
    finally:
        connection.close()
    texts = [str(text) for text, _ in rows]
    expected = embed(texts) if texts else ()
    return [
        f"part {text[:40]!r} has not its vector"
        for text, (_, vector), wanted in zip(texts, rows, expected, strict=True)
        if not isinstance(vector, bytes)
        or len(vector) != 2 * len(wanted)
        or np.abs(np.frombuffer(vector, "<f2") - wanted).max() > 1e-3
    ]


def left_behind(state: Path, expected: Iterable[str]) -> list[str]:
    """What is in a state directory and should not be.

    Args:
        state: The directory, of a daemon that has ended in order.
        expected: What may be there, by the path below it.
    """
    found = {file.relative_to(state).as_posix() for file in state.rglob("*") if file.is_file()}
    return [f"{name} was left behind" for name in sorted(found - set(expected))]


def unsound(database: Path) -> list[str]:
    """What is wrong with a database by itself."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(10_000)
    try:
        found = connection.execute("PRAGMA integrity_check").get
    finally:
        connection.close()
    return [] if found == "ok" else [f"{database.name} is damaged: {found}"]


def require_none(wrong: list[str]) -> None:
    """Go on, if nothing is wrong.

    Raises:
        Diverged: with what is.
    """
    if wrong:
        raise Diverged("\n".join(wrong[:_SHOWN]))
