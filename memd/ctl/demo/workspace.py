"""The notes of the demo: an engineer's memory in two languages."""

from collections.abc import Iterator
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

_DAILY = "day-"  # day-2.md is the note of the day before yesterday


def notes(today: date) -> Iterator[tuple[str, str]]:
    """The files of the workspace: the path in it, and the text. Daily notes are of the last days."""
    for file in sorted(resources.files(__package__).joinpath("notes").iterdir(), key=lambda file: file.name):
        text = file.read_text(encoding="utf-8")
        stem, _, _ = file.name.partition(".")
        if stem.startswith(_DAILY):
            day = today - timedelta(days=int(stem.removeprefix(_DAILY)))
            yield daily(day), text.replace("{date}", day.isoformat())
        else:
            yield file.name, text


def daily(day: date) -> str:
    """The path of a daily note."""
    return f"memory/{day.isoformat()}.md"


def write(directory: Path, today: date) -> int:
    """Write all notes; how many they are."""
    number = 0
    for number, (path, text) in enumerate(notes(today), 1):  # noqa: B007  the last number is how many there are
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return number
