"""The order of tests in a worker: those that wait are spread among those that compute.

With `--dist worksteal`, each worker begins with a part of the list of tests. In the order of their names, the tests of daemons
stand together: once all others are done, the workers wait for daemons side by side, and the processor has nothing to do for half
of the time.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
File = TypeVar("File", bound=Hashable)


def spread(
    items: Sequence[Item], file_of: Callable[[Item], File], is_slow: Callable[[File], bool]
) -> list[Item]:
    """Return the items in an order in which slow files lie evenly among the others.

    The items of one file stay together, and in their order, since they may share a daemon; so do slow files, and all others,
    among themselves.

    Args:
        items: Those of one file need not stand together.
        file_of: The file of an item.
        is_slow: Whether the items of a file are of the kind that waits.
    """
    files: dict[File, list[Item]] = {}
    for item in items:
        files.setdefault(file_of(item), []).append(item)
    totals = Counter[bool]()
    for file, its_items in files.items():
        totals[is_slow(file)] += len(its_items)
    before = Counter[bool]()
    middles: dict[File, float] = {}  # where the middle of a file lies among those of its kind, from 0 to 1
    for file, its_items in files.items():
        kind = is_slow(file)
        middles[file] = (before[kind] + len(its_items) / 2) / totals[kind]
        before[kind] += len(its_items)
    return [item for file in sorted(files, key=middles.__getitem__) for item in files[file]]
