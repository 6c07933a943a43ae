from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from memd.text.turn_header import brief, day_of, header, header_in, local_time, with_header

MORNING = 1_772_442_120.0  # 2026-03-02 09:02 UTC


def test_a_turn_says_when_and_who() -> None:
    """On its first line; the others stay as they are."""
    assert with_header("user", MORNING, "which one?\n  the second\n", None) == (
        "2026-03-02 09:02 User: which one?\n  the second"
    )
    assert with_header("assistant", None, "yes", None) == "Assistant: yes"


def test_a_moment_is_told_in_the_zone() -> None:
    """Its day, too."""
    zone = timezone(timedelta(hours=-10))
    assert header("user", MORNING, zone) == "2026-03-01 23:02 User: "
    assert str(day_of(MORNING, zone)) == "2026-03-01"
    assert str(local_time(MORNING + 12.9, zone)) == "2026-03-01 23:02:12"
    assert local_time(None, zone) is None


def test_an_hour_that_comes_twice_is_told_as_clocks_show_it() -> None:
    """By what follows, both times are one."""
    first, second = (
        datetime(2026, 10, 25, hour, 30, tzinfo=UTC).timestamp() for hour in (0, 1)
    )  # 02:30 by summer time, and by winter time
    assert local_time(first, ZoneInfo("Europe/Berlin")) == local_time(second, ZoneInfo("Europe/Berlin"))
    assert header("user", first, ZoneInfo("Europe/Berlin")) == "2026-10-25 02:30 User: "


def test_years_of_fewer_digits_are_not_told() -> None:
    """Nobody said anything then."""
    begin = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
    assert header("user", begin, None) == "1000-01-01 00:00 User: "
    assert header("user", begin - 1, None) == "User: "


@pytest.mark.parametrize("at", [1e18, -1e18, float("nan"), float("inf"), -50_000_000_000.0])
def test_a_moment_that_no_calendar_has_is_not_told(at: float) -> None:
    """A clock that was never set is no reason to fail."""
    assert header("user", at, None) == "User: "
    assert day_of(at, None) is None


def test_a_time_is_shown_once_an_hour() -> None:
    """Not of turns alone whose hour was told, and never of what looks like a header elsewhere in a line."""
    said = [
        ("2026-03-02 09:02 User: which?", "2026-03-02 09:02 User: which?"),
        ("> 2026-03-02 09:02 User: this?", "> 2026-03-02 09:02 User: this?"),
        ("2026-03-02 09:59 Assistant: that", "Assistant: that"),
        ("2026-03-02 10:00 User: so", "2026-03-02 10:00 User: so"),
        ("User: hm", "User: hm"),
        (
            "2026-03-03 10:00 User: next day 2026-03-03 10:00 User: x",
            "2026-03-03 10:00 User: next day 2026-03-03 10:00 User: x",
        ),
        ("2026-03-03 10:07 Robot: who?", "2026-03-03 10:07 Robot: who?"),
    ]
    text = "\n".join(line for line, _ in said)
    assert brief(text) == "\n".join(shown for _, shown in said)
    assert brief(brief(text)) == brief(text)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("2026-03-02 09:02 User: hi: there", "2026-03-02 09:02 User: "),
        ("Assistant: hi", "Assistant: "),
        ("said the User: hi", ""),
        ("", ""),
    ],
)
def test_a_header_is_recognised(line: str, found: str) -> None:
    """At the beginning of a line alone."""
    assert header_in(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "Assistant: I have checked it",
        "  Assistant: I have",
        "2026-03-02 09:02 User: hi",
        "assistant : hm",
        "ASSISTANT： 好",
        "User:",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\n\n", "\r\n", "\r", "\u2028", "\x0b"])
def test_what_looks_like_a_turn_inside_a_turn_is_quoted(line: str, end: str) -> None:
    """A pasted mail or log: whoever it says is speaking, the header above it says who pasted it."""
    told = with_header("user", None, f"look:{end}{line}{end}{line}\nand this", None)
    assert told == f"User: look:{end}> {line}{end}> {line}\nand this"


@pytest.mark.parametrize("line", ["The assistant: helpful", "Users: three", "- User: a", "User a: b"])
def test_other_lines_stay_as_they_are(line: str) -> None:
    """Nobody takes them for a header."""
    assert with_header("user", None, f"a\n{line}", None) == f"User: a\n{line}"
