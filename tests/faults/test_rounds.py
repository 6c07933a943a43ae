from collections.abc import Callable
from random import Random

import msgspec
import pytest

from tests.faults.directory import Files
from tests.faults.rounds import Kill, Life, Round, Stop, after_all, draw_deaths, draw_restarts

Draw = Callable[[Random, Files], Round]


def drawn(draw: Draw, seed: int) -> list[Round]:
    """Some rounds, one after the other."""
    rng = Random(seed)
    files: Files = {}
    rounds = []
    for _ in range(60):
        one = draw(rng, files)
        for life in one.lives:
            files = after_all(files, life.before + life.during)
        files = after_all(files, one.last)
        rounds.append(one)
    return rounds


@pytest.mark.parametrize("draw", [draw_deaths, draw_restarts])
def test_the_same_seed_draws_the_same_rounds(draw: Draw) -> None:
    """A run is repeated by its seed, and another seed makes another."""
    assert drawn(draw, 3) == drawn(draw, 3) != drawn(draw, 4)


@pytest.mark.parametrize("draw", [draw_deaths, draw_restarts])
def test_a_history_is_read_as_it_was_written(draw: Draw) -> None:
    """What led to a failure can be kept in a file, and repeated from it."""
    rounds = drawn(draw, 5)
    assert msgspec.json.decode(msgspec.json.encode(rounds), type=list[Round]) == rounds


def test_processes_end_in_every_way() -> None:
    """Deaths come in all databases and places, kills and stops at all times."""
    lives: list[Life] = [life for one in drawn(draw_deaths, 1) for life in one.lives]
    deaths = {(life.end.database, life.end.at) for life in lives if not isinstance(life.end, Kill | Stop)}
    for database in ("main.sqlite", "main.sqlite.next", "embeddings.sqlite"):
        assert {(database, at) for at in ("statement", "log", "file")} <= deaths
    ends = [life.end for one in drawn(draw_restarts, 1) for life in one.lives]
    assert {type(end).__name__ for end in ends} == {"Death", "Kill", "Stop"}
