"""What a pass has to do: from what the index knows and what the disk shows."""

from collections.abc import Mapping

import msgspec

from memd.model import FoundFile, Kind
from memd.sources.losses import gone
from memd.sources.scan import Anchor, Scan
from memd.store.files import KnownFile


class Plan(msgspec.Struct, frozen=True):
    """The work of one pass."""

    read: tuple[FoundFile, ...]  # new or changed as far as their stamps tell; the most wanted first
    remove: tuple[str, ...]  # indexed, and gone from the disk


def plan(known: Mapping[str, KnownFile], before: Mapping[str, Anchor], scan: Scan, *, force: bool) -> Plan:
    """Compare what is known with what is there.

    Args:
        known: What the index holds of the places that were scanned.
        before: The anchors of the roots as an earlier scan left them.
        scan: What is there now.
        force: Read every file, whatever its stamp says.
    """
    read = [
        found
        for path, found in scan.found.items()
        if force or path not in known or known[path].stamp != found.stamp or known[path].kind != found.kind
    ]
    read.sort(key=lambda found: (found.kind is not Kind.CURATED, -found.stamp.mtime_ns, found.path))
    return Plan(tuple(read), tuple(sorted(gone(known, before, scan))))
