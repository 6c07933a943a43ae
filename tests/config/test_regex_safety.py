"""Whether a regular expression can be read in ever more ways."""

from time import process_time

import pytest

from memd.config.regex_safety import has_rival_repeats, is_ambiguous, parsed
from tests.bounds import shipped
from tests.table import table


@table(
    ("pattern", "ambiguous"),
    [
        ("(a|a)*b", True),
        ("(a*)*b", True),
        ("(a?b?)*c", True),
        ("(ab|a|b)*c", True),
        ("(a|b|ab){2,}?c", True),
        ("(?:a{1,2}){1,30}b", True),
        ("(?:a+b?)+c", True),
        ("((a+)b?)*c", True),
        (r"(.)(?:\1|a)+b", True),
        (r"(?:\s|\n)*x$", False),
        ("(ab|ac)*d", False),
        ("(a|b)*c", False),
        ("(a+b)*c", False),
        ("(a++)*b", False),
        ("(?>a+)*b", False),
        ("(?:a{3}){1,90}b", False),
        ("(?i)(a|B)*c", False),
        ("(?i)(?:a|A)*c", False),
        ("(?i)(?:ab|Abc?)+d", True),
        ("(?:ab|Abc?)+d", False),
        ("(?:ab|(?i:Ab))+(?=c)", True),
        ("(?:a|ab)(?:c|bc)d", False),
        ("(a+)+", False),
        ("x(a|a)*", False),
        ("(a|a){9,}", True),
        ("(a|a)*$", True),
        ("(?:a?){60}!", True),
        ("x(?:a?){4}", False),
        (r"(?:\w\w|\d\d){20}!", True),
        (r"(?:\w\w|\d\d){4}!", False),
        (r"(?:(?:\w\w|\d\d){4}){5}!", True),
        (r"(?:\d{2}\d{2}){8}!", False),
        (r"(?:[0-9a-f]{2}:?){16}!", False),
    ],
)
def test_two_ways_around_are_told(pattern: str, ambiguous: bool) -> None:
    """A loop that takes the same signs in two ways is one, unless nothing can fail behind it."""
    assert is_ambiguous(parsed(pattern)) is ambiguous


@pytest.mark.parametrize(
    ("pattern", "ambiguous"),
    [
        ("(?:" + "|".join(f"{n:03}" for n in range(20, 50)) + ")+x", False),
        ("(?:" + "|".join(f"{n:03}" for n in range(600)) + ")+x", True),
        ("(?:" + r"\w?" * 200 + ")+x", True),
        (r"(?:\w-" * 60 + ")+" * 60 + "x", True),
        (r"\w+-" * 150 + "x", False),
        ("(?:" * 12 + r"\b" + "){40}" * 12 + "a", True),
        ("a" + "(?:" * 12 + r"\b" + "){4}" * 12, True),
    ],
)
def test_the_search_has_an_end(pattern: str, ambiguous: bool) -> None:
    """What is too large to be looked through counts as ambiguous."""
    began = process_time()
    assert is_ambiguous(parsed(pattern)) is ambiguous
    assert process_time() - began < 5  # by far


def test_a_part_that_stands_there_so_many_times_is_counted_out() -> None:
    """One that does more often is taken for a loop, which could end one sign earlier or later."""
    most = shipped("memd.config.regex_safety._MOST_COPIES")
    for count, ambiguous in ((most, False), (most + 1, True)):
        assert is_ambiguous(parsed(rf"(?:\w{{{count}}}\w)+-")) is ambiguous


@table(
    ("pattern", "competes"),
    [
        ("a*a*b", True),
        ("a*a*b+", True),
        (r"a*a*\b", True),
        ("a*a*(?=b)", True),
        ("a*a*", False),
        ("a*a*b?", False),
        ("a*b*a*c", True),
        ("a*b+a*c", False),
        ("a*ba*c", False),
        ("a*(?:b|c)a*d", False),
        ("a*(?:b|)a*d", True),
        ("a*(?:b)?a*d", True),
        ("(?:a*)?a*b", True),
        ("(?:(?:a*))?a*b", True),
        ("(?:a*c)?a*b", False),
        ("(?:b|a*)a*c", True),
        ("(?:b|a*c)a*c", False),
        ("(?:x|y)(?:a*a*c)?", True),
        ("(?=a*a*b)c", True),
        ("(?i)a*A*b", True),
        ("a*A*b", False),
        ("a*(?>a?)a*b", True),
        ("a*(?>b)a*b", False),
        ("a*b++a*c", False),
        ("a*b?+a*c", True),
    ],
)
def test_repeats_that_compete_are_told(pattern: str, competes: bool) -> None:
    """On one of the ways through a pattern at least, in front of what may fail."""
    assert has_rival_repeats(parsed(pattern)) is competes


def test_all_branches_are_looked_at_for_rivals() -> None:
    """Whichever of them has some; and many that have none are no reason to refuse a pattern."""
    branches = [chr(0x4E00 + number) for number in range(600)]
    for number in (0, 300, 600):
        rival = "|".join([*branches[:number], "a*a*", *branches[number:]])
        assert has_rival_repeats(parsed(f"(?:{rival})!"))
    assert not has_rival_repeats(parsed(f"x*(?:{'|'.join(branches)})x*!"))


def test_so_many_ways_through_a_pattern_are_told_apart() -> None:
    """One with more is taken for one whose repeats compete: to follow them all would take for ever."""
    most = shipped("memd.config.regex_safety._MOST_WAYS")
    groups = most.bit_length() - 1  # each may be there or not
    for count, competes in ((groups, False), (groups + 1, True)):
        optional = "".join(f"(?:{sign}*)?" for sign in "abcdefgh"[:count])
        assert has_rival_repeats(parsed(f"{optional}!")) is competes
    began = process_time()
    assert has_rival_repeats(parsed("".join(f"(?:{chr(0x41 + n % 26)}*x?)?" for n in range(180)) + "!"))
    assert process_time() - began < 1  # by far


def test_a_pattern_of_so_many_signs_is_looked_through() -> None:
    """And one with a sign more is not."""
    most = shipped("memd.config.regex_safety._MOST_STATES")
    for count, ambiguous in ((most, False), (most + 1, True)):
        signs = "".join(chr(0x4E00 + number) for number in range(count))
        assert is_ambiguous(parsed(f"(?:{signs})+")) is ambiguous


def test_so_many_repeats_may_stand_apart() -> None:
    """Each with a sign after it; one more takes too long."""
    most = shipped("memd.config.regex_safety.MOST_APART")
    for count, competes in ((most, False), (most + 1, True)):
        assert has_rival_repeats(parsed("".join(f".*{sign}" for sign in "abcdefgh"[:count]))) is competes


@pytest.mark.parametrize("pattern", ["x(?:a?){%d,}", r"(?:\w\w|\d\d){%d}!"])
def test_a_few_repeats_are_fast_whatever_is_repeated(pattern: str) -> None:
    """Two ways for each of so few are few ways."""
    few = shipped("memd.config.regex_safety._FEW")
    for count, ambiguous in ((few, False), (few + 1, True)):
        assert is_ambiguous(parsed(pattern % count)) is ambiguous


@pytest.mark.parametrize("pattern", ["a{0,%d}a*b", "a*a{0,%d}b"])
def test_so_many_repeats_are_as_good_as_no_bound(pattern: str) -> None:
    """Fewer try few ways beside a repeat without a bound; more that give nothing back are followed by no sign of theirs."""
    many = shipped("memd.config.regex_safety.MANY")
    for count, is_many in ((many, False), (many + 1, True)):
        assert has_rival_repeats(parsed(pattern % count)) is is_many
        assert is_ambiguous(parsed(f"(?:(?>a{{0,{count}}})a)*b")) is not is_many
