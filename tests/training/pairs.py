"""Notes with questions that they answer, as people and agents write them; nobody in them exists."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

FILES = tuple(sorted(Path(__file__).with_name("pairs").glob("*.jsonl")))
JOINING_FILES = tuple(sorted(Path(__file__).with_name("joining_pairs").glob("*.jsonl")))
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


def for_joining() -> list[NotePair]:
    """Return the notes that the matrix of the joined models is trained on: the first model is not trained on them.

    Raises:
        msgspec.MsgspecError: a line is no NotePair.
    """
    return _every(JOINING_FILES)


def _every(files: Iterable[Path]) -> list[NotePair]:
    decoder = msgspec.json.Decoder(NotePair)
    return [decoder.decode(line) for file in files for line in file.read_bytes().splitlines()]


def read() -> tuple[list[NotePair], list[NotePair]]:
    """What is trained on, and what is kept back to measure.

    Raises:
        msgspec.MsgspecError: a line is no NotePair.
    """
    every = _every(FILES)
    trained = [pair for pair in every if _digest(pair.note) % _KEPT_BACK]
    return trained, [pair for pair in every if _digest(pair.note) % _KEPT_BACK == 0]


def _digest(text: str) -> int:
    return int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), 16)
