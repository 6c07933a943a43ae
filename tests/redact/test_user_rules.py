"""Rules that a user adds."""

import pytest

from memd.config.check_redaction import BadRule
from memd.config.settings import Redact, UserRule
from memd.redact.redactor import Redactor
from memd.redact.user_rules import LONGEST, custom
from tests.bounds import shipped


def _found(pattern: str, text: str) -> list[str]:
    return [text[start:end] for start, end in custom(UserRule(name="x", pattern=pattern)).spans(text)]


def test_lines_are_looked_at_one_by_one() -> None:
    """What begins or ends one matches there, and nothing matches across."""
    assert _found(r"^\w+", "one two\nthree\n\nfour") == ["one", "three", "four"]
    assert _found(r"one\s+two", "one\ntwo") == []


@pytest.mark.parametrize("at", [0, LONGEST - 210, LONGEST - 5, LONGEST, 2 * LONGEST - 3, 10 * LONGEST])
@pytest.mark.parametrize("filler", ["x", "word "])
def test_a_long_line_is_looked_at_in_pieces(at: int, filler: str) -> None:
    """What stands across a cut is found all the same, and once."""
    text = (filler * at)[:at] + " secret-123456 " + filler * 3000
    redacted = Redactor(Redact(extra=(UserRule(name="x", pattern=r"secret-\d{6}"),))).redact(text)
    assert redacted.counts == {"x": 1}
    assert redacted.text == text.replace("secret-123456", "[REDACTED:x]")


def test_a_slow_pattern_has_an_end() -> None:
    """It tries every piece of a line from each of its places, but only of that piece."""
    line = "ab" * 2_000
    assert _found(".*b.*c", line) == []


def test_a_rule_that_cannot_be_used_is_refused() -> None:
    """As it is when a configuration is read."""
    with pytest.raises(BadRule, match=r"redact\.extra\[1\]\.pattern is no regular expression"):
        Redactor(Redact(extra=(UserRule(name="a", pattern="b"), UserRule(name="c", pattern="("))))


@pytest.mark.parametrize(("beyond", "is_always_found"), [(1, True), (2, False)])
def test_two_pieces_of_a_line_share_so_many_characters(beyond: int, *, is_always_found: bool) -> None:
    """A match is whole in one of them wherever it stands, but for one that is longer than what they share."""
    match = f"<{'a' * (shipped('memd.redact.user_rules._SHARED') + beyond - 2)}>"
    found = [match in _found("<a+>", "x" * before + match + "x" * LONGEST) for before in range(LONGEST + 1)]
    assert all(found) is is_always_found


@pytest.mark.parametrize(("beyond", "is_found"), [(0, True), (1, False)])
def test_a_pattern_sees_so_many_characters_of_a_line_at_a_time(beyond: int, *, is_found: bool) -> None:
    """A longer match is whole in no piece."""
    longest = shipped("memd.redact.user_rules.LONGEST")
    match = f"<{'a' * (longest + beyond - 2)}>"
    assert (_found("<a+>", match + "x" * longest) == [match]) is is_found
