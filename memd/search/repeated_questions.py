"""Parts of transcripts that only repeat the question: they are closest to it, and answer nothing."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from memd.config.settings import WORTH_READING
from memd.model import Kind
from memd.search.fuse import Scored, relevance
from memd.search.query import Query
from memd.search.terms import held
from memd.store.chunks import StoredChunk
from memd.text.tokens import tokens
from memd.text.turn_header import CONTINUED, header_in

_EVIDENCE = math.atanh(WORTH_READING)

# So many words in a row of the question say nothing of their own: they are a part of it, of a turn that was cut. Fewer may
# be an answer: "we deploy on Friday" stands in "Do we deploy on Friday?".
_MANY = 12


class QuestionEchoes:
    """Knows what repeats one question."""

    def __init__(self, query: Query) -> None:
        """Recognise repetitions of one question.

        Args:
            query: The question.
        """
        self._query = query
        self._asked = _words(query.embed_text)

    def only_repeats(self, chunk: StoredChunk) -> bool:
        """Whether nothing in a part of a transcript can answer: somebody puts the question, and nothing is said after that.

        What was said before is no answer where it holds none of the question's terms.
        """
        if chunk.kind is not Kind.SESSION or not self._asked:
            return False
        turns = list(_turns(chunk.text))
        repeated = list(map(self._is_repeated, turns))
        if True not in repeated:
            return False
        first = repeated.index(True)
        return all(repeated[first:]) and not held(turns[:first], self._query.terms)

    def _is_repeated(self, turn: str) -> bool:
        said = _words(turn)
        if len(said) < _MANY:
            return said == self._asked
        asked = self._asked
        return any(
            asked[at : at + len(said)] == said
            for at in range(len(asked) - len(said) + 1)
            if asked[at] == said[0]
        )


def lowered(scored: Scored) -> Scored:
    """As good as what is just worth reading, and not better."""
    factor = min(1.0, _EVIDENCE / scored.evidence) if scored.evidence else 1.0
    meaning, words = factor * scored.meaning, factor * scored.words
    return msgspec.structs.replace(scored, score=relevance(meaning + words), meaning=meaning, words=words)


def _turns(text: str) -> Iterator[str]:
    """What was said in each turn, without its header."""
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
