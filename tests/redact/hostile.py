"""Texts that are made to take long, of every anchor of the rules: ``python -m tests.redact.hostile``.

Each anchor is repeated with what a rule reads on over, so that a text is full of what begins like a secret and is none, or is
one and then goes on: once as it is, and once with a number now and then, so that no long stretch is the same again.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from typing import Final

import msgspec

from memd.config.settings import Redact
from memd.redact.redactor import RULES, Redactor

LENGTH: Final = 200_000
"""Signs of a text."""
FILLERS: Final[dict[str, str]] = {
    "alone": "§",
    "blank": "§ ",
    "line": "§\n",
    "equals": "§=",
    "quote that never closes": "§='a ",
    "value": "§: a1B2c3d4 ",
    "words": "§ for a b c d e ",
    "said before": "a1b2c3 is my § ",
    "token": "§a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5 ",
    "without a blank": "§a1B2c3D4e5F6g7H8-",
    "escaped": "%3D§%22",
    "without a width": "§\u200b",
    "flag": "mysql -§ ",
}
"""What is repeated; ``§`` stands for the anchor."""
NUMBERED: Final = 400
"""Signs between two numbers."""


class Timed(msgspec.Struct, frozen=True, order=True):
    """How fast a text was redacted."""

    rate: float  # megabytes a second of the processor's time
    filler: str
    anchor: str


def anchors() -> list[str]:
    """Of all rules."""
    return sorted({anchor for rule in RULES for anchor in rule.anchors})


def repeated(filler: str, anchor: str, length: int, *, numbered: bool = False) -> str:
    """A filler with an anchor, so often that it has a length or a little less."""
    piece = FILLERS[filler].replace("§", anchor)
    text = piece * (length // len(piece))
    if not numbered:
        return text
    return "".join(f"{text[at : at + NUMBERED]} {at} " for at in range(0, len(text), NUMBERED))


def seconds(redactor: Redactor, text: str) -> float:
    """How long a text takes, by the clock of the processor: once, or so often that a clock which counts in ticks tells it.

    Linux counts in ticks where the time of a process is limited (ulimit -t).
    """
    count, took, began = 0, 0.0, time.process_time()
    while not took:
        redactor.redact(text)
        count, took = count + 1, time.process_time() - began
    return took / count


def slowest(redactor: Redactor, most: int, *, numbered: bool) -> list[Timed]:
    """The slowest texts of so many that a tenth of the length shows to be slow."""
    short = timed(redactor, anchors(), LENGTH // 10, numbered=numbered)
    return sorted(
        of_length(redactor, one.filler, one.anchor, LENGTH, numbered=numbered) for one in short[:most]
    )


def timed(redactor: Redactor, some: Iterable[str], length: int, *, numbered: bool) -> list[Timed]:
    """The texts of some anchors, the slowest first."""
    return sorted(
        of_length(redactor, filler, anchor, length, numbered=numbered)
        for filler in FILLERS
        for anchor in some
    )


def of_length(redactor: Redactor, filler: str, anchor: str, length: int, *, numbered: bool) -> Timed:
    """How fast one such text is redacted."""
    text = repeated(filler, anchor, length, numbered=numbered)
    return Timed(len(text.encode()) / 1e6 / seconds(redactor, text), filler, anchor)


def main() -> int:
    """Print the ten slowest of either kind, or the slowest of each rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.redact.hostile", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["rules"],
        help="print the slowest text of each rule, instead of the ten slowest",
    )
    wanted = parser.parse_args()
    redactor = Redactor(Redact())
    if wanted.what == "rules":
        short = timed(redactor, anchors(), LENGTH // 40, numbered=True)
        for rule in RULES:
            one = next(one for one in short if one.anchor in rule.anchors)
            sys.stdout.write(f"{one.rate:6.2f} MB/s  {rule.name}: {one.anchor!r}, {one.filler}\n")
        return 0
    for numbered in (False, True):
        sys.stdout.write("with numbers:\n" if numbered else "repeated as they are:\n")
        for one in slowest(redactor, 40, numbered=numbered)[:10]:
            sys.stdout.write(f"{one.rate:6.2f} MB/s  {one.anchor!r}, {one.filler}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
