"""What the demo asks."""

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
