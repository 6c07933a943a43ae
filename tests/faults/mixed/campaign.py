"""Courses of daemons that are killed while others ask and write; after each the indexes must be like fresh ones."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import apsw
import msgspec

from memd_client import MemdClientError
from tests.faults import history
from tests.faults.life import TIMEOUT_S
from tests.faults.mixed import daemons, outside
from tests.faults.mixed.course import Course, draw
from tests.faults.mixed.household import Household
from tests.faults.mixed.judging import Secrets, come_to_rest, judge, look_around, secrets
from tests.faults.mixed.tally import Tally, summary, told
from tests.faults.process import Ended
from tests.faults.verdict import Diverged
from tests.wait import until

_EVERY_S = 10.0  # between two lines that tell how far it is

Say = Callable[[str], object]


def run(kills: int, seed: int, say: Say) -> Tally:
    """Live through courses until so many daemons were killed.

    Args:
        kills: How many.
        seed: Of all that is left to chance.
        say: Given a line now and then.

    Raises:
        Diverged: with all that led there.
    """
    rng, tally = Random(seed), Tally()
    said = time.monotonic()
    hidden = secrets()
    while tally.kills < kills:
        _live_through(draw(rng), hidden, tally)
        if time.monotonic() - said > _EVERY_S:
            said = time.monotonic()
            say(summary(tally))
    for line in told(tally):
        say(line)
    return tally


def replay(rounds: bytes, say: Say) -> Tally:
    """Live through a history once more.

    Raises:
        Diverged: with all that led there.
    """
    tally, hidden = Tally(), secrets()
    for course in msgspec.json.decode(rounds, type=list[Course]):
        _live_through(course, hidden, tally)
    for line in told(tally):
        say(line)
    return tally


def _live_through(course: Course, hidden: Secrets, tally: Tally) -> None:
    household = Household(history.scratch())
    household.make()
    try:
        _live(household, course, hidden, tally)
    except (AssertionError, OSError, apsw.Error, MemdClientError) as difference:
        told = f"seen after {tally.rounds} rounds without:\n{_shown(course)}\n{difference}"
        raise history.keep("mixed", [course], household.directory, told) from difference
    tally.rounds += 1
    shutil.rmtree(household.directory)


def _shown(course: Course) -> str:
    lines = [f"    one writes and asks, seed {course.seed}"]
    for life in course.lives:
        lines += [
            f"    a daemon starts ({life.form}) and ends: {life.end}",
            *(f"        {event}" for event in life.events),
        ]
    return "\n".join(lines)


def _live(household: Household, course: Course, hidden: Secrets, tally: Tally) -> None:
    beside = partial(outside.be, household, course, hidden.texts)
    with daemons.started(beside, household.outside, household.outside.with_suffix(".marker")) as other:
        for life in course.lives:
            daemons.live(household, life, tally)
            look_around(household, hidden)
            if other.let_be(0):
                raise Diverged(f"the process beside ended:\n{daemons.tail(household.outside)}")
        until(lambda: household.begun.exists() or other.let_be(0), TIMEOUT_S)
        os.kill(other.pid, outside.ENOUGH)
        until(lambda: household.quiet.exists() or other.let_be(0), TIMEOUT_S)
        household.configure("usual", fresh=True)
        with daemons.started(
            partial(daemons.serve, household, None), household.log, household.marker
        ) as last:
            daemons.first_answer(household, last, TIMEOUT_S, tally.starts)
            if (end := other.wait()) != Ended(0):
                raise Diverged(f"the process beside: {end}\n{daemons.tail(household.outside)}")
            come_to_rest(household)
            if (end := last.terminate_after(0)) != Ended(0):
                raise Diverged(f"the daemon that was to stop: {end}\n{daemons.tail(household.log)}")
    seen = msgspec.json.decode(household.seen.read_bytes(), type=outside.Seen)
    look_around(household, hidden)
    judge(household, seen, hidden)
    for counted, more in ((tally.answered, seen.met.answered), (tally.cut, seen.met.cut)):
        counted.update(Counter(counted) + Counter(more))
    tally.judged += seen.met.judged
    tally.known += seen.known
    tally.changes += seen.changes
