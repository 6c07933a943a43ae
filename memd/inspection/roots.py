"""Examines the roots of an agent on disk, as a scan of the daemon sees them."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from memd.config.settings import AgentSettings
from memd.inspection.probe import Disk, InspectedDatabase, InspectedRoot, PresetNotes, RootsScan
from memd.sources.roots import roots_of
from memd.sources.safe_open import SourceError
from memd.sources.scan import scan
from memd.sources.scan_result import SkipReason
from memd.sources.transcripts.database_reader import list_sessions
from memd.text.memory_paths import (
    ExtraDirectory,
    Root,
    SessionPaths,
    admits,
    is_session,
    only_file,
    parts_below,
)
from memd.text.transcript_files import is_database
from memd.watch.mounts import Mount, concerning, parsed, read_mounts
from memd.watch.watch_plan import plan_watches

_NAMED = 3  # files that are named; the rest is counted
_AHEAD_S = 300  # a clock that is set only now and then may be wrong by so much


def look_at_roots(agent: str, settings: AgentSettings, now: float, state: Path) -> Iterator[Path | RootsScan]:
    """Yield each path before it is accessed, and at last the facts about an agent's roots and their files.

    Args:
        agent: The agent's id.
        settings: The agent's settings.
        now: Unix time.
        state: The state directory, whose files are never sources.
    """
    roots = []
    for path in [settings.workspace, *(path for path in settings.extra_paths if path != settings.workspace)]:
        yield path
        roots.append(_root(path, is_workspace=path == settings.workspace))
    yield settings.workspace
    parts = roots_of(settings, state=state)
    transcript_roots = []
    for root in parts:
        if isinstance(root, SessionPaths):
            yield root.directory
            if root.expected or root.directory.exists():
                transcript_roots.append(_root(root.directory / (only_file(root) or ""), is_workspace=False))
    yield settings.workspace
    seen = scan(parts, max_bytes=int(settings.max_file_mb * 1_000_000))
    files = [found.location for found in seen.found.values()]
    closed = [_place_of(name) for name, why in seen.skipped.items() if why is SkipReason.UNREADABLE]
    closed += [file for file in files if not os.access(file, os.R_OK)]
    late_ns = int((now + _AHEAD_S) * 1e9)
    late = [found for found in seen.found.values() if found.stamp.mtime_ns > late_ns]
    future = [found.location if found.kind.is_session else found.path for found in late]
    transcripts = sum(found.kind.is_session for found in seen.found.values())
    yield RootsScan(
        agent=agent,
        roots=tuple(roots),
        notes=len(files) - transcripts,
        presets=_presets(parts, settings, state),
        transcript_roots=tuple(transcript_roots),
        transcripts=transcripts,
        databases=tuple(_databases(parts)),
        unreadable=_some(closed),
        unreadable_count=len(closed),
        skipped=dict(Counter(str(why) for why in seen.skipped.values() if why is not SkipReason.UNREADABLE)),
        future=_some(future),
        future_count=len(future),
        directories=len(plan_watches(parts, recursive=False).flat),
    )


def _root(path: Path, *, is_workspace: bool) -> InspectedRoot:
    place = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - a symlink is followed below
    resolved = os.path.realpath(place)
    mount = _mount_of(Path(resolved))
    return InspectedRoot(
        path=str(place),
        resolved=resolved,
        is_workspace=is_workspace,
        fault=_fault(place, is_workspace=is_workspace),
        remote=mount.kind if mount is not None and mount.is_remote else None,
    )


def _presets(parts: Iterable[Root], settings: AgentSettings, state: Path) -> tuple[PresetNotes, ...]:
    """Return which of the searched notes are from presets for other programs."""
    own = set(roots_of(msgspec.structs.replace(settings, memory_presets=()), state=state))
    return tuple(
        PresetNotes(
            directory=str(root.directory),
            way=root.way if isinstance(root, ExtraDirectory) else (),
            file=only_file(root),
        )
        for root in parts
        if root not in own and not isinstance(root, SessionPaths)
    )


_DATABASES = {"openclaw": "*/*/*.sqlite", "opencode": "*.db"}


def _databases(roots: Iterable[Root]) -> Iterator[InspectedDatabase]:
    for root in roots:
        if not isinstance(root, SessionPaths) or root.layout not in _DATABASES:
            continue
        for file in sorted(root.directory.glob(_DATABASES[root.layout])):
            parts = parts_below(root, file)
            if parts and admits(root, parts) and is_database(root.layout, parts):
                yield _database(root, file, parts)


def _database(root: SessionPaths, file: Path, parts: tuple[str, ...]) -> InspectedDatabase:
    try:
        listing = list_sessions(root, parts)
    except SourceError as failure:
        return InspectedDatabase(file=str(file), fault=failure.reason)
    return InspectedDatabase(
        file=str(file),
        version=listing.version,
        is_open=listing.is_live,
        sessions=len(listing.sessions),
        shared=sum(session.is_shared for session in listing.sessions),
        subagents=sum(session.is_subagent for session in listing.sessions),
    )


def disk_of(path: Path) -> Disk | None:
    """Return the file system of a directory, which need not exist; None if the system does not say."""
    mount = _mount_of(Path(os.path.realpath(path)))
    return None if mount is None else Disk(kind=mount.kind, point=str(mount.point), is_remote=mount.is_remote)


def _mount_of(path: Path) -> Mount | None:
    return concerning([ExtraDirectory(path)], parsed(read_mounts())).get(path)


def _fault(path: Path, *, is_workspace: bool) -> str | None:
    """Return why a root cannot be read, or None."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a symlink that leads nowhere" if path.is_symlink() else "does not exist"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"
    if stat.S_ISDIR(mode):
        if os.access(path, os.R_OK | os.X_OK):
            return None
        return "cannot be read by this user"
    if is_workspace:
        return "is not a directory"
    if not stat.S_ISREG(mode):
        return "is neither a file nor a directory"
    return None if os.access(path, os.R_OK) else "cannot be read by this user"


def _place_of(name: str) -> str:
    """Return the path of a name in a scan: the name below a root of transcripts has "sessions/LABEL" before the absolute path."""
    return f"/{name.split('/', 2)[2]}" if is_session(name) else name


def _some(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_NAMED])
