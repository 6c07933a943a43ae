"""Kills the process that indexes, and cuts its power, and fails its disk: each time all must be good again.

    python -m tests.faults [--kills N] [--restarts N] [--mixed N] [--powercuts N] [--failures [N]] [--differential MINUTES]
                           [--seed N] [--json FILE]
    python -m tests.faults --replay FILE

What is named is done; where nothing is, all of it at its usual length. Ends with status 1 where an index is not what a
fresh one is, having printed what led there.

    --kills      of processes that stop at places that are counted, in an open transaction
    --restarts   of whole daemons whose notes change under their eyes, by kills and in order
    --mixed      kills of whole daemons with two agents, while others write notes and transcripts, search, sync, rebuild,
                 pause and reload; also of the worker alone, of two in a row while they start, within the swap of a rebuild
    --powercuts  after which a disk holds only some of what was not synced
    --failures   days with an operation of the disk that fails each; without a number, every one
    --differential
                 minutes of random steps on files, and of restarts, reloads and syncs; each answer is compared with what the
                 disk says, and the index with that of a fresh daemon. The seed that it prints repeats the trial that failed
"""

import argparse
import gc
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.faults import campaign, failing, history, powercut
from tests.faults.differential import campaign as differential
from tests.faults.mixed import campaign as mixed
from tests.faults.verdict import Diverged

_ALL = -1
_USUAL: Mapping[str, float] = {
    "kills": 100,
    "restarts": 200,
    "mixed": 200,
    "powercuts": 200,
    "failures": 300,
    "differential": 10,
}

Run = Callable[[Any, int], msgspec.Struct]


def main(arguments: Sequence[str]) -> int:
    """Run, and tell; the exit status."""
    chosen = _parser().parse_args(arguments)
    gc.freeze()  # what is there already need not be looked at, and so copied, in each process
    told: dict[str, msgspec.Struct] = {}
    try:
        if chosen.replay is not None:
            told.update(_replayed(chosen.replay))
        else:
            for name, number in _wanted(chosen).items():
                told[name] = _WAYS[name](number, chosen.seed)
    except Diverged as difference:
        _say(f"\nseed {chosen.seed}: {difference}")
        return 1
    finally:
        if chosen.json is not None:
            chosen.json.write_bytes(msgspec.json.encode(told))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Break memd.")
    parser.add_argument(
        "--kills", type=int, metavar="N", help="of processes in an open transaction, at least"
    )
    parser.add_argument("--restarts", type=int, metavar="N", help="of whole daemons, at least")
    parser.add_argument("--mixed", type=int, metavar="N", help="kills of whole daemons under load, at least")
    parser.add_argument("--powercuts", type=int, metavar="N", help="of a model of a disk")
    parser.add_argument(
        "--failures", type=int, metavar="N", nargs="?", const=_ALL, help="of the disk; without N, every one"
    )
    parser.add_argument("--differential", type=float, metavar="MINUTES", help="of random steps")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all that is left to chance")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="the history of a run that failed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what happened there")
    return parser


def _wanted(chosen: argparse.Namespace) -> dict[str, float]:
    named = {name: getattr(chosen, name) for name in _USUAL if getattr(chosen, name) is not None}
    return {name: number for name, number in (named or _USUAL).items() if number}


def _replayed(file: Path) -> dict[str, msgspec.Struct]:
    kept = history.read(file)
    if kept.way == "differential":
        return {kept.way: differential.replay(kept.rounds, _say)}
    if kept.way == "mixed":
        return {kept.way: mixed.replay(kept.rounds, _say)}
    return {kept.way: campaign.replay(kept.way, kept.rounds, _say)}


def _fail(number: int, seed: int) -> failing.Failures:
    directory = history.scratch()
    told = failing.run_failures(None if number == _ALL else number, seed, _say, directory)
    shutil.rmtree(directory)
    return told


_WAYS: Mapping[str, Run] = {
    "kills": lambda number, seed: campaign.run_deaths(number, seed, _say),
    "restarts": lambda number, seed: campaign.run_restarts(number, seed, _say),
    "mixed": lambda number, seed: mixed.run(number, seed, _say),
    "powercuts": lambda number, seed: powercut.run_powercuts(number, seed, _say),
    "failures": _fail,
    "differential": lambda minutes, seed: differential.run(minutes, seed, _say),
}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
