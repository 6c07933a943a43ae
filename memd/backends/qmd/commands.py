"""What qmd is told on its command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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


def tells_names(version: Version | None) -> bool:
    """Whether this qmd calls files as the disk does."""
    return version is not None and version >= _NAMES_AS_THEY_ARE


def _of(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("-c", name))
