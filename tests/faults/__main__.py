"""Kills the process that indexes a workspace, over and over, and looks each time whether the next one makes it good.

    python -m tests.faults [--kills N] [--restarts N] [--seed N] [--json FILE]
    python -m tests.faults --replay FILE

Kills are counted that land in an open transaction; restarts are those of whole daemons whose notes change under their
eyes. Ends with status 1 where an index is not what a fresh one is, having printed what led there.
"""

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import msgspec

from tests.faults.campaign import DEATHS, RESTARTS, Diverged, Tally, live_through
from tests.faults.directory import Files
from tests.faults.life import Home
from tests.faults.rounds import Round, draw_deaths, draw_restarts

_EVERY_S = 10.0  # between two lines that tell how far it is
_WAYS = {"deaths": DEATHS, "restarts": RESTARTS}

Next = Callable[[Files, Tally], Round | None]


class History(msgspec.Struct, frozen=True):
    """What led to where an index differs."""

    way: str
    rounds: list[Round]


def main(arguments: Sequence[str]) -> int:
    """Run, and tell; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Kill memd until it breaks.")
    parser.add_argument(
        "--kills", type=int, default=100, metavar="N", help="in an open transaction, at least"
    )
    parser.add_argument("--restarts", type=int, default=200, metavar="N", help="of whole daemons, at least")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all that is left to chance")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="the history of a run that failed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what happened there")
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        history = msgspec.json.decode(chosen.replay.read_bytes(), type=History)
        rounds = iter(history.rounds)
        runs: dict[str, Next] = {history.way: lambda _, __: next(rounds, None)}
    else:
        one, other = Random(chosen.seed), Random(chosen.seed)
        runs = {
            "deaths": lambda files, tally: (
                draw_deaths(one, files) if tally.in_transaction < chosen.kills else None
            ),
            "restarts": lambda files, tally: (
                draw_restarts(other, files) if tally.restarts < chosen.restarts else None
            ),
        }
    gc.freeze()  # what is there already need not be looked at, and so copied, in each process
    told = {way: Tally() for way in runs}
    try:
        for way, draw in runs.items():
            _run(way, draw, told[way])
    except Diverged as difference:
        _say(f"\nseed {chosen.seed}: {difference}")
        return 1
    finally:
        if chosen.json is not None:
            chosen.json.write_bytes(msgspec.json.encode(told))
    return 0


def _run(way: str, draw: Next, tally: Tally) -> None:
    """Rounds until there is none.

    Raises:
        Diverged: with all that led there.
    """
    # It is processes that die here, not the machine: what is kept in memory alone outlives them, and is fast.
    memory = "/dev/shm"
    home = Home(Path(tempfile.mkdtemp(prefix="memd-", dir=memory if os.access(memory, os.W_OK) else None)))
    home.workspace.mkdir()
    files: Files = {}
    history: list[Round] = []
    said = time.monotonic()
    while (one := draw(files, tally)) is not None:
        history.append(one)
        try:
            files = live_through(_WAYS[way], home, files, one, tally)
        except (Diverged, AssertionError) as difference:
            kept = home.directory / "history.json"
            kept.write_bytes(msgspec.json.encode(History(way, history)))
            raise Diverged(
                f"round {len(history)} of {way}:\n{_shown(one)}\n{difference}\n"
                f"Everything is in {home.directory}. To see it again:\n    python -m tests.faults --replay {kept}"
            ) from difference
        if time.monotonic() - said > _EVERY_S:
            said = time.monotonic()
            _say(_summary(way, tally))
    _say(_summary(way, tally))
    for place, kills in sorted(tally.places.items()):
        _say(f"    {kills:5} {place}")
    shutil.rmtree(home.directory)


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


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
