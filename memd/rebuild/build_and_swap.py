"""An index built anew beside the one that serves, then put in its place."""

import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memd.indexing.run_pass import PassRunner
from memd.store import quarantine
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint

_NAME = ".next"


def beside(file: Path) -> Path:
    """Where the new index is built."""
    return file.with_name(f"{file.name}{_NAME}")


def discard(index: Index) -> None:
    """Delete what is built beside an index, half or whole: its vectors are in the cache, the rest is quick to do again.

    Raises:
        StoreUnavailable: it is still there.
    """
    file = beside(index.file)
    try:
        quarantine.remove(file)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be deleted: {error.strerror}") from error


def discard_all(directory: Path) -> None:
    """Delete whatever daemons that were killed have built beside indexes, also of agents that are configured no more.

    Args:
        directory: Of the indexes. Nothing has any of them open.
    """
    with contextlib.suppress(OSError):  # what can be read alone is left as it is
        for file in list(directory.glob(f"*.sqlite{_NAME}*")):
            file.unlink(missing_ok=True)


async def rebuild(
    index: Index,
    fingerprint: Fingerprint,
    runner: PassRunner,
    *,
    embed: Callable[[Index], Awaitable[None]],
    swap: Callable[[], str | None],
) -> None:
    """Build and swap; the old index serves searches and edits until then.

    What a killed attempt left behind is deleted first.

    Args:
        index: The index that serves.
        fingerprint: What the new one is built for.
        runner: Brings an index up to date with the disk: once at leisure, and once more while nobody writes to the index that
            serves, for what changed meanwhile.
        embed: Has the new index embedded as far as it is worth waiting for.
        swap: Called when the new index is about to take its place, which nothing must interrupt: what is wrong with the
            file of the index that serves, which is then set aside.

    Raises:
        StoreUnavailable, StoreDamaged: the old index goes on serving.
    """
    discard(index)
    file = beside(index.file)
    new = Index(file, like=index)
    try:
        await new.open()
        await new.adopt(fingerprint)
        # Microseconds since 1970: above any id that the old index gave or gives, so that no late vector or search
        # takes one chunk for another.
        await new.start_ids_at(time.time_ns() // 1000)
        await runner.fill(new)
        await embed(new)
        async with runner.writing:
            await runner.fill(new)
            await index.become(new, damage=swap())
    finally:
        await new.close()
        with contextlib.suppress(StoreUnavailable):  # the next attempt, and the next start, begin with it
            discard(index)
