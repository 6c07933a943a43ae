"""Which lines say what."""

import tomllib
from typing import Any

import pytest

from memd.config.toml_lines import Key, lines, repeated, statements
from tests.bounds import shipped

_TEXT = """\
# a comment
title = "x"

[agents.main]  # here
workspace = "~/w"
extra_paths = [
  "a", # first
  '''
[agents.fake]
''',
]
query = { max_results = 3, hybrid = { enabled = true } }
scope.default = "deny"

[[agents.main.scope.rules]]
action = "allow"
[[agents.main.scope.rules]]
action = "deny"
[agents.main.scope.rules.match]
channel = "x"
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("title",), 2),
        (("agents",), 4),
        (("agents", "main"), 4),
        (("agents", "main", "workspace"), 5),
        (("agents", "main", "extra_paths"), 6),
        (("agents", "main", "extra_paths", 1), 6),
        (("agents", "main", "query", "hybrid", "enabled"), 12),
        (("agents", "main", "scope", "default"), 13),
        (("agents", "main", "scope", "rules", 0, "action"), 16),
        (("agents", "main", "scope", "rules", 1, "action"), 18),
        (("agents", "main", "scope", "rules", 1, "match", "channel"), 20),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_key_is_found_on_the_line_where_it_is_mentioned(key: Key, line: int, line_end: str) -> None:
    """Keys in tables, inline tables, lists and arrays of tables have the line of their statement."""
    assert lines(_TEXT.replace("\n", line_end))[key] == line


def test_what_stands_in_a_text_is_no_statement() -> None:
    """A line of a multi-line text that looks like a header opens no table."""
    assert ("agents", "fake") not in lines(_TEXT)


def test_a_statement_has_all_its_lines() -> None:
    """A list over several lines is one statement."""
    found = next(found for found in statements(_TEXT) if found.keys[0] == ("agents", "main", "extra_paths"))
    assert (found.line, found.last_line, found.is_header) == (6, 11, False)


def test_the_last_line_of_a_list_is_no_header() -> None:
    """It may begin with a bracket all the same."""
    assert [found.is_header for found in statements("a = [\n[1]]\n[b]")] == [False, True]


def test_a_very_long_list_is_followed() -> None:
    """Lines that cannot end it cost nothing."""
    text = "a = [\n" + "1,\n" * 10_000 + "]\nb = 2\n"
    assert lines(text)[("b",)] == 10_003


@pytest.mark.long
def test_a_long_list_of_lists_ends_the_search() -> None:
    """Behind a thousand lines that might each end it nothing is looked for: it would cost more than it tells."""
    text = "a = [\n" + "[1],\n" * 1000 + "]\nb = 2\n"
    assert lines(text) == {}


def test_what_stands_once_is_not_repeated() -> None:
    """Arrays of tables, tables below an opened one and the keys of both are as TOML wants them."""
    assert repeated(_TEXT) == {}
    assert repeated("a.b = 1\na.c = 2\n[x]\na.b = 1\n[[t]]\nk = 1\n[[t]]\nk = 1") == {}


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "row",
    ["[1],", "{a = [1]},", '["' + "x" * 2000 + '"],', "1, # ]", '"]",', "[" + '"y", ' * 150 + "],"],
)
def test_work_grows_with_the_text_alone(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a list may seem to end, a bounded number of characters is parsed besides the text itself."""
    parsed = 0
    loads = tomllib.loads

    def counted(text: str) -> dict[str, Any]:
        nonlocal parsed
        parsed += len(text)
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    for count in (100, 200, 400):
        parsed = 0
        text = "a = [\n" + f"{row}\n" * count + "]\n"
        lines(text)
        assert parsed < 2 * len(text) + 1_200_000


@pytest.mark.long
def test_what_is_parsed_in_vain_has_an_end() -> None:
    """A list of so many rows is followed, and one with a row more is not."""
    most = shipped("memd.config.toml_lines._MOST_PARSED")
    rows = failed = 0
    while (failed := failed + len("a = [") + rows * len("\n[1],")) <= most:
        rows += 1
    for count, is_found in ((rows - 1, True), (rows, False)):
        assert bool(lines("a = [\n" + "[1],\n" * count + "]\n")) is is_found
