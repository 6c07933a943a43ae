"""Searches for secrets in everything that a daemon writes and prints."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import apsw
import numpy as np
from numpy.typing import NDArray

from tests.redact.corpus import Sample

TAIL = 12  # so many of its last characters tell a secret
_WORD = 8  # bytes that are compared at once
_BITS = 22  # of a table in which few others share a place with a secret
_TOKEN = re.compile(rb"[^0-9a-z!@]+")
_PIECE = re.compile(r"[0-9a-z]{10,}")


class Hunt:
    """The secrets to search for, as a whole and by their ends.

    Letters count alike in both cases, for what is indexed is small.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.samples = tuple(samples)
        tails = {sample.value[-TAIL:].lower().encode() for sample in self.samples}
        self._short = {tail for tail in tails if len(tail) < _WORD}
        self._long: dict[int, list[bytes]] = {}
        for tail in tails - self._short:
            self._long.setdefault(int.from_bytes(tail[:_WORD], "little"), []).append(tail)
        keys = np.array(list(self._long), dtype="<u8")
        self._may_be = np.zeros(1 << _BITS, dtype=bool)
        self._may_be[_spread(keys)] = True
        self._pieces = {
            piece[:_WORD] for sample in self.samples for piece in _PIECE.findall(sample.value.lower())
        }

    def met(self, data: bytes) -> set[bytes]:
        """Return the ends of secrets that occur in some bytes, ignoring case."""
        small = data.lower()
        found = self._short.intersection(_TOKEN.split(small))
        for offset in range(_WORD):
            count = (len(small) - offset) // _WORD
            if count <= 0:
                continue
            words = np.frombuffer(small, "<u8", count, offset)
            for at in np.flatnonzero(self._may_be[_spread(words)]):
                place = offset + int(at) * _WORD
                tails = self._long.get(int(words[at]), ())
                found.update(tail for tail in tails if small.startswith(tail, place))
        return found

    def met_below(self, directory: Path) -> dict[str, set[bytes]]:
        """Return the same for all files below a directory, by name, and for the words in its keyword indexes."""
        found = {}
        for file in directory.rglob("*"):
            if file.is_file() and (met := self.met(file.read_bytes())):
                found[file.name] = met
        for index in directory.glob("agents/*.sqlite"):
            if met := self._met_in_rows(index):
                found[f"{index.name}, rows"] = met
        return found

    def _met_in_rows(self, index: Path) -> set[bytes]:
        """A page of a file may break off in the middle of a text, and words in the keyword index begin alike."""
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(10_000)
        try:
            made = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
            if "keywords" not in made:
                return set()  # whoever was to make it was killed before
            rows = [
                row
                for table in ("chunks", "turns", "sessions", "files", "meta", "tallies", "labels")
                for row in connection.execute(f"SELECT * FROM {table}")
            ]
            connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, keywords, 'row')")
            words = [str(term) for (term,) in connection.execute("SELECT term FROM temp.words")]
        finally:
            connection.close()
        found = self.met("\n".join(map(str, rows)).encode("utf-8", "replace"))
        found |= self.met(b"\n".join(value for row in rows for value in row if isinstance(value, bytes)))
        return found | {word.encode() for word in words if word[:_WORD] in self._pieces}

    def caught(self, met: Iterable[bytes]) -> list[tuple[str, str, str]]:
        """Describe the secrets found: kind, setting, and text of some samples."""
        tails = set(met)
        return [
            (sample.kind, sample.setting, sample.text)
            for sample in self.samples
            if sample.value[-TAIL:].lower().encode() in tails
        ]


def _spread(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A place for each in a table of 2 ** _BITS. Source: Knuth, The Art of Computer Programming 3, 6.4."""
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _BITS)


def halves(text: str) -> tuple[str, str] | None:
    """A private key as two parts, one with its first line and one with its last; None where there is no such key."""
    lines = text.split("\n")
    middle = len(lines) // 2
    first, second = "\n".join(lines[:middle]), "\n".join(lines[middle:])
    return (first, second) if "-----BEGIN " in first and "-----END " in second else None


def as_note(samples: Sequence[Sample]) -> str:
    """Return a note that contains some samples, each below a heading."""
    return "\n\n".join(f"# Part {number}\n\n{sample.text}" for number, sample in enumerate(samples)) + "\n"


def quoted(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield each text of some samples as users paste it: alone, after a sentence, in a fence, in JSON."""
    for number, sample in enumerate(samples):
        match number % 4:
            case 0:
                yield sample.text
            case 1:
                yield f"Look at what I have found here:\n\n{sample.text}"
            case 2:
                yield f"这是配置文件，你看一下：\n```\n{sample.text}\n```\nThat is all."
            case _:
                yield f"{sample.text}\n{json.dumps({'said': 'and nothing more'})}"
