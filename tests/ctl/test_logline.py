"""Lines of the log for a person."""

import pytest

from memd.ctl.logline import readable
from memd.ctl.paint import ansi, plain


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
        ('{"no": "event of ours"}', '{"no": "event of ours"}'),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ("\x1b[2J", "\\x1b[2J"),
        ("", ""),
    ],
)
def test_an_event_reads_as_a_line(line: str, said: str) -> None:
    """Anything else is left as it is, without what a terminal would obey."""
    assert readable(line, plain) == said


def test_trouble_is_painted() -> None:
    """A warning stands out."""
    assert "\x1b[33mwarning" in readable('{"level":"warning","event":"x.y"}', ansi)
