"""Distinguishes a root that is missing for now from one that the configuration has replaced by another.

A root that does not exist keeps its files in the index, since its disk may only be unmounted. Names in a workspace and of
transcripts do not tell which directory they are from, so an index records it. Pure.
"""

from collections.abc import Sequence

import msgspec

from memd.text.memory_paths import is_session


class RootOrigin(msgspec.Struct, frozen=True):
    """A configured place that files of an index may have come from."""

    prefix: str  # of their paths in the index; see memory_paths.prefix_of
    path: str  # as configured: absolute, with its symlinks
    place: str | None  # where it leads; None: it has led to several places

    @property
    def stored(self) -> tuple[str, str, str | None]:
        """The fields, as an index stores them."""
        return self.prefix, self.path, self.place


class OriginChange(msgspec.Struct, frozen=True):
    """How the configured roots differ from those that an index records."""

    record: tuple[RootOrigin, ...]  # what the index is to record from now on
    replaced: frozenset[str]  # prefixes of roots whose files came from another place

    @property
    def covered(self) -> frozenset[str]:
        """The prefixes of all configured roots."""
        return frozenset(origin.prefix for origin in self.record)


def compare(
    recorded: Sequence[RootOrigin], configured: Sequence[RootOrigin], *, is_resolved: bool
) -> OriginChange:
    """Compare the configured roots with those that an index records.

    A root is the same where its configured path is, wherever that leads: a symlink that is on an unmounted disk itself cannot be
    resolved. It is also the same where another path leads to the one place that it has led to.

    Args:
        recorded: What the index records.
        configured: The origins of the configured roots.
        is_resolved: Whether symlinks could be resolved; otherwise the places are the paths as written.
    """
    before = {_key(origin): origin for origin in recorded}
    if is_resolved:
        record = [_with_places(origin, before.get(_key(origin))) for origin in configured]
    else:
        # Prefixes of resolved paths stay; those of unresolved ones may be others.
        wanted = {_key(origin) for origin in configured}
        record = [origin for origin in recorded if _key(origin) in wanted]
        record += [origin for origin in configured if _key(origin) not in before]
    record = sorted(dict.fromkeys(record), key=lambda origin: (origin.prefix, origin.path))
    prefixes = {origin.prefix for origin in record if not origin.prefix.startswith("/")}
    replaced = {
        prefix
        for prefix in prefixes
        if not _is_same(
            [origin for origin in recorded if origin.prefix == prefix],
            [origin for origin in configured if origin.prefix == prefix or not is_resolved],
        )
    }
    return OriginChange(tuple(record), frozenset(replaced))


def _key(origin: RootOrigin) -> tuple[str, str]:
    """What identifies a root in the configuration: its path, and the setting that names it."""
    if not origin.prefix:
        return "workspace", origin.path
    return "sessions" if is_session(f"{origin.prefix}/") else "paths", origin.path


def _with_places(origin: RootOrigin, before: RootOrigin | None) -> RootOrigin:
    if before is None or before.place == origin.place:
        return origin
    return msgspec.structs.replace(origin, place=None)


def _is_same(before: Sequence[RootOrigin], now: Sequence[RootOrigin]) -> bool:
    """Return whether all recorded origins of a prefix are configured still; False if there is none."""
    keys = {_key(origin) for origin in now}
    places = {(_key(origin)[0], origin.place) for origin in now}
    return bool(before) and all(
        _key(one) in keys or (one.place is not None and (_key(one)[0], one.place) in places) for one in before
    )
