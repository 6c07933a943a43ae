"""A question as qmd is asked it."""

import re

import msgspec

from memd.search.query import Query
from memd.text.tokens import is_cjk, tokens

MOST_TERMS = 12
_MOST_CHARS = 2_000
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_NEGATION = re.compile(r"(?<!\S)-+(?=\S)")
_TYPED = re.compile(r"^(lex|vec|hyde|expand|intent):", re.IGNORECASE)


class QmdWords(msgspec.Struct, frozen=True):
    """What documents are to hold: qmd finds by words those that hold all it is given."""

    all: str  # empty where the question has no word
    each: tuple[str, ...]  # the same one by one, the longest first: the rarest, mostly


def words(asked: Query) -> QmdWords:
    """The telling words of a question, at most twelve; names and quotations as phrases.

    A run of CJK characters is asked for by its adjacent pairs. Without that it would have to stand in a note just as it
    stands in the question.
    """
    phrases = [f'"{phrase}"' for phrase in asked.phrases]
    in_phrases = {word for phrase in asked.phrases for word in phrase.split()}
    single = [word for word in asked.words if word not in in_phrases]
    chosen = (phrases + single)[:MOST_TERMS]
    return QmdWords(" ".join(chosen), tuple(sorted(dict.fromkeys(chosen), key=len, reverse=True)))


def sentence(text: str) -> str:
    """A question as it was put, on one line, without what qmd would take for its own signs.

    A word after a hyphen would be one that no document may hold, and ``lex:`` or ``expand:`` at the beginning a command.
    """
    flat = _NEGATION.sub("", _SPACES.sub(" ", text[: 4 * _MOST_CHARS]).strip())[:_MOST_CHARS].strip()
    return _TYPED.sub(r"\1 ", flat)


def unsaid(text: str) -> tuple[str, ...]:
    """What no message may repeat of a question: its words, its numbers, and adjacent pairs of CJK characters.

    Such pairs are what qmd is asked for, so it is what it quotes. Other words of one or two letters are parts of any
    message.
    """
    found: set[str] = set()
    asked = text[: 4 * _MOST_CHARS]
    before, ended = "", 0
    for token, start, end in tokens(asked):
        if not is_cjk(token):
            # As it is looked for, and as it was written.
            found.update(
                form for form in (token, asked[start:end].lower()) if len(form) > 2 or form.isdigit()
            )
        elif before and is_cjk(before) and ended == start:
            found.add(before + token)
        before, ended = token, end
    return tuple(found)
