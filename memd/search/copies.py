"""Which of two texts says nothing that the other does not: copied notes, forked sessions, repeated questions."""

import re
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from memd.domain_types import ChunkId
from memd.store.chunks import StoredChunk
from memd.text.tokens import WORD_CHARACTER, fts_text
from memd.text.turn_header import header_in

# Shorter texts are the same only where they are equal: "which cat?" may be asked of two cats.
LEAST_WORDS = 4
# So much shorter a text may be than the one that says the same: what stands around a line may be what matters.
_LENGTH = 0.8
# Pairs of neighbouring words of one that the other may lack beside those that its further words take apart: "Ann owes Bob"
# has the words of "Bob owes Ann".
_PAIRS_APART = 1
# Texts that share less of what stands between blanks, and of the characters where these are not all of ASCII, are not
# compared word by word, which costs 45 µs a text in English and 260 µs in Chinese instead of 10.
_ROUGHLY = 0.6
_WORD = re.compile(f"{WORD_CHARACTER}+")
# Words that change nothing, and those that one text more or less has of change all.
_TELL_NOTHING = frozenset(
    re.findall(r"\w+", "a an the this that of to in on at for and it its 的 地 得 了 着 呢 吧 啊 呀 嘛")
)
_NEGATIONS = frozenset(
    re.findall(r"\w+", "not no never none nobody nothing nor without cannot t 不 没 沒 无 無 未 别 勿 非 否")
)


class Said:
    """What a text of a chunk or a window says, without who said it and when."""

    def __init__(self, text: str) -> None:
        """Prepare a text for comparisons.

        Args:
            text: The text.
        """
        self._text = text
        lowered = text.lower()
        words = frozenset(lowered.split())
        self.roughly = words if text.isascii() else words.union(lowered)

    def covers(self, other: "Said") -> bool:
        """Whether the other is about as long and says nothing that this does not."""
        if len(self.roughly & other.roughly) < _ROUGHLY * max(len(self.roughly), len(other.roughly)):
            return False
        length, of_other = self.words.total(), other.words.total()
        if of_other < max(LEAST_WORDS, _LENGTH * length) or length < _LENGTH * of_other:
            return False
        further = self.words - other.words
        if other.words - self.words or not _NEGATIONS.isdisjoint(further):
            return False
        return len(other.pairs - self.pairs) <= further.total() + _PAIRS_APART

    @cached_property
    def in_order(self) -> list[str]:
        """Its words that tell something."""
        lines = self._text.split("\n")
        if lines[0].rstrip() == "---" and "---" in lines[1:]:
            # Front matter tells when a copy was made.
            lines = lines[lines.index("---", 1) + 1 :]
        words = _WORD.findall(fts_text("\n".join(line[len(header_in(line)) :] for line in lines)))
        return [word for word in words if word not in _TELL_NOTHING]

    @cached_property
    def words(self) -> Counter[str]:
        """The same, with how often each stands there."""
        return Counter(self.in_order)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The same, each with the next."""
        return frozenset(zip(self.in_order, self.in_order[1:], strict=False))


def later(chunk: StoredChunk) -> tuple[bool, float, int]:
    """What copies are compared by: the one with more is the later one; one that still holds is later than one that does not."""
    return (
        chunk.superseded is None,
        chunk.written_ns / 1e9 if chunk.last_s is None else chunk.last_s,
        chunk.written_ns,
    )


# A text is compared with those that share some of its fingerprints: of two that are copies, so few are almost always among both.
_FINGERPRINTS = 6
_SHARED = 2
# Texts of one fingerprint that the next is compared with: a form that is filled in every day has its words in all.
_MOST_ALIKE = 8


class CopyCandidates:
    """Finds pairs of texts that may say the same among thousands, without comparing each with each."""

    def __init__(self) -> None:
        self.pairs: list[tuple[ChunkId, ChunkId]] = []
        self._with: dict[int, deque[ChunkId]] = {}  # by fingerprint

    def add(self, texts: Iterable[tuple[ChunkId, str]]) -> None:
        """Pair texts with those before; some 40 µs each."""
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
    """The smallest hashes of what is next to each other in a text: pairs of words, or three characters where it has others than ASCII."""
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
    """Of some pairs those of which one says all that the other does: the earlier and the later.

    Args:
        pairs: Candidates.
        chunks: By id; pairs of which one is not there, or is superseded anyway, are left out.
    """
    for pair in pairs:
        both = [
            chunk for each in pair if (chunk := chunks.get(each)) is not None and chunk.superseded is None
        ]
        if len(both) < len(pair):
            continue
        earlier, latest = sorted(both, key=later)
        if (
            earlier.path == latest.path
            and earlier.start_line <= latest.end_line
            and latest.start_line <= earlier.end_line
        ):
            continue  # chunks overlap where one is cut
        one, other = Said(earlier.text), Said(latest.text)
        if one.covers(other) or other.covers(one):
            yield earlier, latest
