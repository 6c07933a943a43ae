"""Swaps files for ways out of the fence, for as long as one likes, while a daemon is asked for all it has.

    python -m tests.security [--seconds N] [--seed N]

Prints how much was swapped and asked; ends with status 1 where something got out, having printed what.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.security.race import Race


def main(arguments: Sequence[str]) -> int:
    """Run, and tell; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.security", description="Have memd tell a secret.")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="N", help="for how long")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is swapped for what")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        tally = Race(Path(scratch), copied=True).run(chosen.seconds, chosen.seed)
    told = tally.done | {"swaps": tally.total_swaps, "mounts": tally.mounts.get("mount", 0)}
    print(", ".join(f"{count:,} {what}" for what, count in sorted(told.items())))  # noqa: T201 - a command
    print(", ".join(f"{count:,} {what}" for what, count in sorted(tally.swaps.items())))  # noqa: T201 - likewise
    for leak in tally.leaks:
        print(f"LEAK {leak}")  # noqa: T201 - likewise
    return bool(tally.leaks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
