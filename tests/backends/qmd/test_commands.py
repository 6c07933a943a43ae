from pathlib import Path

import pytest

from memd.backends.qmd import commands


def test_a_question_cannot_become_an_option() -> None:
    """It stands after the end of all options, and is one argument."""
    given = commands.search("search", "--help -rf", ["a", "b"], 60)
    assert given == ("search", "--json", "-n", "60", "-c", "a", "-c", "b", "--", "--help -rf")


def test_alternatives_are_lines_of_one_document() -> None:
    """One call asks for documents that hold any of them, without a model."""
    given = commands.alternatives(["a b", "a"], ["c"], 60)
    assert given == ("query", "--json", "--no-rerank", "-n", "60", "-c", "c", "--", "lex: a b\nlex: a")


def test_a_collection_is_added_by_its_whole_path() -> None:
    """An absolute path is no option, and needs no quotation marks."""
    given = commands.add(Path("/my notes"), "memory-main", "**/*.md")
    assert given == ("collection", "add", "/my notes", "--name", "memory-main", "--mask", "**/*.md")


@pytest.mark.parametrize(
    ("version", "several", "alternatives"),
    [
        (None, False, False),
        ((0, 9, 0), False, False),
        ((2, 1), False, True),
        ((2, 8, 3), True, True),
        ((3,), True, True),
    ],
)
def test_old_versions_are_asked_as_they_understand_it(
    version: commands.Version | None, several: bool, alternatives: bool
) -> None:
    """What a version cannot do, or does wrong, is not asked of it; of an unknown one as little as of the oldest."""
    assert commands.takes_several(version) is several
    assert commands.takes_alternatives(version) is alternatives
    assert commands.tells_names(version) is several
