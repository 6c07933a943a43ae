"""What qmd is asked on its command line, and how a question is put to it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memd.search.query import Query
from memd.text.tokens import is_cjk, tokens

Mode = Literal["search", "vsearch", "query"]
Version = tuple[int, ...]

LIST = ("collection", "list", "--json")
UPDATE = ("update",)
EMBED = ("embed",)
STATUS = ("status",)
CLEANUP = ("cleanup",)
VERSION = ("--version",)

# Before these versions several -c narrowed the search to the last one, or a large collection crowded out the others.
_SEVERAL_COLLECTIONS: Version = (2, 8)
# Before this version names of files were changed to what suits a URL.
_NAMES_AS_THEY_ARE: Version = (2, 7)
# `query` with typed lines came earlier, leaving out the reranking by a model with this one.
_ALTERNATIVES: Version = (2, 1)


def add(directory: Path, name: str, pattern: str) -> tuple[str, ...]:
    """Add a collection; its directory is absolute, so that it cannot be taken for an option."""
    return ("collection", "add", str(directory), "--name", name, "--mask", pattern)


def remove(name: str) -> tuple[str, ...]:
    """Forget a collection; what is in its directory stays."""
    return ("collection", "remove", name)


def search(mode: Mode, text: str, names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Search some collections.

    What follows ``--`` is no option, whatever it begins with.
    """
    return (mode, "--json", "-n", str(limit), *_of(names), "--", text)


def alternatives(lines: Sequence[str], names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Search for documents that hold any of some lines, without a model."""
    document = "\n".join(f"lex: {line}" for line in lines)
    return ("query", "--json", "--no-rerank", "-n", str(limit), *_of(names), "--", document)


def takes_several(version: Version | None) -> bool:
    """Whether this qmd searches several collections at once, each on equal terms."""
    return version is not None and version >= _SEVERAL_COLLECTIONS


def takes_alternatives(version: Version | None) -> bool:
    """Whether this qmd can be asked for documents that hold any of several texts."""
    return version is not None and version >= _ALTERNATIVES


def keeps_names(version: Version | None) -> bool:
    """Whether this qmd calls files as the disk does."""
    return version is not None and version >= _NAMES_AS_THEY_ARE


def _of(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("-c", name))


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
