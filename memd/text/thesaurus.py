"""A thesaurus of general Chinese and English words: which words of both languages mean the same.

Written for memd. A line of thesaurus.txt is one meaning: its Chinese words, a bar, its English words, each the most common first. A
word of several meanings stands in several lines.
"""

import errno
from collections.abc import Collection
from functools import cache
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("thesaurus.txt")
LONGEST_CHINESE = 6  # characters of a word that is looked for
LONGEST_ENGLISH = 4  # words of an expression that is looked for


class Meaning(msgspec.Struct, frozen=True):
    """The words that have one meaning."""

    chinese: tuple[str, ...]
    english: tuple[str, ...]


class Thesaurus(msgspec.Struct, frozen=True):
    """The lines of the file, found by the hashes of their words: a dictionary of the words would take ten times the memory."""

    text: bytes
    hashes: NDArray[np.uint32]  # crc32 of each word, ascending
    lines: NDArray[np.uint32]  # where in the text the line of the word begins

    def known(self, words: Collection[str]) -> set[str]:
        """Return the words that the thesaurus seems to have: one in a hundred thousand others has the hash of a word, too.

        Args:
            words: In lower case and simplified Chinese, without hyphens and apostrophes: see plain.
        """
        listed = list(words)
        wanted = np.fromiter(map(crc32, map(str.encode, listed)), np.uint32, len(listed))
        at = self.hashes.searchsorted(wanted)
        at[at == len(self.hashes)] = 0
        return {listed[n] for n in np.flatnonzero(self.hashes[at] == wanted).tolist()}

    def meanings(self, word: str) -> list[Meaning]:
        """Return all meanings of a word, as `known` takes it, those first that it is a first word of; none: it is not there."""
        wanted = np.uint32(crc32(word.encode()))
        begin, end = self.hashes.searchsorted(wanted), self.hashes.searchsorted(wanted, "right")
        found = []
        for line in self.lines[begin:end].tolist():
            meaning = self._meaning(line)
            side = [plain(one) for one in (meaning.english if word.isascii() else meaning.chinese)]
            if word in side:
                found.append((side.index(word), meaning))
        return [meaning for _, meaning in sorted(found, key=lambda one: one[0])]

    def _meaning(self, begin: int) -> Meaning:
        line = self.text[begin : self.text.index(b"\n", begin)].decode()
        chinese, english = line.split("|")
        return Meaning(tuple(chinese.split(",")), tuple(english.split(",")))


def plain(word: str) -> str:
    """Return a word of the file as it is looked up: a question is cut at hyphens and apostrophes, too."""
    return word.replace("-", " ").replace("'", " ")


@cache
def thesaurus() -> Thesaurus:
    """Return the thesaurus; it is read when it is first needed, in 28 ms.

    Raises:
        OSError: it cannot be read, or is cut off.
    """
    text = FILE.read_bytes()
    if not text.endswith(b"\n"):
        raise OSError(errno.EIO, "the file is cut off", str(FILE))
    hashes: list[int] = []
    lines: list[int] = []
    begin = 0
    for line in text.replace(b"-", b" ").replace(b"'", b" ").splitlines():
        words = line.replace(b"|", b",").split(b",")
        hashes += map(crc32, words)
        lines += [begin] * len(words)
        begin += len(line) + 1
    order = np.argsort(hashes)
    return Thesaurus(text, np.array(hashes, np.uint32)[order], np.array(lines, np.uint32)[order])


def unreadable() -> str | None:
    """Return why the thesaurus cannot be read now, and how to mend it; None: it can be read, or has been. It reads the file."""
    if thesaurus.cache_info().currsize:
        return None
    try:
        thesaurus()
    except OSError as failure:
        return why_unreadable(failure)
    return None


def why_unreadable(failure: OSError) -> str:
    """Return a sentence for a person: that reading the file has failed, and how to mend it."""
    return f"the thesaurus cannot be read: {failure}; install memd anew if this lasts"
