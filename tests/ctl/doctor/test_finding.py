"""The report of a checkup."""

from memd.ctl.doctor.finding import failed, passed, report_text, unchecked
from memd.ctl.output.terminal import ansi, uncoloured
from tests.ctl.pages import check_page

_FINDINGS = [
    passed("installation.memd", "0.1.0"),
    failed("state.directory", "~/state has mode 0755", "chmod 700 ~/state"),
    unchecked("daemon.version", "it does not answer"),
    failed("agents.main.index", "one\ntwo " + "word " * 30, "Do this."),
]


def test_findings_stand_under_their_group() -> None:
    """A line each, what to do about it below, and a summary at the end."""
    check_page("doctor", report_text(_FINDINGS, 1.234, uncoloured))


def test_long_details_are_wrapped_at_80_columns() -> None:
    """A detail of several lines stays one of several lines."""
    lines = report_text(_FINDINGS[3:], 1.0, uncoloured).splitlines()
    assert lines[0] == "Agent main"
    assert lines[1] == "  WRONG  index        one"
    assert lines[2].startswith(" " * 22 + "two word")
    assert max(map(len, lines)) <= 80


def test_nothing_wrong_is_said_in_so_many_words() -> None:
    """With how many checks that were."""
    assert report_text(_FINDINGS[:1], 0.5, uncoloured).endswith("\nAll is well: 1 check (0.5 s).")


def test_colours_mark_what_matters() -> None:
    """And change nothing of the text; a detail cannot command the terminal."""
    painted = report_text([passed("a.b", "x\x1b[2Jy"), *_FINDINGS], 1.0, ansi)
    assert "\x1b[32mok   \x1b[0m" in painted
    assert "\x1b[31mWRONG\x1b[0m" in painted
    assert "\x1b[2J" not in painted
