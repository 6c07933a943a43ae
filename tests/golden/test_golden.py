"""What an index keeps is made as the numbers in it say: a change of what is made raises a number."""

import pytest

from tests.golden import corpus
from tests.golden.__main__ import Written, fault, written
from tests.golden.outputs import OUTPUTS, Output, digests


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_what_is_made_of_the_corpus_is_what_its_number_stands_for(output: Output) -> None:
    """Else the chunks, words and redacted text of two programs would stand side by side in every index."""
    told = fault(output, written().get(output.name), Written(output.number(), digests(output)))
    assert told is None, told


@pytest.mark.parametrize(
    ("number", "made", "expected"),
    [
        ("1", {"a": "x", "b": "y"}, None),
        ("1", {"a": "z", "b": "y"}, "under the same number (1), of: a. .*raise NUMBER in a file, and write"),
        ("1", {"a": "x"}, "under the same number (1), of: b. "),
        ("1", {"a": "x", "b": "y", "c": "z"}, "of: c. "),
        ("2", {"a": "z", "b": "y"}, "a new number. Write it down"),
        ("2", {"a": "x", "b": "y"}, "made as before, under another number"),
    ],
)
def test_what_to_do_is_told(number: str, made: dict[str, str], expected: str | None) -> None:
    """Which number is to be raised, and how the new output is written down."""
    output = Output("things", lambda: number, "NUMBER in a file", lambda: made)
    told = fault(output, Written("1", {"a": "x", "b": "y"}), Written(number, made))
    assert (told is None) == (expected is None)
    for part in (expected or "").split(".*"):
        assert part in (told or "")


def test_the_corpus_has_what_makes_a_difference() -> None:
    """Chunks of more than one kind of text, lines that must be divided, secrets that go and text that stays."""
    made = {output.name: output.made() for output in OUTPUTS}
    for name, document in corpus.notes().items():
        chunks = made["chunks"][f"{name}, small"]
        assert isinstance(chunks, list)
        assert (len(chunks) > 3) == (sum(map(len, document.lines)) > 500), name
    redacted = made["redacted text"]
    kept = {name for name, text in corpus.secrets().items() if redacted[name] == text}
    assert kept == {"harmless", "too narrow for a key", "what only refers"}
