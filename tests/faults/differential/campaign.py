"""Trials of random steps, one after the other until the time is over; a step that makes a difference is made small and told."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

import msgspec

from memd_client import MemdClientError
from tests.faults import history
from tests.faults.differential import stirring
from tests.faults.differential.daemons import Daemon, complete, tail
from tests.faults.differential.judging import Judge, Tally, counted, printed_wrong
from tests.faults.differential.places import Places, Setting, pause, places
from tests.faults.differential.steps import (
    Act,
    Away,
    Back,
    Down,
    Drawer,
    Files,
    Reindex,
    Reload,
    Sync,
    Talk,
    Up,
)
from tests.faults.differential.truth import Truth, look
from tests.faults.process import Process
from tests.faults.verdict import Diverged, require_none
from tests.wait import until

_STEPS = (40, 80, 140, 200)  # of a trial, before the last comparison
_EVERY_S = 30.0  # between two lines that tell how far it is
_SHRINKS_S = 90.0  # what is spent on a shorter list of steps
_REPEATS = 3  # of a trial that made a difference, to see whether it is one of chance

Say = Callable[[str], object]


class Trial(msgspec.Struct, frozen=True):
    """All that happens in one scratch directory."""

    seed: int
    setting: Setting
    acts: tuple[Act, ...]


def run(minutes: float, seed: int, say: Say) -> Tally:
    """Make trials until the time is over, one at least: of this seed, then of the one after it.

    Args:
        minutes: How long.
        seed: Of the first trial.
        say: Given a line now and then.

    Raises:
        Diverged: with the seed of the trial, and all that led there.
    """
    tally = Tally()
    began = said = time.monotonic()
    while not tally.trials or time.monotonic() - began < 60 * minutes:
        _draw_and_live(seed + tally.trials, tally, say)
        tally.trials += 1
        if time.monotonic() - said > _EVERY_S:
            said = time.monotonic()
            say(tally.summary())
    say(tally.summary())
    say("    " + ", ".join(f"{name} {count}" for name, count in sorted(tally.steps.items())))
    return tally


def replay(rounds: bytes, say: Say) -> Tally:
    """Make a trial once more that was kept.

    Raises:
        Diverged: it makes a difference again.
    """
    tally = Tally()
    for trial in msgspec.json.decode(rounds, type=list[Trial]):
        where = places(trial.setting)
        try:
            _live(where, trial.seed, trial.acts, tally)
        except _DIFFERENCES as difference:
            raise Diverged(
                f"{difference}\nEverything is in {where.directory} and {where.sources}."
            ) from difference
        _remove(where)
        tally.trials += 1
    say(tally.summary())
    return tally


_DIFFERENCES = (AssertionError, MemdClientError)


def _draw_and_live(seed: int, tally: Tally, say: Say) -> None:
    rng = Random(seed)
    setting = Setting(
        on_disk=rng.random() < 0.5,
        slow=rng.random() < 0.3,
        stirred=rng.random() < 0.3,
        sessions=rng.random() < 0.7,
        vectors=rng.random() < 0.8,
    )
    steps = rng.choice(_STEPS)
    where = places(setting)
    done: list[Act] = []
    try:
        _live(where, seed, _drawn(rng, steps), tally, done)
    except _DIFFERENCES as difference:
        trial = Trial(seed, setting, tuple(done))
        kept = history.keep(
            "differential", [trial], where.directory, f"seed {seed}, step {len(done)}: {difference}"
        )
        say(f"{difference}\nMaking it smaller ...")
        raise Diverged(f"{kept}\n{_shown(_smaller(trial, say))}") from difference
    _remove(where)


def _remove(where: Places) -> None:
    shutil.rmtree(where.directory)
    shutil.rmtree(where.sources, ignore_errors=True)


# Given the files of a trial, its acts; each is carried out before the next one is taken.
_Acts = Callable[[Files], Iterable[Act]]


def _drawn(rng: Random, steps: int) -> _Acts:
    def draw(files: Files) -> Iterator[Act]:
        drawer = Drawer(rng, files)
        for _ in range(12):
            yield Act(drawer.draw_change(), judged=False)
            if files.places.setting.sessions:
                yield Act(Talk(rng.randrange(1 << 32)), judged=False)
        yield Act(Up())
        for _ in range(steps):
            yield drawer.draw()
        yield Act(Up())
        yield Act(Back("extra"))
        yield Act(Back("workspace"))
        yield Act(Sync(force=False, compare=True))

    return draw


def _live(
    where: Places, seed: int, acts: _Acts | Sequence[Act], tally: Tally, done: list[Act] | None = None
) -> None:
    """Let all of it happen.

    Args:
        where: New places.
        seed: Of the trial.
        acts: Drawn as it goes, or known.
        tally: Of what happens.
        done: What was begun is added here.

    Raises:
        AssertionError, MemdClientError: a difference, or a daemon that does not do what it should.
    """
    where.configure("usual")
    files, daemon = Files(where, seed), Daemon(where)
    judge = Judge(where, Random(seed), tally)
    with _stirred(where) as stirrer:
        course = _Course(where, files, daemon, judge, stirrer)
        try:
            for act in acts(files) if callable(acts) else acts:
                if done is not None:
                    done.append(act)
                course.happen(act, tally)
            daemon.stop(kill=False)
        finally:
            files.close()
            daemon.stop(kill=True)
    require_none(printed_wrong(where.log))


class _Course:
    """A trial as it goes."""

    def __init__(
        self, where: Places, files: Files, daemon: Daemon, judge: Judge, stirrer: "_Stirrer"
    ) -> None:
        self._where = where
        self._files = files
        self._daemon = daemon
        self._judge = judge
        self._stirrer = stirrer

    def happen(self, act: Act, tally: Tally) -> None:
        """Let an act happen, and judge what can be asked after it."""
        what = act.what
        counted(tally.steps, type(what).__name__)
        pause(act.rest_ms / 1000)
        match what:
            case Down():
                self._daemon.stop(kill=what.kill)
                self._files.is_watched = False
                self._files.lose_sight()
                tally.kills += what.kill
            case Up() if not self._daemon.runs:
                self._daemon.start()
                self._files.is_watched = True
                tally.starts += 1
            case Up():
                pass
            case Reload() | Reindex() | Sync():
                if self._daemon.runs:
                    self._serve(what)
                return
            case _:
                tally.idle += not self._files.carry_out(what)
        # What was known of a root when it goes is known from here alone.
        if self._daemon.runs and (act.judged or isinstance(what, Away | Back)):
            self._judge.judge(self._daemon.client, self._now())

    def _serve(self, what: Reload | Reindex | Sync) -> None:
        match what:
            case Reload():
                self._daemon.reload(what.form)
                self._files.lose_sight()
            case Reindex():
                self._daemon.client.reindex()
            case Sync():
                self._sync(what)
                return
        self._judge.judge(self._daemon.client, self._now())

    def _sync(self, sync: Sync) -> None:
        if sync.compare:
            self._files.sessions.finish()
        with self._stirrer.paused():
            complete(self._daemon.client, force=sync.force)
            self._files.all_is_seen()
            now = self._now()
            self._judge.judge(self._daemon.client, now, synced=True)
            if sync.compare:
                self._judge.compare(self._daemon.client, now)

    def _now(self) -> Truth:
        return look(self._where, self._files.sessions.words(), self._files.untold)


class _Stirrer:
    """The process that asks and writes beside, if there is one."""

    def __init__(self, process: Process | None) -> None:
        self._process = process

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it do nothing for as long as this lasts."""
        if self._process is None:
            yield
            return
        os.kill(self._process.pid, signal.SIGSTOP)
        until(self._process.poll, 10)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


@contextmanager
def _stirred(where: Places) -> Iterator[_Stirrer]:
    if not where.setting.stirred:
        yield _Stirrer(None)
        return
    log = where.directory / "stirrer"
    process = Process(lambda: stirring.be(where), log, log.with_suffix(".marker"))
    try:
        yield _Stirrer(process)
        if printed := tail(log):
            raise Diverged(f"the process beside: {printed}")
    finally:
        process.discard()


# --- telling


def _smaller(trial: Trial, say: Say) -> Trial:
    """The trial with as few acts as still make a difference, as far as time allows."""
    until_s = time.monotonic() + _SHRINKS_S
    if not any(_differs(trial) for _ in range(_REPEATS)):
        say(f"{_REPEATS} repetitions made no difference: it depends on chance")
        return trial
    size = len(trial.acts) // 2
    while size and time.monotonic() < until_s:
        at = 0
        while at < len(trial.acts) and time.monotonic() < until_s:
            fewer = msgspec.structs.replace(trial, acts=trial.acts[:at] + trial.acts[at + size :])
            if _differs(fewer):
                trial = fewer
            else:
                at += size
        size //= 2
    return trial


def _differs(trial: Trial) -> bool:
    where = places(trial.setting)
    try:
        _live(where, trial.seed, trial.acts, Tally())
    except _DIFFERENCES:
        return True
    else:
        return False
    finally:
        _remove(where)


def _shown(trial: Trial) -> str:
    lines = [f"steps of seed {trial.seed}, {trial.setting}:"]
    lines += [
        f"    {number}: {act.what}{'' if act.judged else '  and at once:'}"
        for number, act in enumerate(trial.acts, 1)
    ]
    return "\n".join(lines)
