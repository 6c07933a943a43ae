"""Holds a daemon under the load of many clients, and judges whether it bore it.

    python -m tests.benchmarks.load [--seconds 60] [--clients 500] [--chunks 20000] [--rate 30]

For a quarter of the time each client asks again as soon as it has its answer. Then requests come at random moments, at a
given rate, whether or not earlier ones are answered, as they do from clients that know nothing of each other. Most ask
a question, some read a note, some write one and look for it at once. Beside them the index is built anew several times,
transcripts grow that have secrets in them, somebody watches the status, and clients come, ask once, and go, some of them
without their answer.

The clients are connections of one process beside the daemon's. The exit status is 1 where something was not borne.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.benchmarks.load.drive import run
from tests.benchmarks.load.outcome import complaints, report
from tests.benchmarks.load.plan import Plan


def main(arguments: Sequence[str]) -> int:
    """Hold a daemon under load, and print how it bore it."""
    usual = Plan()
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.load", description="Hold a daemon under the load of many clients."
    )
    parser.add_argument("--seconds", type=float, default=usual.seconds, metavar="S", help="how long")
    parser.add_argument(
        "--clients", type=int, default=usual.clients, metavar="N", help="how many are connected"
    )
    parser.add_argument("--chunks", type=int, default=usual.chunks, metavar="N", help="size of the index")
    parser.add_argument(
        "--rate",
        type=float,
        default=usual.rate,
        metavar="N",
        help="requests a second of all clients together",
    )
    parser.add_argument(
        "--seed", type=int, default=usual.seed, metavar="N", help="another gives other requests"
    )
    plan = msgspec.convert(vars(parser.parse_args(arguments)), Plan)
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        outcome = run(Path(home), plan)
    sys.stdout.write(f"{report(outcome)}\n")
    unborne = complaints(outcome)
    for complaint in unborne:
        sys.stdout.write(f"NOT BORNE: {complaint}\n")
    return 1 if unborne else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
