"""Recognises text that only repeats the question: it is closest to the question, and answers nothing. Pure."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from memd.search.query import Query
from memd.search.terms import held
from memd.store.chunks import StoredChunk
from memd.text.tokens import tokens
from memd.text.turn_header import CONTINUED, header_in

# A turn of this many words that are a part of the question is a truncated repetition of it. Fewer may be an answer: "we
# deploy on Friday" is a part of "Do we deploy on Friday?".
_WORDS_OF_ECHO = 12


class QuestionEchoes:
    """Recognises transcript chunks that only repeat the question."""

    def __init__(self, query: Query) -> None:
        """Prepare the words of one question."""
        self._query = query

    @cached_property
    def _asked(self) -> Sequence[str]:
        return _words(self._query.embed_text)

    def only_repeats(self, chunk: StoredChunk) -> bool:
        """Return whether a chunk of a transcript cannot answer: someone asks the question, and nothing else is said after it.

        Turns before it count as an answer only if they hold a term of the question.
        """
        if not chunk.kind.is_session or not self._asked:
            return False
        turns = list(_turns(chunk.text))
        repeated = list(map(self._is_repeated, turns))
        if True not in repeated:
            return False
        first = repeated.index(True)
        return all(repeated[first:]) and not held(turns[:first], self._query.terms)

    def _is_repeated(self, turn: str) -> bool:
        said = _words(turn)
        if len(said) < _WORDS_OF_ECHO:
            return said == self._asked
        asked = self._asked
        return any(
            asked[at : at + len(said)] == said
            for at in range(len(asked) - len(said) + 1)
            if asked[at] == said[0]
        )


def _turns(text: str) -> Iterator[str]:
    """Yield the text of each turn, without its header."""
    lines: list[str] = []
    for line in text.split("\n"):
        head = header_in(line)
        if head and lines:
            yield "\n".join(lines)
            lines = []
        lines.append(line[len(head) :].removeprefix(CONTINUED))
    yield "\n".join(lines)


def _words(text: str) -> Sequence[str]:
    return [token for token, _, _ in tokens(text)]
