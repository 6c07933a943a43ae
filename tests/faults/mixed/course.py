"""A history of daemons that are killed while many ask and write, as data: drawn at random, and repeatable."""

from collections.abc import Mapping
from random import Random
from typing import Literal

import msgspec

from tests.faults.death import At, Death
from tests.faults.rounds import Kill, Stop

Form = Literal["usual", "coarse", "more", "stricter", "broken"]
"""What the configuration says: as at the end, larger chunks, one more agent, one more rule, nothing that can be read."""

_LIVES = (2, 3, 3, 4, 5)
_FORMS: tuple[Form, ...] = ("usual", "usual", "usual", "coarse", "more", "stricter")
_DATABASES = ("main.sqlite", "main.sqlite", "notes.sqlite", "embeddings.sqlite")
_PLACES: tuple[At, ...] = ("statement", "statement", "log", "log", "file")
_FARTHEST: Mapping[At, float] = {
    "statement": 900,
    "log": 250,
    "file": 60,
    "swap": 12,
}  # a life under load does about so much
_STARTING_MS = 220.0  # about what it takes until a daemon answers


class AtStart(msgspec.Struct, frozen=True, tag="at_start"):
    """SIGKILL, counted from the moment at which the process begins: before it answers, most of the time."""

    after_ms: float


class Reload(msgspec.Struct, frozen=True, tag="reload"):
    """Another configuration and SIGHUP, counted from the moment at which the daemon answers."""

    after_ms: float
    form: Form


class KillWorker(msgspec.Struct, frozen=True, tag="kill_worker"):
    """SIGKILL for the process that embeds, alone."""

    after_ms: float


class Rebuild(msgspec.Struct, frozen=True, tag="rebuild"):
    """The index is to be built anew."""

    after_ms: float
    force: bool


Event = Reload | KillWorker | Rebuild
End = Death | AtStart | Kill | Stop


class Life(msgspec.Struct, frozen=True):
    """What a daemon finds, what happens to it, and how it ends."""

    form: Form  # of the configuration that it starts with
    events: tuple[Event, ...]  # in order
    end: End


class Course(msgspec.Struct, frozen=True):
    """Lives one after the other, beside one process that writes and asks through all of them."""

    seed: int  # of what is written and asked
    lives: tuple[Life, ...]


def draw(rng: Random) -> Course:
    """A course, of which every kind of kill is a part now and then."""
    lives: list[Life] = []
    for _ in range(rng.choice(_LIVES)):
        end = _draw_end(rng)
        lives.append(Life(_draw_form(rng), _draw_events(rng, end), end))
        if isinstance(end, AtStart):
            # A service manager starts the next one at once, and that one has no better luck.
            lives.append(Life(lives[-1].form, (), AtStart(_draw_start_ms(rng))))
    return Course(rng.randrange(1 << 32), tuple(lives))


def _draw_form(rng: Random) -> Form:
    return rng.choice(_FORMS)


def _draw_end(rng: Random) -> End:
    kind = rng.random()
    if kind < 0.16:
        return AtStart(_draw_start_ms(rng))
    if kind < 0.54:
        return Kill(round(500 * rng.random(), 1))
    if kind < 0.62:
        return Stop(round(400 * rng.random(), 1))
    if kind < 0.74:
        return Death("main.sqlite", "swap", _draw_count(rng, "swap"), torn=rng.random() < 0.3)
    at = rng.choice(_PLACES)
    database = rng.choice(_DATABASES) + (".next" if rng.random() < 0.2 else "")
    if database == "embeddings.sqlite.next":
        database = "main.sqlite.next"
    return Death(database, at, _draw_count(rng, at), torn=rng.random() < 0.3)


def _draw_start_ms(rng: Random) -> float:
    return round(_STARTING_MS * rng.random(), 1)


def _draw_count(rng: Random, at: At) -> int:
    # Early places as often as late ones: a process that has little to do never comes to the late ones.
    return max(1, round(float(_FARTHEST[at] ** rng.random())))


def _draw_events(rng: Random, end: End) -> tuple[Event, ...]:
    if isinstance(end, AtStart):
        return ()
    events: list[Event] = []
    if isinstance(end, Death) and (end.at == "swap" or end.database.endswith(".next")):
        events.append(Rebuild(round(60 * rng.random(), 1), force=rng.random() < 0.3))
    elif rng.random() < 0.2:
        events.append(Rebuild(round(200 * rng.random(), 1), force=rng.random() < 0.5))
    if rng.random() < 0.3:
        events.append(
            Reload(round(300 * rng.random(), 1), _draw_form(rng) if rng.random() < 0.8 else "broken")
        )
    if rng.random() < 0.35:
        events.append(KillWorker(round(300 * rng.random(), 1)))
    return tuple(sorted(events, key=lambda event: event.after_ms))
