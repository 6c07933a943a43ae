"""Rounds of changes, deaths and restarts; after each of them the index must be like a fresh one."""

import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import msgspec

from memd_client import Client
from tests.faults import history
from tests.faults.death import Death, arm
from tests.faults.directory import Change, Files, after, carry_out, is_note, on_disk
from tests.faults.life import TIMEOUT_S, Home, busy, embedder, whole
from tests.faults.process import Ended, Killed, Process
from tests.faults.rounds import Kill, Life, Round, Stop, draw_deaths, draw_restarts
from tests.faults.verdict import Diverged, differing, left_behind, require_none, unsound
from tests.wait import until

Say = Callable[[str], object]
Next = Callable[[Files, "Tally"], Round | None]

# A process that is told to stop before it listens to signals has done nothing yet.
_IN_ORDER = frozenset({0, -signal.SIGTERM})
LONG_ENOUGH_S = 0.4  # a daemon that has not come to its place of death by then has nothing more to do
_EVERY_S = 10.0  # between two lines that tell how far it is
_STAYS = ("embeddings.sqlite", "memd.lock", "agents/main.sqlite", "agents/fresh.sqlite")


class Tally(msgspec.Struct):
    """What happened."""

    rounds: int = 0
    restarts: int = 0  # processes that were started
    in_transaction: int = 0  # kills while a transaction was open that writes
    beside: int = 0  # other kills
    stopped: int = 0  # processes that ended by themselves, or when they were told to
    places: dict[str, int] = {}  # of kills

    def count(self, end: Killed | Ended, meant: Death | Kill | Stop) -> None:
        """A process ended."""
        self.restarts += 1
        if isinstance(end, Ended):
            self.stopped += 1
            return
        self.in_transaction += bool(end.in_transaction)
        self.beside += not end.in_transaction
        place = f"{meant.database}, {meant.at}" if isinstance(meant, Death) else "from outside"
        place += ", in a transaction" if end.in_transaction else ""
        self.places[place] = self.places.get(place, 0) + 1


class Way(msgspec.Struct, frozen=True):
    """How processes live."""

    live: Callable[[Home, Files, Life], tuple[dict[str, bytes], Killed | Ended]]  # through one life
    converge: Callable[[Home, Files, tuple[Change, ...]], dict[str, bytes]]  # all that changed being indexed


def run_deaths(kills: int, seed: int, say: Say) -> Tally:
    """Processes that die at places that are counted, until so many have died in an open transaction.

    Args:
        kills: How many.
        seed: Of all that is left to chance.
        say: Given a line now and then.

    Raises:
        Diverged: with all that led there.
    """
    rng = Random(seed)
    return _run(
        "deaths",
        lambda files, tally: draw_deaths(rng, files) if tally.in_transaction < kills else None,
        say,
    )


def run_restarts(restarts: int, seed: int, say: Say) -> Tally:
    """Daemons that are killed and stopped while notes change, until there were so many. As run_deaths."""
    rng = Random(seed)
    return _run(
        "restarts",
        lambda files, tally: draw_restarts(rng, files) if tally.restarts < restarts else None,
        say,
    )


def replay(way: str, rounds: bytes, say: Say) -> Tally:
    """Live through a history of one of the two ways once more.

    Raises:
        Diverged: with all that led there.
    """
    left = iter(msgspec.json.decode(rounds, type=list[Round]))
    return _run(way, lambda _, __: next(left, None), say)


def _run(way: str, draw: Next, say: Say) -> Tally:
    """Rounds until there is none."""
    home, tally = Home(history.scratch()), Tally()
    home.workspace.mkdir()
    files: Files = {}
    rounds: list[Round] = []
    said = time.monotonic()
    while (one := draw(files, tally)) is not None:
        rounds.append(one)
        try:
            files = live_through(_WAYS[way], home, files, one, tally)
        except AssertionError as difference:
            told = f"round {len(rounds)}:\n{_shown(one)}\n{difference}"
            raise history.keep(way, rounds, home.directory, told) from difference
        if time.monotonic() - said > _EVERY_S:
            said = time.monotonic()
            say(_summary(way, tally))
    say(_summary(way, tally))
    for place, kills in sorted(tally.places.items()):
        say(f"    {kills:5} {place}")
    shutil.rmtree(home.directory)
    return tally


def _summary(way: str, tally: Tally) -> str:
    return (
        f"{way}: {tally.rounds} rounds, {tally.restarts} processes, {tally.in_transaction} killed in an open"
        f" transaction, {tally.beside} killed elsewhere, {tally.stopped} ended in order; no difference"
    )


def _shown(one: Round) -> str:
    lines = []
    for life in one.lives:
        lines += [f"    {change}" for change in life.before]
        lines.append(f"    a process lives{', rebuilds' * life.rebuild} and ends: {life.end}")
        lines += [f"        {change}" for change in life.during]
    lines += [f"    {change}" for change in one.last]
    return "\n".join(lines)


def live_through(way: Way, home: Home, files: Files, one: Round, tally: Tally) -> dict[str, bytes]:
    """One round; what the workspace holds after it.

    Raises:
        Diverged: the index is not what it must be.
    """
    home.configure(fresh=False)
    for life in one.lives:
        files = change_all(home, files, life.before)
        files, end = way.live(home, files, life)
        if isinstance(end, Ended) and end.status not in _IN_ORDER:
            raise Diverged(f"a process ended with {end.status}:\n{printed(home)}")
        tally.count(end, life.end)
    forget(home)
    home.configure(fresh=True)
    files = way.converge(home, files, one.last)
    compare(home, files)
    tally.restarts += 1
    tally.rounds += 1
    return dict(files)


def change_all(home: Home, files: Files, changes: Iterable[Change]) -> dict[str, bytes]:
    """Let changes happen; what the workspace holds then."""
    for change in changes:
        carry_out(change, home.workspace)
        files = after(files, change)
    return dict(files)


# --- processes that die at places that are counted


def die(home: Home, files: Files, life: Life) -> tuple[dict[str, bytes], Killed | Ended]:
    """Be the daemon to the place of death or the end of the work."""
    death = life.end
    assert isinstance(death, Death)

    def run() -> int:
        fate = arm(death, home.marker)
        status = busy(home, rebuild=life.rebuild)
        del fate
        return status

    with started(home, run) as process:
        return dict(files), process.wait(home.databases)


def come_to_the_end(home: Home, files: Files, last: tuple[Change, ...]) -> dict[str, bytes]:
    """Be the daemon until everything is indexed."""
    files = change_all(home, files, last)
    with started(home, partial(busy, home, fresh=True)) as process:
        end = process.wait()
    if end != Ended(0):
        raise Diverged(f"the process that was to come to its end: {end}\n{printed(home)}")
    return files


# --- daemons that are killed and stopped while notes change


def serve(home: Home, files: Files, life: Life) -> tuple[dict[str, bytes], Killed | Ended]:
    """Be a daemon while notes change, until the end."""

    def run() -> int:
        fate = arm(life.end, home.marker) if isinstance(life.end, Death) else None
        status = whole(home)
        del fate
        return status

    with started(home, run) as process:
        files = change_all(home, files, life.during)
        match life.end:
            case Kill():
                return files, process.kill_after(life.end.after_ms / 1000, home.databases)
            case Stop():
                return files, process.terminate_after(life.end.after_ms / 1000)
            case Death():
                return files, process.terminate_after(LONG_ENOUGH_S, home.databases)


def see_everything(home: Home, files: Files, last: tuple[Change, ...]) -> dict[str, bytes]:
    """Be a daemon while notes change, until it says that all of them are indexed."""
    with started(home, partial(whole, home)) as process:
        until(home.socket.exists, TIMEOUT_S)
        files = change_all(home, files, last)
        with Client(socket=home.socket, timeout=TIMEOUT_S) as memd:
            report = memd.sync()
            status = memd.status().agents["main"]
        left_out = set(status.skipped) - {"text that is not UTF-8"}  # the rest of such a note is indexed
        wrong = [report.vectors != "complete", status.rebuild, left_out, status.vectors.waiting]
        if any(wrong):
            raise Diverged(f"all is said to be indexed, and is not: {report}, {status}")
        end = process.terminate_after(0)
    if end != Ended(0):
        raise Diverged(f"the daemon that was to stop: {end}\n{printed(home)}")
    return files


_WAYS = {"deaths": Way(die, come_to_the_end), "restarts": Way(serve, see_everything)}


@contextmanager
def started(home: Home, run: Callable[[], int]) -> Iterator[Process]:
    """A process that is gone afterwards."""
    home.socket.unlink(missing_ok=True)
    process = Process(run, home.log, home.marker)
    try:
        yield process
    finally:
        process.discard()


# --- what must be


def forget(home: Home) -> None:
    """Let the fresh index be one."""
    for suffix in ("", "-wal", "-shm"):
        home.index("fresh").with_name(f"fresh.sqlite{suffix}").unlink(missing_ok=True)


def compare(home: Home, files: Files) -> None:
    """The index, a fresh one, the workspace and the embedder must all agree.

    Raises:
        Diverged: they do not, and how.
    """
    notes = [path for path in files if is_note(path)]
    wrong = differing(home.index("main"), home.index("fresh"), notes, embedder().embed)
    if on_disk(home.workspace) != files:
        wrong.append("a file of the workspace is not what was written there")
    wrong += left_behind(home.state, _STAYS)
    wrong += unsound(home.state / "embeddings.sqlite")
    require_none(wrong)


def printed(home: Home) -> str:
    return home.log.read_text("utf-8", "replace")[-4000:]
