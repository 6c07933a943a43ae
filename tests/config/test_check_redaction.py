"""What is wrong with the rules of redaction that a user adds."""

import re
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from hypothesis import example, given

from memd.config.check_redaction import faults, is_plainly_bounded
from memd.config.load import ConfigError, parse
from memd.config.regex_safety import has_rival_repeats, is_ambiguous, parsed
from memd.config.settings import Redact, UserRule
from memd.redact.user_rules import custom
from tests.awkward.patterns import PATTERNS, PUMPED
from tests.bounds import shipped
from tests.modules import existing
from tests.table import table


def _faults(*rules: tuple[str, str]) -> list[tuple[int, str, str]]:
    return list(faults(Redact(extra=tuple(UserRule(name=name, pattern=pattern) for name, pattern in rules))))


@table(
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
        r"\w+。+x",
        r"\W+密+x",
        r"a*(?>b?c)a*d",
        "a*[^ab]*b",
        r"\w+\x80+x",
        r"(?:[a-z]+-)+\d",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        r"(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}==",
        r"(?:foo|bar|baz)+!",
        r"(?=.*\d)(?=.*[a-z])\w{8}",
        r"(?:[0-9A-F]{4}-?){8}\b",
        r"(?:(?>ab)c|abd)+!",
        r"(x)?(?:(?(1)a|b)c)+!",
        r"token (?:[a-z0-9]{2,8}-?){2,6}",
        r"x: (\w+\s?)*",
        r"(?:key|secret (?:(?:a|b|ab)+))",
    ],
)
def test_a_sensible_pattern_is_taken(pattern: str) -> None:
    """Repeats may stand in one another where one has a bound, or gives nothing back."""
    assert _faults(("x", pattern)) == []


@table(
    ("pattern", "fault"),
    [
        ("(", "is no regular expression"),
        ("[a-", "is no regular expression"),
        ("a{99999999999}", "is no regular expression"),
        ("", "matches the empty text"),
        ("a*", "matches the empty text"),
        (r"x?|\b", "matches the empty text"),
        ("(?=a)", "matches the empty text"),
        (r"\b\w*", "matches the empty text"),
        ("(a+)+b", "can itself be read in several ways"),
        (r"(\w+\s?)*x", "can itself be read in several ways"),
        ("(?:a|b+){2,}c", "can itself be read in several ways"),
        ("(?:(?:a*)b?)*c", "can itself be read in several ways"),
        ("(?:ab|a|b)+c", "can itself be read in several ways"),
        (r"(?:foo|\w\w|\w)+!", "can itself be read in several ways"),
        ("(a{1,100}){1,100}b", "can itself be read in several ways"),
        (r"(?:\w{1,3}\s?){1,50}!", "can itself be read in several ways"),
        (r"(?:\w{1,9}\s?){12,24}", "can itself be read in several ways"),
        (r"x: (\w+\s?)*$", "can itself be read in several ways"),
        (r"x: (\w+\s?)*(?=!)", "can itself be read in several ways"),
        ("(?=(a|a)+b)x", "can itself be read in several ways"),
        (r"(\w)\1*\1*(?:\1|x)+!", "can itself be read in several ways"),
        ("(?i:(?:aB|Ab)|x)+(?:ab|(?i:Ab))*c", "can itself be read in several ways"),
        ("a*a*b", "compete for the same signs"),
        (r"\w*\d*x", "compete for the same signs"),
        ("(a+)(?:b?)(a+)$", "compete for the same signs"),
        ("(?i)a*A*b", "compete for the same signs"),
        ("(?:a*|b)[^b]*c", "compete for the same signs"),
        ("a*b*a*c", "compete for the same signs"),
        (r"\S+[密码]+x", "compete for the same signs"),
        (r"[}-\x80]+\x80+x", "compete for the same signs"),
        (".*a.*b.*c.*d", "compete for the same signs"),
        ("x(?=a*a*b)", "compete for the same signs"),
        ("(?:a?){60}!", "can itself be read in several ways"),
        (r"(?:\w\w|\d\d){20}!", "can itself be read in several ways"),
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


@given(PATTERNS, PUMPED)
@example(r"(?:ab|a|b)+c", "ab" * 200)
@example(r"(?:\w{1,3}\s?){1,50}!", "aa" * 200)
@example("(a{1,100}){1,100}b", "a" * 400)
def test_any_pattern_is_refused_or_has_an_end(pattern: str, line: str) -> None:
    """Whatever a user writes is refused in words, or looks through a line in bounded time."""
    rule = UserRule(name="x", pattern=pattern)
    told = _faults(("x", pattern))
    assert all(len(sentence) < 500 and "under this version" not in sentence for _, _, sentence in told)
    if told:
        return
    began = process_time()
    for start, end in custom(rule).spans(line):
        assert 0 <= start < end <= len(line)
    assert process_time() - began < 3  # the pattern is looked through, so that it does not take for ever


@given(PATTERNS)
def test_what_is_plainly_bounded_is_so(pattern: str) -> None:
    """Where a pattern is taken without a look at its structure, that look would not have refused it."""
    try:
        structure = parsed(pattern)
    except (re.error, OverflowError, DeprecationWarning, FutureWarning):
        return
    if is_plainly_bounded(pattern):
        assert not is_ambiguous(structure)
        assert not has_rival_repeats(structure)


_PARSING = existing("memd.config.regex_safety")
_ELSEWHERE = (
    f"PARSING = {_PARSING}"
    r"""
import re, sys
from types import SimpleNamespace
import memd.daemon
from memd.config.settings import Redact, UserRule
from memd.config.check_redaction import faults
from memd.redact.redactor import Redactor

def of(pattern):
    for name in PARSING:
        sys.modules.pop(name, None)
        vars(memd.config).pop(name.rpartition(".")[2], None)
    return [told for _, _, told in faults(Redact(extra=(UserRule(name="x", pattern=pattern),)))]

def check():
    assert of(r"ACME-[0-9A-F]{8}-\w+") == []
    assert "cannot be looked through" in of("(a+)+b")[0], of("(a+)+b")
    assert "no regular expression" in of("(")[0]
    assert "matches the empty text" in of("a*")[0]
    rule = UserRule(name="x", pattern=r"door (\d+)")
    return Redactor(Redact(extra=(rule,))).redact("door 417, password: hunter2").text

assert not set(PARSING) & set(sys.modules)  # nobody has asked
right = re._parser
class Other(list):
    state = SimpleNamespace(flags=0)
    def getwidth(self):
        return 1, 1
for other in (
    SimpleNamespace(),
    SimpleNamespace(parse=lambda pattern: None),
    SimpleNamespace(parse=lambda pattern: Other([("literal", 97, None)])),
    SimpleNamespace(parse=lambda pattern: Other([(right.MAX_REPEAT, 97)])),
):
    re._parser = other
    print(check())
re._parser = right
del re._constants.CATEGORY_SPACE
print(check())
del re._parser
sys.modules["re._parser"] = None
print(check())
"""
)


def test_a_python_without_that_parser_runs_the_daemon() -> None:
    """It is private to Python: without it rules of few repeats work as before, others are refused, and memd's own stay."""
    ran = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    assert ran.stdout == "door [REDACTED:x], password: [REDACTED:password]\n" * 6


@pytest.mark.parametrize(
    ("pattern", "bounded"),
    [
        ("abc", True),
        (r"door (\d+)", True),
        (r"ACME-\d{4}-[A-Z]{2}-\w*", True),
        (r"(?P<secret>\d{6})", True),
        (r"(?i)badge", True),
        (r"[*+?]{3}\*\+x+?", True),
        (r"[]*]+", True),
        (r"[^]*]+b", True),
        ("a*a*", False),
        ("a+b?", False),
        ("(ab)*", False),
        ("(?:ab|a|b){9}", False),
        ("(a{2})+", False),
        ("a{1,3}b{2,}", False),
    ],
)
def test_few_repeats_are_told_sign_by_sign(pattern: str, bounded: bool) -> None:
    """Escapes and sets have none, whatever signs they hold."""
    assert is_plainly_bounded(pattern) is bounded


def test_a_pattern_has_so_many_signs() -> None:
    """One more is too many."""
    longest = shipped("memd.config.check_redaction._LONGEST")
    assert _faults(("x", f"ab(?#{'x' * (longest - 6)})")) == []
    [(_, _, told)] = _faults(("x", "a" * (longest + 1)))
    assert f"{longest} are the most" in told
