"""Detects texts that say nothing that another one does not: copied notes, forked sessions, repeated questions. rank.py leaves them out."""

import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from memd.domain_types import ChunkId
from memd.store.chunks import StoredChunk
from memd.text.tokens import WORD_CHARACTER, fts_text
from memd.text.turn_header import header_in

# Texts of fewer words are copies only if they are equal: "which cat?" may ask about two cats.
LEAST_WORDS = 4
# The least ratio of lengths of two copies: a longer text around the same line may be the part that matters.
_LENGTH = 0.8
# How many pairs of adjacent words the longer text may lack, beyond one for each additional word: "Ann owes Bob" has
# the words of "Bob owes Ann".
_PAIRS_APART = 1
# Texts that share less than this of their words (and, outside ASCII, characters) are not compared in full, which costs
# 45 µs a text in English and 260 µs in Chinese instead of 10 µs.
_ROUGHLY = 0.6
_WORD = re.compile(f"{WORD_CHARACTER}+")
# Words that change nothing, and words that change the meaning if only one of two texts has them.
_TELL_NOTHING = frozenset(
    re.findall(r"\w+", "a an the this that of to in on at for and it its 的 地 得 了 着 呢 吧 啊 呀 嘛")
)
_NEGATIONS = frozenset(
    re.findall(r"\w+", "not no never none nobody nothing nor without cannot t 不 没 沒 无 無 未 别 勿 非 否")
)
# Signs that change the meaning: of a number, between two terms, of money, of what is done, of an option of a command.
_SIGN = re.compile(
    r"(?<![\w.,])[-+−±](?=[\d.])|(?<=\d)[.,](?=\d)|(?<=\w)[ ]?(?:[<>]=?|[=!]=|[=≤≥≠])[ ]?(?=[\w-])"
    r"|[$€£¥￥₩₹₽]|[√×✓✔✗✘☐☑☒✅❌]|\[[ xX]\](?=[ ])|(?<![^\s`(])--?(?=[a-z])|(?<=\d)[ ]?%"
)


class ComparedText:
    """The words of a text, without turn headers, for comparison with other texts."""

    def __init__(self, text: str) -> None:
        """Prepare a text for comparisons; most of the work is done on first use."""
        self._text = text
        lowered = text.lower()
        words = frozenset(lowered.split())
        self.roughly = words if text.isascii() else words.union(lowered)

    def is_roughly(self, other: "ComparedText") -> bool:
        """Return whether the texts share so much that one may cover the other."""
        fewest, most = sorted((len(self.roughly), len(other.roughly)))
        least = _ROUGHLY * most
        return fewest >= least and len(self.roughly & other.roughly) >= least

    def covers(self, other: "ComparedText") -> bool:
        """Return whether the other text has about the same length and says nothing that this one does not."""
        if not self.is_roughly(other):
            return False
        length, of_other = self.words.total(), other.words.total()
        if of_other < max(LEAST_WORDS, _LENGTH * length) or length < _LENGTH * of_other:
            return False
        further = self.words - other.words
        if other.words - self.words or not _NEGATIONS.isdisjoint(further):
            return False
        return len(other.pairs - self.pairs) <= further.total() + _PAIRS_APART and self.signs == other.signs

    @cached_property
    def _body(self) -> str:
        lines = self._text.split("\n")
        if lines[0].rstrip() == "---" and "---" in lines[1:]:
            # Front matter holds the date of a copy.
            lines = lines[lines.index("---", 1) + 1 :]
        return "\n".join(line[len(header_in(line)) :] for line in lines)

    @cached_property
    def in_order(self) -> list[str]:
        """Its words in order, without stop words."""
        return [word for word in _WORD.findall(fts_text(self._body)) if word not in _TELL_NOTHING]

    @cached_property
    def words(self) -> Counter[str]:
        """The same words with their numbers of occurrences."""
        return Counter(self.in_order)

    @cached_property
    def signs(self) -> Counter[str]:
        """The signs that change the meaning of a text, with their numbers of occurrences."""
        return Counter(sign.strip().lower() for sign in _SIGN.findall(self._body))

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of adjacent words."""
        return frozenset(zip(self.in_order, self.in_order[1:], strict=False))


class ShownTexts:
    """The texts that hits show."""

    def __init__(self, compared: Callable[[str], ComparedText] = ComparedText) -> None:
        """Begin without any.

        Args:
            compared: Returns a text as it is compared; most texts that are shown were compared as candidates before.
        """
        self._as_compared = compared
        self._texts: set[str] = set()
        self._compared: list[ComparedText] = []
        self._turn_lines: set[str] = set()

    def adds(self, text: str, *, is_session: bool) -> bool:
        """Return whether a text says what none before it says, and take it in if so.

        Args:
            text: What a hit would show.
            is_session: Whether it is of a transcript.
        """
        words, compared = " ".join(text.split()), self._as_compared(text)
        # A forked session repeats the turns of its parent, with the same speakers and times, line by line.
        lines = {line.strip() for line in text.splitlines() if line.strip()} if is_session else set()
        if (
            words in self._texts
            or (lines and lines <= self._turn_lines)
            or any(one.covers(compared) for one in self._compared)
        ):
            return False
        self._texts.add(words)
        self._compared.append(compared)
        self._turn_lines |= lines
        return True


def recency_key(chunk: StoredChunk) -> tuple[bool, float, int]:
    """Return the sort key by age: current before superseded texts, then by the date of content, then by mtime.

    The copy with the largest key is the latest.
    """
    return (
        chunk.superseded is None,
        chunk.written_ns / 1e9 if chunk.last_s is None else chunk.last_s,
        chunk.written_ns,
    )


# Fingerprints of a text; of two copies, _SHARED of them are almost always in both.
_FINGERPRINTS = 6
_SHARED = 2
# Texts per fingerprint that a new one is paired with: a daily form has the same words every day.
_MOST_ALIKE = 8


class CopyCandidates:
    """Finds pairs of likely copies among thousands of texts, without comparing each with each."""

    def __init__(self) -> None:
        self.pairs: list[tuple[ChunkId, ChunkId]] = []
        self._with: dict[int, deque[ChunkId]] = {}  # by fingerprint

    def add(self, texts: Iterable[tuple[ChunkId, str]]) -> None:
        """Pair each text with similar earlier ones in `pairs`; some 40 µs a text."""
        for chunk_id, text in texts:
            fingerprints = _fingerprints(text)
            shared: Counter[ChunkId] = Counter()
            for one in fingerprints:
                alike = self._with.setdefault(one, deque(maxlen=_MOST_ALIKE))
                shared.update(alike)
                alike.append(chunk_id)
            least = min(_SHARED, len(fingerprints))
            self.pairs += [(other, chunk_id) for other, count in shared.items() if count >= least]


def _fingerprints(text: str) -> list[int]:
    """Return the smallest hashes of a text's shingles: pairs of words or, outside ASCII, three characters."""
    words = text.lower().split()
    if text.isascii():
        pieces = {f"{one} {other}" for one, other in pairwise(words)}
    else:
        joined = "".join(words)
        pieces = {joined[at : at + 3] for at in range(max(1, len(joined) - 2))}
    return sorted(zlib.crc32(piece.encode("utf-8", "replace")) for piece in pieces or words)[:_FINGERPRINTS]


def copies_among(
    pairs: Iterable[tuple[ChunkId, ChunkId]], chunks: Mapping[ChunkId, StoredChunk]
) -> Iterator[tuple[StoredChunk, StoredChunk]]:
    """Yield the pairs of which one text says all that the other does, as (earlier, later).

    Args:
        pairs: Candidate pairs.
        chunks: Chunks by id; a pair is skipped if one is missing or is marked as superseded.
    """
    for pair in pairs:
        both = [
            chunk for each in pair if (chunk := chunks.get(each)) is not None and chunk.superseded is None
        ]
        if len(both) < len(pair):
            continue
        earlier, latest = sorted(both, key=recency_key)
        if (
            earlier.path == latest.path
            and earlier.start_line <= latest.end_line
            and latest.start_line <= earlier.end_line
        ):
            continue  # adjacent chunks overlap
        one, other = ComparedText(earlier.text), ComparedText(latest.text)
        if one.covers(other) or other.covers(one):
            yield earlier, latest
