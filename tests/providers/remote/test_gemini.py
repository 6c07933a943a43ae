"""Gemini's requests."""

import msgspec
import pytest

from memd.config.settings import Remote
from memd.providers.remote.dialect import TextRole
from memd.providers.remote.gemini import gemini


@pytest.mark.parametrize(
    ("model", "role", "text", "task"),
    [
        ("", TextRole.QUERY, "a", "RETRIEVAL_QUERY"),
        ("gemini-embedding-001", TextRole.DOCUMENT, "a", "RETRIEVAL_DOCUMENT"),
        ("gemini-embedding-2", TextRole.QUERY, "task: search result | query: a", None),
        ("models/gemini-embedding-2-preview", TextRole.DOCUMENT, "title: none | text: a", None),
    ],
)
def test_each_generation_is_told_in_its_way_what_a_text_is(
    model: str, role: TextRole, text: str, task: str | None
) -> None:
    """The first by a task type; the second does not heed one, and wants words before the text."""
    [one] = msgspec.json.decode(gemini(model, Remote()).embed(["a"], role).body)["requests"]
    assert one["content"] == {"parts": [{"text": text}]}
    assert one.get("taskType") == task


def test_what_stands_before_a_text_is_part_of_the_identity() -> None:
    """Vectors with and without it must not meet."""
    shapes = [
        gemini(model, Remote(dimensions=size)).shape
        for model in ("", "gemini-embedding-2")
        for size in (0, 768)
    ]
    assert len(set(shapes)) == 4
