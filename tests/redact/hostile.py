"""Texts that are made to take long, of every anchor of the rules: ``python -m tests.redact.hostile``.

Each anchor is repeated with what a rule reads on over, so that a text is full of what begins like a secret and is none, or is
one and then goes on: once as it is, and once with a number now and then, so that no long stretch is the same again.
"""

import argparse
import random
import sys
import time
from bisect import bisect
from collections.abc import Iterable
from types import FrameType
from typing import Final

import msgspec

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from memd.redact.rule_set import RULES

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


def work(redactor: Redactor, text: str) -> int:
    """How many functions are called to redact a text: the same each time, whatever else the machine does."""
    count = 0

    def called(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        redactor.redact(text)
    finally:
        sys.setprofile(before)
    return count


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


def sample(redactor: Redactor, count: int, seed: int) -> list[Timed]:
    """So many texts with numbers, of a tenth of the length, drawn by chance; the slowest first."""
    every = [(filler, anchor) for filler in FILLERS for anchor in anchors()]
    of_length(redactor, "line", "phrase", LENGTH // 100, numbered=True)  # the words of wallets are read once
    return sorted(
        of_length(redactor, filler, anchor, LENGTH // 10, numbered=True)
        for filler, anchor in random.Random(seed).sample(every, count)
    )


def main() -> int:
    """Print the ten slowest of either kind, the slowest of each rule, or how many of a sample are slow."""
    parser = argparse.ArgumentParser(prog="python -m tests.redact.hostile", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["rules", "sample"],
        help="print the slowest text of each rule, or how many of a sample are slow, instead of the ten slowest",
    )
    parser.add_argument("--count", type=int, default=1_000, help="texts of the sample")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    wanted = parser.parse_args()
    redactor = Redactor(Redact())
    if wanted.what == "rules":
        short = timed(redactor, anchors(), LENGTH // 40, numbered=True)
        for rule in RULES:
            one = next(one for one in short if one.anchor in rule.anchors)
            sys.stdout.write(f"{one.rate:6.2f} MB/s  {rule.name}: {one.anchor!r}, {one.filler}\n")
        return 0
    if wanted.what == "sample":
        found = sample(redactor, wanted.count, wanted.seed)
        rates = [one.rate for one in found]
        for rate in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0):
            sys.stdout.write(f"{bisect(rates, rate):6} of {len(found)} below {rate} MB/s\n")
        sys.stdout.writelines(f"{one.rate:6.2f} MB/s  {one.anchor!r}, {one.filler}\n" for one in found[:10])
        return 0
    for numbered in (False, True):
        sys.stdout.write("with numbers:\n" if numbered else "repeated as they are:\n")
        for one in slowest(redactor, 40, numbered=numbered)[:10]:
            sys.stdout.write(f"{one.rate:6.2f} MB/s  {one.anchor!r}, {one.filler}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
