"""All meanings of the thesaurus."""

from memd.text.thesaurus import FILE, Meaning


def meanings() -> list[Meaning]:
    """Read the file as a person does, line by line."""
    lines = [line.split("|") for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [Meaning(tuple(chinese.split(",")), tuple(english.split(","))) for chinese, english in lines]
