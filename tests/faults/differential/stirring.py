"""A process beside a trial that asks without end and writes notes of which nothing is judged: passes run at any moment."""

import contextlib
from pathlib import Path
from random import Random

from memd_client import Client, MemdClientError
from tests.faults.differential.places import NOISE, Places, pause

_WORDS = ("lighthouse", "harbour ledger", "数据库", "wombat", "nothing of that kind")
_STEP_S = 0.03  # between two acts, at most


def be(places: Places) -> int:
    """Be that process until it is killed."""
    rng = Random(places.setting.on_disk)
    while True:
        with contextlib.suppress(MemdClientError), Client(places.socket, timeout=5.0) as client:
            while True:
                _act(places, rng, client)
                pause(_STEP_S * rng.random())


def _act(places: Places, rng: Random, client: Client) -> None:
    notes = [places.root("workspace") / "memory", places.root("extra")]
    file = rng.choice(notes) / f"{NOISE}{rng.randrange(5)}.md"
    kind = rng.random()
    with contextlib.suppress(OSError):
        if kind < 0.2:
            file.write_text(f"noise {rng.random()}\n" * rng.randrange(1, 30), encoding="utf-8")
        elif kind < 0.25:
            file.rename(_other(file, rng))
        elif kind < 0.3:
            file.unlink()
    if kind >= 0.3:
        client.search(rng.choice(_WORDS))


def _other(file: Path, rng: Random) -> Path:
    return file.with_name(f"{NOISE}{rng.randrange(5)}.md")
