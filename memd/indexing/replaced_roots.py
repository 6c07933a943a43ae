"""Removes from an index what came from roots that the configuration does not name any more, before anybody searches it."""

import asyncio
import contextlib
from collections.abc import Mapping

import structlog

from memd.domain_types import FoundFile
from memd.indexing.run_pass import remove_in_parts
from memd.runtime.threads import Threads
from memd.sources.origins import OriginChange, RootOrigin, compare
from memd.sources.roots import ConfiguredRoots
from memd.sources.safe_open import SourceError
from memd.sources.scan import scan
from memd.store.errors import StoreUnavailable
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.text.memory_paths import is_under_any, prefix_of

log = structlog.get_logger()

SCAN_S = 5.0  # how long the start of an agent waits for a scan of its new roots


async def remove_replaced(agent: str, index: Index, configured: ConfiguredRoots, max_bytes: int) -> None:
    """Remove what came from other roots than the configured ones, and record the configured ones.

    Of a root that another has replaced only those files stay that are the same, as after the directory was moved. An index that
    does not record its roots keeps all.

    Args:
        agent: The agent's id.
        index: Its index, open; nobody searches it yet.
        configured: Its roots.
        max_bytes: Notes that are larger are not indexed.

    Raises:
        StoreUnavailable: the files cannot be removed now.
        StoreDamaged.
    """
    stored = await index.origins()
    recorded = None if stored is None else [RootOrigin(*one) for one in stored]
    change = compare(recorded or (), configured.origins, is_resolved=configured.is_resolved)
    if recorded is None:
        if not configured.is_resolved and (await index.counts()).files:
            return  # the next start knows better
    elif change.record == tuple(recorded):
        return
    else:
        known = await index.known()
        found = await _scanned(agent, configured, change, max_bytes)
        gone = sorted(path for path in known if _leaves(known[path], found.get(path), change))
        if gone:
            await remove_in_parts(index, gone)
            log.info("agent.roots_replaced", agent=agent, removed=len(gone))
    # After the removal: if the process is killed in between, the next start removes again.
    with contextlib.suppress(StoreUnavailable):
        await index.put_origins([origin.stored for origin in change.record])


async def _scanned(
    agent: str, configured: ConfiguredRoots, change: OriginChange, max_bytes: int
) -> Mapping[str, FoundFile]:
    """Return the files below replaced roots; none if the disk does not answer."""
    roots = [root for root in configured.roots if prefix_of(root) in change.replaced]
    if not roots or not configured.is_resolved:
        return {}
    try:
        async with asyncio.timeout(SCAN_S):
            seen = await Threads(1, f"memd-roots-{agent}").run(scan, roots, max_bytes=max_bytes)
    except (TimeoutError, SourceError):
        return {}
    return seen.found


def _leaves(known: KnownFile, found: FoundFile | None, change: OriginChange) -> bool:
    if not is_under_any(known.path, change.covered):
        return True
    if not is_under_any(known.path, change.replaced):
        return False
    # The stamp of a session in a database has no inode: another database may have the same.
    return (
        found is None or not known.stamp.inode or known.stamp != found.stamp or known.kind is not found.kind
    )
