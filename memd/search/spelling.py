"""Names that a question misspells by one letter, searched for as texts spell them.

Only names are: of other words that no text holds, nearly all that are one letter away from one that is held mean something
else (DECISIONS.md). A name is known by its capital letter in the texts, so that a question may be in small letters.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol

from memd.domain_types import ChunkId, Kind
from memd.search.query import Query, with_spellings
from memd.search.terms import LOOK_BACK, NO_NAMES, SENTENCE_BEGINNING
from memd.store.chunks import StoredChunk
from memd.text.edits import one_edit_away
from memd.text.tokens import fts_text, tokens

MOST_MISSPELT = 2  # words of a question that are looked for in other spellings: some 0.6 ms each
SPELLINGS = 16  # of a word, that are looked up in texts
READ = 4  # texts that tell whether a word is a name

_SPEAKER = re.compile(r"[^\S\n]*[:：]")


class _Finder(Protocol):
    """Finds words in the keyword index, as searcher.ChunkFinder does."""

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> Mapping[str, Sequence[ChunkId]]: ...


class _Reader(Protocol):
    """Reads chunks, as searcher.ChunkReader does."""

    @property
    def keywords(self) -> _Finder: ...

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]: ...


def spelt(asked: Query, reader: _Reader, kinds: Collection[Kind]) -> Query:
    """A question with the names that no text holds as texts spell them; the same one where there are none.

    Args:
        asked: The question.
        reader: Of an index.
        kinds: Of files that may be seen; no others tell of a spelling.
    """
    if not asked.misspellable:
        return asked
    held = reader.keywords.holders(asked.misspellable, kinds, 1)
    told = frozenset(asked.terms[n] for n in asked.names.proper)
    missing = sorted(
        (word for word in asked.misspellable if word not in held), key=lambda one: one not in told
    )
    near = _names_near(missing[:MOST_MISSPELT], told, asked, reader, kinds)
    return with_spellings(asked, near) if near else asked


def _names_near(
    words: Sequence[str], told: Collection[str], asked: Query, reader: _Reader, kinds: Collection[Kind]
) -> dict[str, str]:
    """Of words the names one edit away that most texts hold, of equal ones the first.

    Those of all words are read together: a server is asked twice at most.
    """
    edits = {word: one_edit_away(word) for word in words}
    holders = reader.keywords.holders(list(chain.from_iterable(edits.values())), kinds, READ)
    likely = {
        word: sorted(
            (one for one in some if one in holders and one not in asked.words and one not in NO_NAMES),
            key=lambda one: (-len(holders[one]), one),
        )[:SPELLINGS]
        for word, some in edits.items()
    }
    chunks = reader.texts(
        list({chunk_id for one in chain.from_iterable(likely.values()) for chunk_id in holders[one]})
    )
    found = {}
    for word, some in likely.items():
        for one in some:
            texts = (chunks[chunk_id].text for chunk_id in holders[one] if chunk_id in chunks)
            if is_name(one, texts, anywhere=word in told):
                found[word] = one
                break
    return found


def is_name(word: str, texts: Iterable[str], *, anywhere: bool = False) -> bool:
    """Whether texts write a word as a name: with a capital letter within a sentence, or as who speaks, as often as without.

    Tags and addresses have names in small letters.

    Args:
        word: A token.
        texts: That may hold it.
        anywhere: Whether a capital letter that a sentence begins with is enough, since the question has one, too.
    """
    names = others = 0
    for text in texts:
        for start, end in _places(word, text):
            before = text[max(0, start - LOOK_BACK) : start]
            if not text[start].isupper():
                others += 1
            elif anywhere or not SENTENCE_BEGINNING.search(before) or _SPEAKER.match(text, end):
                names += 1
    return names > 0 and names >= others


def _places(word: str, text: str) -> list[tuple[int, int]]:
    """Where a word stands in a text; soon found where it is written there as the keyword index has it."""
    found = re.finditer(rf"(?<![^\W_]){word}(?![^\W_])", text, re.IGNORECASE)
    places = [one.span() for one in found]
    if places or text.isascii() or word not in fts_text(text):
        return places
    return [(start, end) for token, start, end in tokens(text) if token == word]
