"""Tells what file a Markdown file is a copy of, by its name: the one place that decides it.

What synchronises, copies or merges files names a copy after its original. A copy of MEMORY.md says what MEMORY.md says, and is as
private.
"""

import re

_LONGEST = 255  # characters: no file system has longer names
_MARKDOWN = ".md"

# A copy in European languages, and what people add to a name when they keep the old file.
_COPY = r"(?:cop(?:y|ies|ie|ia)|cópia|kopi[ea]|копия|backup|bak|old|orig)"
_CONFLICT = r"(?:sf)?(?:[ck]onfli[ck]t\w*|conflit\w*|конфликт\w*)"
# The same in Chinese, Japanese and Korean, where no space need stand around a word.
_COPY_CJK = "(?:副本|复件|複本|拷贝|拷貝|备份|備份|冲突|衝突|競合|コピー|복사본|사본|충돌)"
_SEPARATORS = " ._~–—-"
_NUMBER = r"(?:[\s._~-]*\d[\d\s._-]*)?"  # which copy it is, or of what day

# What a program says in brackets: (1), (copy), (another copy), (ann's conflicted copy 2026-11-29), （副本）.
_BRACKETS = {"(": ")", "（": "）", "[": "]"}
_IN_BRACKETS = re.compile(rf"\d{{1,3}}\Z|.*(?:\b(?:{_COPY}|{_CONFLICT})\b|{_COPY_CJK})", re.IGNORECASE)
# The first that matches decides.
_ENDS = tuple(
    re.compile(rf"{end}\Z", re.IGNORECASE)
    for end in (
        r"\s\d{1,2}",  # Finder, iCloud
        r"[\s._~-]sync-conflict-.*",  # Syncthing
        r"~\d{8}-\d{6}",  # old versions that Syncthing keeps
        r"_[^_]+_[a-z]{3}-\d{1,2}-\d{4,6}-\d{4}_conflict",  # Synology Drive
        r"-(?:desktop|laptop|win)-[a-z0-9]{6,12}(?:-\d{1,3})?",  # OneDrive: the name of the computer
        r"_(?:local|remote|base|backup)_\d+",  # git mergetool
        rf"[\s._~–—-](?:{_COPY}|conflict(?:ed)?(?:[\s._-]copy)?){_NUMBER}",
        rf"[的の]?\s?{_COPY_CJK}{_NUMBER}",
        r"\.md|[\s.~]",
    )
)
_BEGINS = re.compile(
    rf"(?:{_COPY}(?:\s?\(\d{{1,3}}\))?\s(?:of|von|van|de|di|af|av)\s|{_COPY_CJK}(?:\s?\(\d{{1,3}}\))?[\s_-]*)",
    re.IGNORECASE,
)


def original_name(name: str) -> str:
    """Return the name of the file that a Markdown file may be a copy of; its own name if it is none.

    ``MEMORY.sync-conflict-20261123-161318-BTMRC5A.md``, ``MEMORY (ann's conflicted copy 2026-11-29).md``, ``MEMORY 2.md`` and
    ``Copy of MEMORY - Copy (2).md`` give ``MEMORY.md``. A name alone proves nothing: ``Chapter 2.md`` gives ``Chapter.md``.

    Args:
        name: The name of the file, without its directory, in any letter case.
    """
    suffix = name[-len(_MARKDOWN) :]
    if suffix.lower() != _MARKDOWN or len(name) > _LONGEST:
        return name
    stem = name[: -len(_MARKDOWN)]
    # A copy may be copied again. Each turn makes the stem shorter.
    while (shorter := _without_mark(stem)) != stem:
        stem = shorter
    return stem + suffix


def _without_mark(stem: str) -> str:
    """Return a stem without one mark of a copy; unchanged if it has none, or consists of it."""
    cuts = [(0, found.start()) for end in _ENDS if (found := end.search(stem))]
    if (opening := _opening_of_last(stem)) is not None and _IN_BRACKETS.match(
        stem, opening + 1, len(stem) - 1
    ):
        cuts.append((0, opening))
    if found := _BEGINS.match(stem):
        cuts.append((found.end(), len(stem)))
    return next((left for start, end in cuts if (left := stem[start:end].strip(_SEPARATORS))), stem)


def _opening_of_last(stem: str) -> int | None:
    """Return where the bracket opens that closes at the end of a stem; None: it does not end in one."""
    for opening, closing in _BRACKETS.items():
        if stem.endswith(closing):
            depth = 0
            for at in range(len(stem) - 1, -1, -1):
                depth += (stem[at] == closing) - (stem[at] == opening)
                if depth == 0:
                    return at
            # A name of a person within may have a bracket of its own, such as a smiley.
            return at if (at := stem.find(opening)) >= 0 else None
    return None
