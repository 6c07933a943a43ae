"""What a check came to. Pure.

A check that could not be made counts as right and begins with "not checked": nothing is known to be wrong, and whoever
waits for an exit status of 0 (before a daemon runs, on a system without /proc) can get it. Where the reason itself is
trouble, such as a disk that does not answer or a part that crashes, the check is wrong.
"""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a checkup."""

    name: str  # group.check, such as state.directory or agents.main.index
    ok: bool
    detail: str
    fix: str = ""  # what to do about it, in a sentence; empty where all is well


def right(name: str, detail: str) -> Finding:
    """All is well."""
    return Finding(name=name, ok=True, detail=detail)


def wrong(name: str, detail: str, fix: str) -> Finding:
    """Something is to be done."""
    return Finding(name=name, ok=False, detail=detail, fix=fix)


def unchecked(name: str, why: str) -> Finding:
    """The check could not be made, and nobody is to blame."""
    return Finding(name=name, ok=True, detail=f"not checked: {why}")
