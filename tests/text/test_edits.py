import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.edits import SHORTEST, may_be_misspelt, one_edit_away
from tests.bounds import shipped

_MOST = shipped("memd.text.edits.LONGEST")


@pytest.mark.parametrize(
    ("word", "misspelt"),
    [
        ("marchetti", "marcheti"), ("marchetti", "marchettti"), ("marchetti", "marchezti"), ("marchetti", "marhcetti"),
        ("marchetti", "amrchetti"), ("юлиана", "юлинаа"), ("юлиана", "юлиона"), ("σοφοκλησ", "σοφοκησ"),
    ],
)  # fmt: skip
def test_one_edit_leads_back_to_the_word(word: str, misspelt: str) -> None:
    """A letter left out, put in, replaced, or two exchanged, in any alphabet."""
    assert word in one_edit_away(misspelt)


@pytest.mark.parametrize("other", ["barchetti", "archetti", "xmarchetti", "marchetti", "marchttie", "marche"])
def test_more_than_one_edit_or_another_first_letter_does_not(other: str) -> None:
    """Nor does the word lead to itself."""
    assert other not in one_edit_away("marchetti")


def _distance(one: str, other: str) -> int:
    """The optimal string alignment distance, by its definition."""
    table = [[row + column for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            differs = one[row - 1] != other[column - 1]
            table[row][column] = min(
                table[row - 1][column] + 1, table[row][column - 1] + 1, table[row - 1][column - 1] + differs
            )
            if row > 1 and column > 1 and one[row - 2 : row] == other[column - 2 : column][::-1]:
                table[row][column] = min(table[row][column], table[row - 2][column - 2] + 1)
    return table[-1][-1]


@given(st.text("abcxyz", min_size=SHORTEST, max_size=8))
def test_each_is_one_edit_away(word: str) -> None:
    assert {_distance(word, one) for one in one_edit_away(word)} == {1}


@pytest.mark.parametrize(
    ("word", "may_be"),
    [
        ("a" * SHORTEST, True), ("a" * (SHORTEST - 1), False), ("a" * _MOST, True), ("a" * (_MOST + 1), False),
        ("юлиана", True), ("abc12", False), ("数据库系统", False), ("데이터베이스", False), ("straße", False), ("müller", False),
    ],
)  # fmt: skip
def test_words_that_may_be_misspelt(word: str, may_be: bool) -> None:
    """Letters alone, as the keyword index has them, of a script with an alphabet, and neither few nor very many."""
    assert may_be_misspelt(word) is may_be
