"""What is said in the golden transcripts: python -m tests.store.golden.talk writes them, once and for all."""

import shutil
import tempfile
from pathlib import Path

from tests.fakes.homes import ClaudeCode, Codex, write
from tests.store.golden.read import REJECTED, TRANSCRIPTS

AT = 1_772_442_000.0  # 2 March 2026
TOKEN = "ghp_" + "q7Rk2mVx9Lw4Zt8Hs3Nd6Yb1Pc5Jf0GaUeTi"  # what a rule takes out; nobody's
MIDDLE = "the anchor weighs 412 kilos"  # stands far from both ends of a transcript


def main() -> None:
    """A long one of Claude Code, a compressed one of Codex, a plain one in Chinese."""
    with tempfile.TemporaryDirectory() as scratch:
        _talk(Path(scratch))


def _talk(home: Path) -> None:
    session = ClaudeCode(home).session(at=AT)
    session.user("Which harbour did we pick for the walrus ferry?", AT)
    session.assistant("Lerwick, because the pier there is free in winter.", at=AT + 5)
    session.user(f"The token of the harbour office is {TOKEN}, keep it out of the logs.", AT + 10)
    session.assistant("I shall not repeat it.", at=AT + 15)
    for number in range(40):
        session.user(
            f"What about buoy {number}, and who looks after it in month {number % 12 + 1}?",
            AT + 60 * number + 60,
        )
        said = MIDDLE if number == 20 else f"it weighs {100 + number} kilos"
        session.assistant(
            f"Buoy {number} is looked after by crew {number % 7}; {said}.", at=AT + 60 * number + 70
        )
    session.user(f"This one is {REJECTED}: nobody can tell what it is near to.", AT + 4000)
    shutil.move(session.path, TRANSCRIPTS / "ferry.jsonl")
    other = Codex(home).session("/home/li/tea", at=AT + 9000)
    other.user("How long does the oolong steep?", AT + 9001)
    other.assistant("Four minutes at ninety degrees, then a second time for six.", AT + 9005)
    other.user("乌龙茶第二泡要多久?", AT + 9010)
    other.assistant("第二泡六分钟, 水温九十度。", AT + 9015)
    other.compress()
    shutil.move(other.path, TRANSCRIPTS / "tea.jsonl.zst")
    (TRANSCRIPTS / "lighthouse.jsonl").unlink(missing_ok=True)
    for number, (role, text) in enumerate(
        [
            ("user", "灯塔的钥匙放在哪里?"),
            ("assistant", "钥匙在码头办公室的蓝色抽屉里, 由老陈保管。"),
            ("user", "机房的温度是多少?"),
            ("assistant", "昨天测得二十三度, 湿度百分之四十。"),
        ]
    ):
        write(
            TRANSCRIPTS / "lighthouse.jsonl",
            {"role": role, "content": text, "timestamp": AT + 20_000 + number},
        )


if __name__ == "__main__":
    main()
