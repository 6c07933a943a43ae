"""Counts what is taken out, by source and by surrounding, as the documentation has it: ``python -m tests.redact.counts``.

Tokens are drawn by chance from each row of the table; the files of installed packages are the harmless texts.
"""

import random
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memd.config.settings import Redact
from memd.redact.keys.token_formats import TOKEN_FORMATS
from memd.redact.redactor import Redactor
from memd.redact.values.randomness import is_random, is_scrambled
from tests.redact.shapes import drawn
from tests.redact.surroundings import SURROUNDINGS

EACH: Final = 3  # tokens of each row in each surrounding
HARMLESS: Final = 10_000_000  # characters
_SUFFIXES: Final = {".py", ".md", ".txt", ".json", ".js", ".toml", ".html", ".css", ".rst", ".pyi", ""}


def main() -> int:
    """Print two tables of Markdown and a line on the harmless files."""
    redactor = Redactor(Redact())
    drawn_of: Counter[str] = Counter()
    gone_of: Counter[str] = Counter()
    for row in TOKEN_FORMATS:
        rng = random.Random(row.kind)
        for name, around in SURROUNDINGS.items():
            for _ in range(EACH):
                token = drawn(row.shape, rng)
                while (row.entropy and not is_random(token, row.entropy)) or (
                    row.scrambled and not is_scrambled(re.split("[_-]", token)[-1])
                ):
                    token = drawn(row.shape, rng)
                token = f"host{token}" if token[0] in "./" and not row.before else token
                gone = token[-12:] not in redactor.redact(around.replace("§", token)).text
                for key in (row.source, name):
                    drawn_of[key] += 1
                    gone_of[key] += gone
    rows_of = Counter(row.source for row in TOKEN_FORMATS)
    sys.stdout.write("| source | formats | tokens drawn | taken out |\n|---|---|---|---|\n")
    for source, rows in sorted(rows_of.items()):
        sys.stdout.write(f"| {source} | {rows} | {drawn_of[source]:,} | {gone_of[source]:,} |\n")
    sys.stdout.write("\n| surrounding | tokens drawn | taken out |\n|---|---|---|\n")
    for name in SURROUNDINGS:
        sys.stdout.write(f"| {name} | {drawn_of[name]:,} | {gone_of[name]:,} |\n")
    kinds = {row.kind for row in TOKEN_FORMATS}
    size, wrong = 0, 0
    for text in _installed():
        size += len(text)
        wrong += sum(find.kind in kinds for find in redactor.finds(text))
    sys.stdout.write(f"\n{size:,} characters of installed packages: {wrong} finds of a token's form\n")
    return 0


def _installed() -> Iterator[str]:
    """The files of installed packages, in an order drawn by chance, up to so many characters."""
    files = sorted(
        path for path in Path(sysconfig.get_path("purelib")).rglob("*") if path.suffix in _SUFFIXES
    )
    random.Random(1).shuffle(files)
    size = 0
    for path in files:
        if size >= HARMLESS:
            return
        try:
            text = path.read_text("utf-8")[:600_000]
        except (OSError, UnicodeDecodeError):
            continue
        size += len(text)
        yield text


if __name__ == "__main__":
    sys.exit(main())
