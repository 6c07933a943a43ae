"""Notes with questions that they answer, as people and agents write them; nobody in them exists."""

import hashlib
from pathlib import Path

import msgspec

FILES = tuple(sorted(Path(__file__).with_name("pairs").glob("*.jsonl")))
# One note of so many is not trained on: what the model finds of these is measured.
_KEPT_BACK = 6


class NotePair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A note, one that is near and does not answer, and three questions."""

    note: str
    near: str
    para: str  # in the note's language, in other words
    cross: str  # in another language
    plain: str  # in some of the note's words

    @property
    def questions(self) -> tuple[str, str, str]:
        """Of each kind one."""
        return self.para, self.cross, self.plain


def read() -> tuple[list[NotePair], list[NotePair]]:
    """What is trained on, and what is kept back to measure.

    Raises:
        msgspec.MsgspecError: a line is no NotePair.
    """
    decoder = msgspec.json.Decoder(NotePair)
    every = [decoder.decode(line) for file in FILES for line in file.read_bytes().splitlines()]
    trained = [pair for pair in every if _digest(pair.note) % _KEPT_BACK]
    return trained, [pair for pair in every if _digest(pair.note) % _KEPT_BACK == 0]


def _digest(text: str) -> int:
    return int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), 16)
