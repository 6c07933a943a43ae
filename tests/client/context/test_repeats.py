import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.repeats import unsaid

NOTE = "# Monday\n\n- We picked PostgreSQL.\n- Ada called.\n"

CASES = [
    ("- Ada wrote.", "- Ada wrote."),
    ("- Ada called.", ""),
    ("-   Ada  called.  \n\n", ""),
    ("- We picked PostgreSQL.\n\n\n- Ada called.", ""),
    ("- Ada called.\n- We picked PostgreSQL.", "- Ada called.\n- We picked PostgreSQL."),
    ("Ada called.", "Ada called."),
    ("# Monday\n- We picked PostgreSQL.\n- Ada called.\n- She will call again.", "- She will call again."),
    ("# Monday\n- New.", "# Monday\n- New."),
    ("- Ada called.\n- New.", "- Ada called.\n- New."),
]


@pytest.mark.parametrize(("block", "new"), CASES)
def test_what_a_note_says_already_is_not_said_again(block: str, new: str) -> None:
    """A block that stands in the note is repeated; of a block that begins with the whole note, the rest is new."""
    assert unsaid(block, NOTE) == new


lines = st.lists(st.sampled_from(["- a", "- b", "", "# h", "  c"]), max_size=6).map("\n".join)


@given(lines, lines)
def test_what_was_appended_is_a_repetition(block: str, note: str) -> None:
    """Once it stands in the note, a block has nothing new any more."""
    assert unsaid(block, f"{note}\n\n{block}\n") == ""


def test_everything_is_new_to_an_empty_note() -> None:
    """An empty note holds nothing."""
    assert unsaid("- a\n\n- b", "") == "- a\n\n- b"
