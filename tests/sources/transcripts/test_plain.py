"""Lines of a role and a content."""

from typing import Any

import pytest

from memd.sources.transcripts.format import Said, Unread
from memd.sources.transcripts.plain import FORMAT
from tests.sources.transcripts.parsing import events


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"role": "user", "content": "hi"}, [Said("", "user", None, "hi")]),
        ({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, [Said("", "assistant", None, "hi")]),
        ({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, [Said("", "user", None, "hi")]),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}, [Said("", "assistant", None, "hi")]),
        ({"role": "user", "content": [{"type": "image_url", "text": "x"}]}, []),
        ({"message": {"role": "user", "content": "hi"}}, [Said("", "user", None, "hi")]),
        ({"message": {"role": "user", "content": "hi"}, "ts": 7}, [Said("", "user", 7.0, "hi")]),
        ({"role": "user", "content": "hi", "timestamp": "2026-08-10T12:00:00+02:00"}, [Said("", "user", 1786356000.0, "hi")]),
        ({"role": "user", "content": "hi", "ts": 1786363200}, [Said("", "user", 1786363200.0, "hi")]),
        ({"role": "user", "content": "hi", "time": 1786363200.5}, [Said("", "user", 1786363200.5, "hi")]),
        ({"role": "user", "content": "hi", "created_at": 1786363200000}, [Said("", "user", 1786363200.0, "hi")]),
        ({"role": "user", "content": "hi", "ts": "soon", "id": "c-1", "mood": {"role": 1}}, [Said("", "user", None, "hi")]),
        ({"role": "system", "content": "x"}, []),
        ({"role": "tool", "content": "x"}, []),
        ({"role": "user", "content": None}, []),
        ({"role": "user", "content": " \n"}, []),
        ({"role": "user"}, []),
        ({"role": "user", "content": 5}, [Unread("unknown")]),
        ({"role": "user", "content": [5]}, [Unread("unknown")]),
        ({"role": 5, "content": "x"}, [Unread("unknown")]),
        ({"content": "x"}, [Unread("unknown")]),
        ({"message": 5}, [Unread("unknown")]),
        ("user", [Unread("unknown")]),
        (None, [Unread("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """A user's and an assistant's words count, with whatever time is given."""
    assert events(FORMAT, record) == found
