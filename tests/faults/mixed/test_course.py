from random import Random

import msgspec

from tests.faults.death import Death
from tests.faults.mixed.course import AtStart, Course, KillWorker, Life, Rebuild, Reload, draw


def drawn(seed: int) -> list[Course]:
    """Some courses, one after the other."""
    rng = Random(seed)
    return [draw(rng) for _ in range(80)]


def test_the_same_seed_draws_the_same_courses() -> None:
    """A run is repeated by its seed, and another seed makes another."""
    assert drawn(3) == drawn(3) != drawn(4)


def test_a_course_is_read_as_it_was_written() -> None:
    """What led to a failure can be kept in a file, and repeated from it."""
    courses = drawn(5)
    assert msgspec.json.decode(msgspec.json.encode(courses), type=list[Course]) == courses


def test_daemons_end_in_every_way() -> None:
    """At every kind of place, in the swap, at the start and twice in a row, with workers killed and settings changed."""
    lives: list[Life] = [life for course in drawn(1) for life in course.lives]
    assert {type(life.end).__name__ for life in lives} == {"AtStart", "Kill", "Stop", "Death"}
    places = {(life.end.database, life.end.at) for life in lives if isinstance(life.end, Death)}
    assert ("main.sqlite", "swap") in places
    for database in ("main.sqlite", "notes.sqlite", "embeddings.sqlite"):
        assert {(database, at) for at in ("statement", "log", "file")} <= places
    assert any(database.endswith(".next") for database, _ in places)
    in_a_row = [
        (one, other)
        for course in drawn(1)
        for one, other in zip(course.lives, course.lives[1:], strict=False)
        if isinstance(one.end, AtStart) and isinstance(other.end, AtStart)
    ]
    assert in_a_row
    events = {type(event).__name__ for life in lives for event in life.events}
    assert events == {KillWorker.__name__, Rebuild.__name__, Reload.__name__}
    assert {life.form for life in lives} == {"usual", "coarse", "more", "stricter"}
