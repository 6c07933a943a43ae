"""Lines of the log for a person."""

import pytest
from hypothesis import example, given

from memd.ctl.output.log_line import readable
from memd.ctl.output.screen import ansi, uncoloured
from tests.awkward.programs import LOGS


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"timestamp":"2026-11-21T11:20:46.353468Z","level":"info","event":"sync.finished","changed":2}',
            "2026-11-21 11:20:46 info    sync.finished changed=2",
        ),
        (
            '{"level":"error","event":"config.reload_refused","reason":"line 3: no","exception":"Traceback\\n  x"}',
            ' error   config.reload_refused reason="line 3: no"\n  Traceback\n    x',
        ),
        ("memd: there is no such file", "memd: there is no such file"),
        (
            '{"level":"warning","event":"search.was_slow","parts":{"question\'s vector":1906,"ranking":5.3},"hits":6}',
            ' warning search.was_slow parts={"question\'s vector":1906,"ranking":5.3} hits=6',
        ),
        ('{"no": "event of ours"}', '{"no": "event of ours"}'),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ("\x1b[2J", "\\x1b[2J"),
        ("", ""),
    ],
)
def test_an_event_reads_as_a_line(line: str, said: str) -> None:
    """Anything else is left as it is, without what a terminal would obey."""
    assert readable(line, uncoloured) == said


def test_trouble_is_painted() -> None:
    """A warning stands out."""
    assert "\x1b[33mwarning" in readable('{"level":"warning","event":"x.y"}', ansi)


@given(LOGS)
@example(b'{"timestamp": "\\u001b[2J", "level": "\\u001b[31m", "event": "x"}')
@example(b'{"event": "x", "n": ' + b"9" * 30 + b"}")
@example(b'{"event": "x", "n": ' + b"[" * 20_000 + b"]" * 20_000 + b"}")
def test_any_log_can_be_shown(log: bytes) -> None:
    """Torn lines, and lines of others: each is shown, without what a terminal would obey."""
    for line in log.decode("utf-8", "replace").split("\n"):
        shown = readable(line, uncoloured)
        shown.encode()
        assert not {sign for sign in shown if sign not in "\n\t" and (sign < " " or "\x7f" <= sign < "\xa0")}
