"""What a daemon is at while its power goes, as data: drawn at random, and repeatable."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from tests.faults.directory import Change, Files, after, draw, section

Start = Literal["as it was", "nothing", "older schema", "no header", "bad page", "no cache"]

AT = 1_772_442_000  # 2 March 2026
_STARTS: Mapping[Start, int] = {
    "as it was": 6,
    "nothing": 2,  # everything is indexed for the first time
    "older schema": 1,  # the store of a program of another time is brought up to date
    "no header": 1,  # the index is damaged, and found to be when it is opened
    "bad page": 1,  # the index is damaged, and found to be by who looks for it
    "no cache": 1,  # embeddings.sqlite is damaged
}
_SESSIONS = ("morning", "noon")
_CHECKPOINTS = (4, 16, 64, 4000)  # pages in the log of SQLite, of which a small workspace never makes many


class Said(msgspec.Struct, frozen=True, tag="said"):
    """A transcript has grown by a question and its answer."""

    session: str
    turn: int  # of it; another text each
    seed: int


class Rebuilt(msgspec.Struct, frozen=True, tag="rebuilt"):
    """The index is built anew, and swapped."""


Outside = Change | Said  # what happens to sources
Deed = Outside | Rebuilt


class Night(msgspec.Struct, frozen=True):
    """What happens until the power goes, and after."""

    seed: int  # of where it goes, and what is lost
    start: Start
    checkpoint_pages: int
    before: tuple[Outside, ...]  # nobody sees it happen
    during: tuple[
        tuple[Deed, ...], ...
    ]  # under the eyes of the daemon, which has all of it indexed each time


def draw_night(rng: Random, files: Files, turns: Mapping[str, int], start: Start | None = None) -> Night:
    """A night in a workspace that holds these files, beside transcripts of so many turns."""
    chosen = start or rng.choices(list(_STARTS), list(_STARTS.values()))[0]
    held, said = dict(files), dict(turns)
    before = _draw_deeds(rng, held, said, rng.randrange(1, 6))
    during: list[tuple[Deed, ...]] = [
        _draw_deeds(rng, held, said, rng.randrange(1, 4)) for _ in range(rng.randrange(1, 4))
    ]
    if rng.random() < 0.4:
        at = rng.randrange(len(during))
        during[at] = (*during[at], Rebuilt())
    return Night(rng.randrange(1 << 32), chosen, rng.choice(_CHECKPOINTS), before, tuple(during))


def _draw_deeds(
    rng: Random, files: dict[str, bytes], turns: dict[str, int], count: int
) -> tuple[Outside, ...]:
    deeds: list[Outside] = []
    for _ in range(count):
        if rng.random() < 0.25:
            session = rng.choice(_SESSIONS)
            turns[session] = turns.get(session, 0) + 1
            deeds.append(Said(session, turns[session], rng.randrange(1 << 32)))
            continue
        change = draw(rng, files)
        held = after(files, change)
        files.clear()
        files.update(held)
        deeds.append(change)
    return tuple(deeds)


def say(said: Said, transcripts: Path) -> None:
    """Let a transcript grow."""
    transcripts.mkdir(exist_ok=True)
    text = section(said.seed).decode()
    asked = {
        "role": "user",
        "content": f"{said.turn}. What do you make of this? {text}",
        "timestamp": AT + 60 * said.turn,
    }
    answered = {
        "role": "assistant",
        "content": f"Of {said.turn}: {text}",
        "timestamp": AT + 60 * said.turn + 30,
    }
    with (transcripts / f"{said.session}.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("".join(f"{json.dumps(line)}\n" for line in (asked, answered)))
