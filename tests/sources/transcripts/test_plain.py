"""Lines of a role and a content."""

from typing import Any

from memd.sources.transcripts.format import TurnAdded, UnparsedLine
from memd.sources.transcripts.plain import FORMAT
from tests.sources.transcripts.parsing import events
from tests.table import table


@table(
    ("record", "found"),
    [
        ({"role": "user", "content": "hi"}, [TurnAdded("", "user", None, "hi")]),
        ({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, [TurnAdded("", "assistant", None, "hi")]),
        ({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, [TurnAdded("", "user", None, "hi")]),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}, [TurnAdded("", "assistant", None, "hi")]),
        ({"role": "user", "content": [{"type": "image_url", "text": "x"}]}, []),
        ({"message": {"role": "user", "content": "hi"}}, [TurnAdded("", "user", None, "hi")]),
        ({"message": {"role": "user", "content": "hi"}, "ts": 7}, [TurnAdded("", "user", 7.0, "hi")]),
        ({"role": "user", "content": "hi", "timestamp": "2026-08-10T12:00:00+02:00"}, [TurnAdded("", "user", 1786356000.0, "hi")]),
        ({"role": "user", "content": "hi", "ts": 1786363200}, [TurnAdded("", "user", 1786363200.0, "hi")]),
        ({"role": "user", "content": "hi", "time": 1786363200.5}, [TurnAdded("", "user", 1786363200.5, "hi")]),
        ({"role": "user", "content": "hi", "created_at": 1786363200000}, [TurnAdded("", "user", 1786363200.0, "hi")]),
        ({"role": "user", "content": "hi", "ts": "soon", "id": "c-1", "mood": {"role": 1}}, [TurnAdded("", "user", None, "hi")]),
        ({"role": "system", "content": "x"}, []),
        ({"role": "tool", "content": "x"}, []),
        ({"role": "user", "content": None}, []),
        ({"role": "user", "content": " \n"}, []),
        ({"role": "user"}, []),
        ({"role": "user", "content": 5}, [UnparsedLine("unknown")]),
        ({"role": "user", "content": [5]}, [UnparsedLine("unknown")]),
        ({"role": "user", "content": [{"type": "text"}]}, [UnparsedLine("unknown")]),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, [UnparsedLine("unknown")]),
        ({"role": "user", "content": [{"type": "text"}, {"type": "text", "text": "hi"}]}, [TurnAdded("", "user", None, "hi")]),
        ({"role": 5, "content": "x"}, [UnparsedLine("unknown")]),
        ({"content": "x"}, [UnparsedLine("unknown")]),
        ({"message": 5}, [UnparsedLine("unknown")]),
        ("user", [UnparsedLine("unknown")]),
        (None, [UnparsedLine("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """A user's and an assistant's words count, with whatever time is given."""
    assert events(FORMAT, record) == found
