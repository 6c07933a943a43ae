"""What of a text a note does not say yet."""

from collections.abc import Iterable


def unsaid(block: str, note: str) -> str:
    """The part of a block that is new to a note; empty where the note holds the block already.

    Lines are compared without regard to blanks, and blank lines do not count. The note holds a block whose lines stand
    in it one after the other; of a block that begins with all lines of the note, what follows them is new. Nothing less
    counts as repeated: the same heading or "- done" may well be meant a second time.
    """
    said = [folded for line in note.splitlines() if (folded := _folded(line))]
    lines = block.splitlines()
    told = [(at, folded) for at, line in enumerate(lines) if (folded := _folded(line))]
    if _stretch(folded for _, folded in told) in _stretch(said):
        return ""
    if said and [folded for _, folded in told[: len(said)]] == said:
        return "\n".join(lines[told[len(said)][0] :])
    return block


def _folded(line: str) -> str:
    return " ".join(line.replace("\ufeff", "").split())


def _stretch(lines: Iterable[str]) -> str:
    # With a break at both ends, so that a line is not taken for a part of another.
    return "\n" + "".join(f"{line}\n" for line in lines)
