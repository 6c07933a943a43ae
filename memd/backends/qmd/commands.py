"""The command lines of qmd, and how a question becomes one."""

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

# Before this version only the last of several -c was used, or a large collection displaced the results of
# others.
_SEVERAL_COLLECTIONS: Version = (2, 8)
# Before this version file names were changed into URL-safe ones.
_NAMES_AS_THEY_ARE: Version = (2, 7)
# `query` with typed lines came earlier; the option to skip reranking by a model came with this version.
_ALTERNATIVES: Version = (2, 1)


def add(directory: Path, name: str, pattern: str) -> tuple[str, ...]:
    """Add a collection; its path is absolute, so that it cannot be parsed as an option."""
    return ("collection", "add", str(directory), "--name", name, "--mask", pattern)


def remove(name: str) -> tuple[str, ...]:
    """Remove a collection; the files in its directory stay."""
    return ("collection", "remove", name)


def search(mode: Mode, text: str, names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Search some collections; `--` keeps the text from being parsed as an option."""
    return (mode, "--json", "-n", str(limit), *_of(names), "--", text)


def alternatives(lines: Sequence[str], names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Search for documents that contain any of some lines, without a model."""
    document = "\n".join(f"lex: {line}" for line in lines)
    return ("query", "--json", "--no-rerank", "-n", str(limit), *_of(names), "--", document)


def takes_several(version: Version | None) -> bool:
    """Return whether this qmd can search several collections at once with equal weight."""
    return version is not None and version >= _SEVERAL_COLLECTIONS


def takes_alternatives(version: Version | None) -> bool:
    """Return whether this qmd can search for documents that contain any of several texts."""
    return version is not None and version >= _ALTERNATIVES


def keeps_names(version: Version | None) -> bool:
    """Return whether this qmd reports file names as they are on disk."""
    return version is not None and version >= _NAMES_AS_THEY_ARE


def _of(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("-c", name))


MOST_TERMS = 12
_MOST_CHARS = 2_000
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_NEGATION = re.compile(r"(?<!\S)-+(?=\S)")
_TYPED = re.compile(r"^(lex|vec|hyde|expand|intent):", re.IGNORECASE)


class QmdWords(msgspec.Struct, frozen=True):
    """The words of a keyword search; qmd finds documents that contain all of them."""

    all: str  # empty if the question has no words
    each: tuple[str, ...]  # single terms, longest first, as those are mostly the rarest


def words(asked: Query) -> QmdWords:
    """Return the significant words of a question, at most twelve; names and quotations as phrases.

    A run of CJK characters becomes its adjacent pairs; as a whole it would have to occur in a note exactly as
    in the question.
    """
    phrases = [f'"{phrase}"' for phrase in asked.phrases]
    in_phrases = {word for phrase in asked.phrases for word in phrase.split()}
    single = [word for word in asked.words if word not in in_phrases]
    chosen = (phrases + single)[:MOST_TERMS]
    return QmdWords(" ".join(chosen), tuple(sorted(dict.fromkeys(chosen), key=len, reverse=True)))


def sentence(text: str) -> str:
    """Return a question on one line, without qmd's operators.

    A word after a hyphen would be excluded, and ``lex:`` or ``expand:`` at the beginning would be a command.
    """
    flat = _NEGATION.sub("", _SPACES.sub(" ", text[: 4 * _MOST_CHARS]).strip())[:_MOST_CHARS].strip()
    return _TYPED.sub(r"\1 ", flat)


def unsaid(text: str) -> tuple[str, ...]:
    """Return the parts of a question that no message may quote: words, numbers, and adjacent pairs of CJK characters.

    Such pairs are sent to qmd, so it may quote them. Other words of one or two letters occur in any message.
    """
    found: set[str] = set()
    asked = text[: 4 * _MOST_CHARS]
    before, ended = "", 0
    for token, start, end in tokens(asked):
        if not is_cjk(token):
            # As it is searched for, and as it was written.
            found.update(
                form for form in (token, asked[start:end].lower()) if len(form) > 2 or form.isdigit()
            )
        elif before and is_cjk(before) and ended == start:
            found.add(before + token)
        before, ended = token, end
    return tuple(found)
