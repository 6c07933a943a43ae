"""Writes down what memd makes of the corpus: python -m tests.golden.

Where something is made otherwise than is written down, the number that stands for it must have been raised, or every index
would go on with what the old program made. --unreleased: a number that has never been in a release may stay as it is.
--show PART prints what is made of a part of the corpus, to be compared with what another checkout prints.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.golden.outputs import OUTPUTS, Output, digests, shown

FILE = Path(__file__).with_name("digests.json")


class Written(msgspec.Struct):
    """What is written down of an output."""

    number: str
    digests: dict[str, str]


def written(file: Path = FILE) -> dict[str, Written]:
    """What is written down, by the name of the output."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Written]) if file.exists() else {}


def fault(output: Output, before: Written | None, now: Written) -> str | None:
    """What is wrong, and what to do; None: what was made is what is written down."""
    if before is None or (before.number != now.number and before.digests != now.digests):
        return f"{output.name}: made anew under a new number. Write it down: python -m tests.golden"
    if before.number != now.number:
        return (
            f"{output.name}: made as before, under another number: {before.number}, now {now.number}. Every index will be built "
            "anew. If that is wanted (a part that the corpus has not; then add it), write it down: python -m tests.golden"
        )
    names = sorted(
        name for name in before.digests | now.digests if before.digests.get(name) != now.digests.get(name)
    )
    if not names:
        return None
    return (
        f"{output.name}: made otherwise than before under the same number ({now.number}), of: {'; '.join(names)}. Indexes would "
        f"keep what the old program made beside the new. If it is wanted, raise {output.raised}, and write it down: python -m "
        "tests.golden (with --unreleased where that number was raised since the last release). python -m tests.golden --show "
        f"'{names[0]}' prints it, to be compared with what another checkout prints."
    )


def main(arguments: Sequence[str]) -> int:
    """Write, or say why not; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description="Write down what memd makes of the corpus."
    )
    parser.add_argument(
        "--unreleased", action="store_true", help="the numbers have been in no release, and may stay"
    )
    parser.add_argument("--show", metavar="PART", help="print what is made of a part of the corpus")
    chosen = parser.parse_args(arguments)
    if chosen.show is not None:
        for output in OUTPUTS:
            if chosen.show in (made := output.made()):
                print(f"{output.name}:\n{shown(made[chosen.show])}")  # noqa: T201 - what was asked for
        return 0
    before, now, refused = written(), {}, []
    for output in OUTPUTS:
        now[output.name] = Written(output.number(), digests(output))
        kept = before.get(output.name)
        grown = kept is not None and kept.digests.items() <= now[output.name].digests.items()
        if (
            kept is not None
            and kept.number == now[output.name].number
            and not grown
            and not chosen.unreleased
        ):
            refused.append(fault(output, kept, now[output.name]))
    for told in refused:
        print(told, file=sys.stderr)  # noqa: T201 - likewise
    if not refused:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(now), indent=1) + b"\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
