"""Corrects names in a question that are misspelt by one letter, to the spelling in texts.

Other words are not corrected: if no text holds them, nearly all words one letter away mean something else (DECISIONS.md). A
name is recognised by its capital letter in texts, so that the question may be in lower case.
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

MOST_MISSPELT = 2  # words of a question that are corrected; some 0.6 ms each
SPELLINGS = 16  # candidates of a word that are checked in texts
READ = 4  # texts by which a word is recognised as a name

_SPEAKER = re.compile(r"[^\S\n]*[:：]")


class _Finder(Protocol):
    """Looks up words in the keyword index; see protocols.ChunkFinder."""

    def holders(
        self, words: Sequence[str], kinds: Collection[Kind], most: int
    ) -> Mapping[str, Sequence[ChunkId]]: ...


class _Reader(Protocol):
    """Reads chunks; see protocols.ChunkReader."""

    @property
    def keywords(self) -> _Finder: ...

    def texts(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]: ...


def spelt(asked: Query, reader: _Reader, kinds: Collection[Kind]) -> Query:
    """Return a question with misspelt names corrected; the same object if there are none.

    Args:
        asked: The question.
        reader: Reads the index.
        kinds: The visible kinds of files, whose texts are used.
    """
    if not asked.misspellable:
        return asked
    held = reader.keywords.holders(asked.misspellable, kinds, 1)
    proper = frozenset(asked.terms[n] for n in asked.names.proper)
    missing = sorted(
        (word for word in asked.misspellable if word not in held), key=lambda one: one not in proper
    )
    if not missing:
        return asked
    near = _names_near(missing[:MOST_MISSPELT], proper, asked, reader, kinds)
    return with_spellings(asked, near) if near else asked


def _names_near(
    words: Sequence[str], proper: Collection[str], asked: Query, reader: _Reader, kinds: Collection[Kind]
) -> dict[str, str]:
    """Return for each word the name one edit away that the most texts hold; ties go to the first in order.

    The candidates of all words are read together, in at most two round trips to a server.
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
            if is_name(one, texts, anywhere=word in proper):
                found[word] = one
                break
    return found


def is_name(word: str, texts: Iterable[str], *, anywhere: bool = False) -> bool:
    """Return whether texts capitalise a word within sentences, or before a colon as a speaker, at least as often as not.

    Names in tags and addresses are in lower case.

    Args:
        word: A token.
        texts: Texts that may contain it.
        anywhere: Whether a capital letter at the beginning of a sentence counts too, since the question has one.
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
    """Return the spans of a word in a text; fast if it is written there in its normalised form."""
    found = re.finditer(rf"(?<![^\W_]){word}(?![^\W_])", text, re.IGNORECASE)
    places = [one.span() for one in found]
    if places or text.isascii() or word not in fts_text(text):
        return places
    return [(start, end) for token, start, end in tokens(text) if token == word]
