"""A history of a workspace and of the processes that index it, as data: drawn at random, and repeatable."""

from collections.abc import Mapping
from random import Random

import msgspec

from tests.faults.death import At, Death
from tests.faults.directory import Change, Files, after, draw

_CHANGES = 5  # at most, at once
_LIVES = (1, 2, 2, 3, 3, 4)
_PLACES: tuple[At, ...] = ("statement", "statement", "log", "log", "file")
_FARTHEST: Mapping[At, int] = {"statement": 160, "log": 60, "file": 30}  # most processes do so much
_REBUILDS = 0.15


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """SIGKILL, whatever the process is at."""

    after_ms: float


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """SIGTERM, whatever the process is at."""

    after_ms: float


class Life(msgspec.Struct, frozen=True):
    """Changes that nobody sees, and a process that meets them."""

    before: tuple[Change, ...]
    end: Death | Kill | Stop
    rebuild: bool = False  # the process builds the index anew, too
    during: tuple[Change, ...] = ()  # what changes under its eyes


class Round(msgspec.Struct, frozen=True):
    """Lives that end too early, one after the other, and what changes before the next process comes to its end."""

    lives: tuple[Life, ...]
    last: tuple[Change, ...]


def draw_deaths(rng: Random, files: Files) -> Round:
    """A round of processes that die at places that are counted, in a workspace that holds these files."""
    lives = []
    for _ in range(rng.choice(_LIVES)):
        before = _draw_changes(rng, files)
        files = after_all(files, before)
        rebuild = rng.random() < _REBUILDS
        lives.append(Life(before, _draw_death(rng, rebuild=rebuild), rebuild))
    return Round(tuple(lives), _draw_changes(rng, files) if rng.random() < 0.3 else ())


def draw_restarts(rng: Random, files: Files) -> Round:
    """A round of daemons that are killed and stopped while notes change, in a workspace that holds these files."""
    lives = []
    for _ in range(rng.choice(_LIVES)):
        before = _draw_changes(rng, files) if rng.random() < 0.5 else ()
        during = _draw_changes(rng, after_all(files, before))
        files = after_all(files, before + during)
        lives.append(Life(before, _draw_end(rng), during=during))
    return Round(tuple(lives), _draw_changes(rng, files))


def after_all(files: Files, changes: tuple[Change, ...]) -> dict[str, bytes]:
    """What a workspace holds after some changes."""
    for change in changes:
        files = after(files, change)
    return dict(files)


def _draw_changes(rng: Random, files: Files) -> tuple[Change, ...]:
    changes: list[Change] = []
    for _ in range(rng.randrange(1, _CHANGES + 1)):
        change = draw(rng, files)
        files = after(files, change)
        changes.append(change)
    return tuple(changes)


def _draw_end(rng: Random) -> Death | Kill | Stop:
    kind = rng.randrange(10)
    if kind < 4:
        return _draw_death(rng, rebuild=False)
    after_ms = round(150 * rng.random(), 1)
    return Kill(after_ms) if kind < 8 else Stop(after_ms)


def _draw_death(rng: Random, *, rebuild: bool) -> Death:
    databases = ["main.sqlite"] * 3 + ["embeddings.sqlite"] + ["main.sqlite.next"] * 3 * rebuild
    at = rng.choice(_PLACES)
    # Early places as often as late ones: a process that has little to do never comes to the late ones.
    count = max(1, round(_FARTHEST[at] ** rng.random()))
    return Death(rng.choice(databases), at, count, torn=rng.random() < 0.3)
