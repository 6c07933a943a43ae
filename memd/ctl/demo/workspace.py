"""The demo's workspace, an engineer's memory in two languages, and what is asked about it."""

from collections.abc import Iterator
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

import msgspec


class DemoQuestion(msgspec.Struct, frozen=True):
    """A question about the notes of the demo."""

    about: str  # what it shows
    text: str
    answer: str | None  # what stands in the line that answers it; None: no line does


QUESTIONS = (
    DemoQuestion("The same in other words", "What caused the blackout at home?", "loose neutral"),
    DemoQuestion("An exact id", "INC-2417", "INC-2417"),
    DemoQuestion("Chinese on a Chinese note", "小满对哪种食物过敏？", "花生"),
    DemoQuestion(
        "English on a Chinese note", "When does my father take his blood pressure pills?", "降压药每天早饭后"
    ),
    DemoQuestion("Nothing there", "What did the dentist say about my tooth?", None),
)

EDIT = "- Standup is at 9:40 from Monday on, so that the Berlin office can join.\n"
EDIT_QUESTION = DemoQuestion("An edit", "What time is the standup?", "9:40")

GROUP_KEY = "agent:main:telegram:group:neighbours"
GROUP_QUESTION = QUESTIONS[2]


_DAILY = "day-"  # day-2.md is the note of the day before yesterday


def notes(today: date) -> Iterator[tuple[str, str]]:
    """The files of the workspace: the path in it, and the text. Daily notes are of the last days."""
    for file in sorted(resources.files(__package__).joinpath("notes").iterdir(), key=lambda file: file.name):
        text = file.read_text(encoding="utf-8")
        stem, _, _ = file.name.partition(".")
        if stem.startswith(_DAILY):
            day = today - timedelta(days=int(stem.removeprefix(_DAILY)))
            yield daily_note_path(day), text.replace("{date}", day.isoformat())
        else:
            yield file.name, text


def daily_note_path(day: date) -> str:
    """The path of a daily note."""
    return f"memory/{day.isoformat()}.md"


def write_notes(directory: Path, today: date) -> int:
    """Write all notes; how many they are."""
    number = 0
    for number, (path, text) in enumerate(notes(today), 1):  # noqa: B007  the last number is how many there are
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return number
