"""Texts that are made to take long, of every anchor of the rules: ``python -m tests.redact.hostile``.

Each anchor is repeated with what a rule reads on over, so that a text is full of what begins like a secret and is none, or is
one and then goes on.
"""

import sys
import time
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


class Timed(msgspec.Struct, frozen=True, order=True):
    """How fast a text was redacted."""

    rate: float  # megabytes a second of the processor's time
    filler: str
    anchor: str


def anchors() -> list[str]:
    """Of all rules."""
    return sorted({anchor for rule in RULES for anchor in rule.anchors})


def repeated(filler: str, anchor: str, length: int) -> str:
    """A filler with an anchor, so often that it has a length or a little less."""
    piece = FILLERS[filler].replace("§", anchor)
    return piece * (length // len(piece))


def seconds(redactor: Redactor, text: str) -> float:
    """How long a text takes once, by the clock of the processor."""
    began = time.process_time()
    redactor.redact(text)
    return time.process_time() - began


def slowest(redactor: Redactor, most: int) -> list[Timed]:
    """The slowest texts of so many that a tenth of the length shows to be slow."""

    def timed(filler: str, anchor: str, length: int) -> Timed:
        text = repeated(filler, anchor, length)
        return Timed(len(text.encode()) / 1e6 / seconds(redactor, text), filler, anchor)

    short = sorted(timed(filler, anchor, LENGTH // 10) for filler in FILLERS for anchor in anchors())
    return sorted(timed(one.filler, one.anchor, LENGTH) for one in short[:most])


def main() -> int:
    """Print the ten slowest."""
    for one in slowest(Redactor(Redact()), 40)[:10]:
        sys.stdout.write(f"{one.rate:6.2f} MB/s  {one.anchor!r}, {one.filler}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
