"""Lets the disk below a daemon fail at each of its operations in turn, and looks each time what came of it."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from random import Random

import apsw
import msgspec

from tests.faults.failing_day import Day, Told, come_back, embedder, live
from tests.faults.failing_disk import ERRORS, Fault, Lasting, Place, name_of
from tests.faults.process import Ended, Process
from tests.faults.verdict import Diverged, differing, left_behind, unsound
from tests.wait import until

AT_ONCE = 8  # days: most of each is waiting
LIVES_S = 150.0  # until a process counts as hung
STOP_S = 5.0  # what a daemon may take to end, whatever its disk is at
LINES = 250  # of the log of a day: a daemon in trouble says so, and not without end
CPU_S = 5.0  # of a day, beyond what one without trouble takes: to work in vain is no way of waiting
_LASTING: tuple[Lasting, ...] = ("once", "while", "until mended", "until the end")
# What cannot be read, and what may not be on the disk though it was written, is not relied on any more.
_DOUBTFUL = frozenset({"read", "sync"})


class Failures(msgspec.Struct):
    """What happened."""

    days: int = 0
    met: int = 0  # faults that were met: threads do not come to the same operations each time
    failed: int = 0  # operations
    refused: int = 0  # questions that had no answer, but a clear refusal
    warned: int = 0  # answers and reports that named the trouble
    slowest_healing_s: float = 0.0
    slowest_stop_s: float = 0.0
    longest_log: int = 0  # lines
    places: dict[str, int] = {}  # kind of operation and file -> faults that were met there
    errors: dict[str, int] = {}


def run_failures(count: int | None, seed: int, say: Callable[[str], None], directory: Path) -> Failures:
    """Live through days with a fault each.

    Args:
        count: Of days, spread evenly over kinds of operations and files; None: each operation, with each error.
        seed: Of what is left to chance: which operations, for how long.
        say: Told how far it is.
        directory: An empty one, short enough for a socket. What went wrong stays in it.

    Raises:
        Diverged: something went wrong, and what.
    """
    rng = Random(seed)
    sound = [_sound(directory / name, upgrade=upgrade) for name, upgrade in (("new", False), ("old", True))]
    days = _plan(sound, directory, rng)
    tally, said = Failures(), time.monotonic()
    for one in _lived(days if count is None else _first(days, count)):
        _judge(one, next(each for each in sound if each.day.upgrade == one.day.upgrade), tally)
        shutil.rmtree(one.day.directory.parent)
        if time.monotonic() - said > 10:
            said = time.monotonic()
            say(summary(tally))
    say(summary(tally))
    return tally


def summary(tally: Failures) -> str:
    """A line for whoever waits."""
    return (
        f"failures: {tally.met} of {tally.days} days had one, {tally.failed} operations failed, {tally.refused} questions"
        f" refused, {tally.warned} answered with a warning, healed within {tally.slowest_healing_s:.1f} s, ended within"
        f" {tally.slowest_stop_s:.1f} s, at most {tally.longest_log} lines of log; no difference"
    )


# --- what is to happen


class _Sound(msgspec.Struct, frozen=True):
    """A day without a fault."""

    day: Day
    counted: dict[Place, int]
    cpu_s: float


def _sound(directory: Path, *, upgrade: bool) -> _Sound:
    day = _day(directory, None, upgrade=upgrade)
    with_process(partial(live, day), day)
    told = _told(day)
    if told.wrong:
        raise Diverged("without any fault:\n" + "\n".join(told.wrong))
    return _Sound(day, dict(told.counted), told.cpu_s)


def _day(directory: Path, fault: Fault | None, *, upgrade: bool, asks: bool = False) -> Day:
    # Sessions are named by the name of the home: it is the same for all.
    home = directory / "h"
    home.mkdir(parents=True)
    return Day(home, fault, upgrade, asks)


def _plan(sound: Sequence[_Sound], directory: Path, rng: Random) -> Iterator[Day]:
    """Every operation with every error, one of each kind after the other, the numbers of a kind in any order."""
    kinds = []
    for one in sound:
        for (what, file), most in sorted(one.counted.items()):
            numbers = rng.sample(range(1, most + 1), most)
            kinds.append([(one.day.upgrade, what, file, number) for number in numbers])
    rng.shuffle(kinds)
    rounds = chain.from_iterable(zip_longest(*kinds))
    for index, found in enumerate(found for found in rounds if found is not None):
        upgrade, what, file, number = found
        for error in ERRORS[what]:
            lasting = rng.choice(_LASTING)
            fault = Fault(what, file, number, error, lasting, everywhere=rng.random() < 0.5)
            yield _day(directory / f"{index}-{error}", fault, upgrade=upgrade, asks=rng.random() < 0.5)


def _first(days: Iterator[Day], count: int) -> Iterator[Day]:
    for _, day in zip(range(count), days, strict=False):
        yield day


# --- processes


class _Lived(msgspec.Struct, frozen=True):
    """A day that is over."""

    day: Day
    told: Told


class _Running:
    """A day that a process is at, and what comes after it."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self._again = day.fault is not None and day.fault.lasting == "until the end"
        self._process = Process(partial(live, day), day.log, day.directory / "marker")
        self._began = time.monotonic()

    def is_over(self) -> bool:
        """Whether both lives are over that it may have.

        Raises:
            Diverged: one of them did not end as it should.
        """
        ended = self._process.poll()
        if not ended:
            if time.monotonic() - self._began > LIVES_S:
                raise Diverged(f"{_shown(self.day)}: the process has not ended")
            return False
        if ended != Ended(0):
            raise Diverged(f"{_shown(self.day)}: {ended}\n{_log(self.day)[-4000:]}")
        if self._again:
            self._again = False
            self._process = Process(partial(come_back, self.day), self.day.log, self.day.directory / "marker")
            return False
        return True

    def discard(self) -> None:
        """See to it that nothing of it is left."""
        self._process.discard()


def with_process(run: Callable[[], int], day: Day) -> None:
    """Have a process do something to its end.

    Raises:
        Diverged: it failed.
    """
    process = Process(run, day.log, day.directory / "marker")
    try:
        ended = process.wait()
    finally:
        process.discard()
    if ended != Ended(0):
        raise Diverged(f"{_shown(day)}: {ended}\n{_log(day)[-4000:]}")


def _lived(days: Iterator[Day]) -> Iterator[_Lived]:
    """Each day once it is over, some of them at once."""
    running: list[_Running] = []
    try:
        while True:
            while len(running) < AT_ONCE and (day := next(days, None)) is not None:
                running.append(_Running(day))
            if not running:
                return
            over: list[_Running] = until(lambda: [one for one in running if one.is_over()], 2 * LIVES_S)
            for one in over:
                running.remove(one)
                yield _Lived(one.day, _told(one.day))
    finally:
        for one in running:
            one.discard()


def _told(day: Day) -> Told:
    return msgspec.json.decode(day.told.read_bytes(), type=Told)


def _log(day: Day) -> str:
    return day.log.read_text("utf-8", "replace")


def _shown(day: Day) -> str:
    before = "the state of an older program" if day.upgrade else "no state"
    return (
        f"{day.fault}; begun with {before}{', asked for a sync' * day.asks}; everything is in {day.directory}"
    )


# --- what must be


def _judge(one: _Lived, sound: _Sound, tally: Failures) -> None:
    """Look what became of a day.

    Raises:
        Diverged: not what must.
    """
    day, told, lines = one.day, one.told, _log(one.day).count("\n")
    wrong = list(told.wrong)
    try:
        wrong += differing(day.index, sound.day.index, _notes(sound.day), embedder().embed)
        wrong += unsound(day.state / "embeddings.sqlite")
    except (apsw.Error, AssertionError) as failure:
        wrong.append(f"{type(failure).__name__}: {failure}")
    expected = [file.relative_to(sound.day.state).as_posix() for file in sound.day.state.rglob("*")]
    is_doubtful = day.fault is not None and day.fault.what in _DOUBTFUL
    # The copy of before an upgrade stays for a day, unless the index is built anew: it is not known which came first.
    kept = [".damaged-"] * is_doubtful + [".before-schema-"] * day.upgrade
    wrong += [left for left in left_behind(day.state, expected) if not any(name in left for name in kept)]
    wrong += [f"the log has: {line[:400]}" for line in _log(day).splitlines() if _is_bug(line)]
    if lines > LINES:
        wrong.append(f"{lines} lines of log")
    if told.stop_s > STOP_S:
        wrong.append(f"it took {told.stop_s:.1f} s to end")
    if told.cpu_s > sound.cpu_s + CPU_S:
        wrong.append(f"it computed for {told.cpu_s:.1f} s")
    if wrong:
        raise Diverged(f"{_shown(day)}:\n" + "\n".join(wrong[:20]) + f"\n{_log(day)[-6000:]}")
    _count(tally, day, told, lines)


def _count(tally: Failures, day: Day, told: Told, lines: int) -> None:
    tally.days += 1
    tally.met += bool(told.failed)
    tally.failed += told.failed
    tally.refused += told.refused
    tally.warned += told.warned
    tally.slowest_healing_s = max(tally.slowest_healing_s, told.healed_s)
    tally.slowest_stop_s = max(tally.slowest_stop_s, told.stop_s)
    tally.longest_log = max(tally.longest_log, lines)
    if day.fault is not None and told.failed:
        for counted, key in (
            (tally.places, f"{day.fault.what} {day.fault.file}"),
            (tally.errors, name_of(day.fault.error)),
        ):
            counted[key] = counted.get(key, 0) + 1


def _notes(day: Day) -> list[str]:
    workspace = day.directory / "workspace"
    return [file.relative_to(workspace).as_posix() for file in workspace.rglob("*") if file.is_file()]


def _is_bug(line: str) -> bool:
    return '"exception"' in line or "Traceback" in line or '"level":"critical"' in line
