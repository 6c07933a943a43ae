from pathlib import Path

import pytest

from memd.backends.qmd import commands
from memd.backends.qmd.commands import MOST_TERMS, sentence, unsaid, words
from memd.search.query import parse
from tests.bounds import shipped


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
    ("version", "several", "names", "alternatives"),
    [
        (None, False, False, False),
        ((0, 9, 0), False, False, False),
        ((2, 0, 9), False, False, False),
        ((2, 1), False, False, True),
        ((2, 6, 9), False, False, True),
        ((2, 7), False, True, True),
        ((2, 7, 9), False, True, True),
        ((2, 8), True, True, True),
        ((3,), True, True, True),
    ],
)
def test_old_versions_are_asked_as_they_understand_it(
    version: commands.Version | None, several: bool, names: bool, alternatives: bool
) -> None:
    """What a version cannot do, or does wrong, is not asked of it; of an unknown one as little as of the oldest."""
    assert commands.takes_several(version) is several
    assert commands.takes_alternatives(version) is alternatives
    assert commands.keeps_names(version) is names


@pytest.mark.parametrize(
    ("question", "together"),
    [
        ("which database did we pick?", "database pick"),
        ("-rf --help", "rf help"),
        ("数据库选型", "数据 据库 库选 选型"),
        ("memd.search failed", '"memd search" failed'),
        ('what is "the plan" now', '"the plan" now'),
        ("???", ""),
        ("a\0b", "b"),
    ],
)
def test_documents_are_to_hold_the_telling_words(question: str, together: str) -> None:
    """Not those that questions are built of; single Chinese characters neither."""
    assert words(parse(question)).all == together


def test_there_are_at_most_twelve_words() -> None:
    """The first ones; one by one the longest of them come first."""
    asked = words(parse(" ".join("abcdefghijklmnop"[:n] for n in range(3, 16))))
    assert len(asked.each) == MOST_TERMS
    assert asked.each[0] == "abcdefghijklmn"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("  where\n is\tit? ", "where is it?"),
        ("-rf --help x -y", "rf help x y"),
        ("a-b - c", "a-b - c"),
        ("lex: x", "lex  x"),
        ("Expand:x", "Expand x"),
        ("a\0b", "a b"),
        ("", ""),
    ],
)
def test_a_sentence_has_no_signs_of_qmds_own(question: str, asked: str) -> None:
    """One line, without options, excluded words or typed lines."""
    assert sentence(question) == asked


def test_a_long_question_is_cut() -> None:
    """An argument has a limit, and no model reads so much."""
    most = shipped("memd.backends.qmd.commands._MOST_CHARS")
    assert [len(sentence("x" * count)) for count in (most, most + 1)] == [most, most]
    assert len(sentence("x " * 100_000)) <= most


@pytest.mark.parametrize(
    ("question", "secret"),
    [
        ("Is the Safe in 厨房的柜子?", {"the", "safe", "厨房", "房的", "的柜", "柜子"}),
        ("王伟", {"王伟"}),
        ("is it 42?", {"42"}),
        ("\uff30\uff29\uff2e", {"pin", "\uff50\uff49\uff4e"}),
        ("???", set()),
    ],
)
def test_the_words_of_a_question_are_not_to_be_repeated(question: str, secret: set[str]) -> None:
    """Whatever their case or width, and by pairs as qmd is asked for them; short ones say nothing, but numbers do."""
    assert set(unsaid(question)) == secret


def test_what_qmd_is_asked_for_holds_something_that_is_not_to_be_repeated() -> None:
    """So that a message that quotes it is passed over."""
    for question in ("谁负责数据库迁移", "王伟", "the PIN 42", "メモリの場所"):
        said = words(parse(question)).all
        assert any(secret in said.lower() for secret in unsaid(question))
