"""What is wrong with the rules of redaction that a user adds."""

from pathlib import Path

import pytest

from memd.config import Redact, UserRule
from memd.configfile.load import ConfigError, parse
from memd.configfile.redaction import faults


def _faults(*rules: tuple[str, str]) -> list[tuple[int, str, str]]:
    return list(faults(Redact(extra=tuple(UserRule(name=name, pattern=pattern) for name, pattern in rules))))


@pytest.mark.parametrize(
    "pattern",
    [
        r"door (\d+)",
        r"(?P<secret>\d{6})",
        r"heron|egret",
        r"(?i)badge\s*[:=]\s*(\w+)",
        r"(?:[a-z]{2,4}-){3}\w+",
        r"(?:\w++\s)+end",
        r"(?>a+)+b",
        r"工号\d+",
        r"\d+\.?\d*",
        r"\w+\s*=\s*\w+",
        r"\w+@\w+\.\w+",
        r".*door.*window",
        "a*+a*b",
        "a*b*c",
        r"ACME-[A-Z0-9]{4}(?:-[A-Z0-9]{4})*",
        r"名字：\w+。\s*x",
    ],
)
def test_a_sensible_pattern_is_taken(pattern: str) -> None:
    """Repeats may stand in one another where one has a bound, or gives nothing back."""
    assert _faults(("x", pattern)) == []


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(", "is no regular expression"),
        ("[a-", "is no regular expression"),
        ("a{99999999999}", "is no regular expression"),
        ("", "matches the empty text"),
        ("a*", "matches the empty text"),
        (r"x?|\b", "matches the empty text"),
        ("(?=a)", "matches the empty text"),
        ("(a+)+b", "repeats what is itself repeated"),
        (r"(\w+\s?)*x", "repeats what is itself repeated"),
        ("(?:a|b+){2,}c", "repeats what is itself repeated"),
        ("(?:(?:a*)b?)*c", "repeats what is itself repeated"),
        ("a*a*b", "compete for the same signs"),
        (r"\w*\d*x", "compete for the same signs"),
        ("(a+)(?:b?)(a+)$", "compete for the same signs"),
        ("(?i)a*A*b", "compete for the same signs"),
        ("(?:a*|b)[^b]*c", "compete for the same signs"),
        ("a*b*a*c", "compete for the same signs"),
        (r"\S+[密码]+x", "compete for the same signs"),
        (".*a.*b.*c.*d", "compete for the same signs"),
        ("a" * 3000, "has 3000 signs"),
        ("(" * 1500 + "a" + ")" * 1500 + "x" * 0, "has 3001 signs"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_told(pattern: str, fault: str) -> None:
    """With what is wrong with it."""
    [(at, key, told)] = _faults(("x", pattern))
    assert (at, key) == (0, "pattern")
    assert fault in told


@pytest.mark.parametrize("name", ["", "Badge", "my badge", "b" * 41, "工号", "a_b", "a]"])
def test_a_name_that_no_mark_can_hold_is_told(name: str) -> None:
    """It stands in [REDACTED:name]."""
    [(at, key, told)] = _faults(("fine", "x"), (name, "y"))
    assert (at, key) == (1, "name")
    assert "a-z, digits and -" in told


def test_a_name_stands_once() -> None:
    """Or the counts would be of two things."""
    [(at, key, told)] = _faults(("a", "x"), ("a", "y"))
    assert (at, key) == (1, "name")
    assert "twice" in told


def test_the_configuration_names_key_and_line(tmp_path: Path) -> None:
    """As for everything else in it."""
    text = (
        '[agents.main]\nworkspace = "/w"\n[agents.main.redact]\nmode = "all"\n'
        'extra = [\n  { name = "ok", pattern = "x1" },\n  { name = "No", pattern = "(" },\n]\n'
    )
    with pytest.raises(ConfigError) as raised:
        parse(text, tmp_path / "config.toml", tmp_path)
    assert "agents.main.redact.extra[1].name" in str(raised.value) or "agents.main.redact.extra" in str(
        raised.value
    )
    assert "must have 1 to 40" in str(raised.value)
    assert "is no regular expression" in str(raised.value)


def test_rules_are_read(tmp_path: Path) -> None:
    """With the texts that are allowed."""
    text = '[agents.main]\nworkspace = "/w"\nredact = { extra = [{ name = "door", pattern = "door (.)" }], allow = ["x"] }\n'
    config = parse(text, tmp_path / "config.toml", tmp_path)
    assert config.agents["main"].redact == Redact(
        extra=(UserRule(name="door", pattern="door (.)"),), allow=("x",)
    )
