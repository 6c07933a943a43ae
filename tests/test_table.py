"""Many rows in one test."""

import inspect

import pytest

from tests.table import table

_SEEN: list[int] = []


@table(("number", "square"), [(1, 1), (2, 4), (3, 9)])
def test_every_row_is_tried(number: int, square: int) -> None:
    """In order: this is such a test."""
    assert number**2 == square
    _SEEN.append(number)
    if number == 3:
        assert _SEEN[-3:] == [1, 2, 3]


@table("parts", [(1, 2), (3, 4)])
def test_a_row_of_one_argument_is_handed_over_whole(parts: tuple[int, int]) -> None:
    """Also one that has parts."""
    assert parts[1] == parts[0] + 1


def test_every_row_that_fails_is_told() -> None:
    """With what failed, whatever it raises; those after it are tried."""

    def even(number: int) -> None:
        """Whether it is."""
        if number == 4:
            raise KeyError(number)
        assert number % 2 == 0, "odd"

    tried = table("number", [1, 2, 3, 4])(even)
    with pytest.raises(ExceptionGroup, match="3 of 4 rows failed") as raised:
        tried()
    told = [(type(error), error.__notes__) for error in raised.value.exceptions]
    assert told == [
        (AssertionError, ["row 1: 1"]),
        (AssertionError, ["row 3: 3"]),
        (KeyError, ["row 4: 4"]),
    ]
    assert (tried.__name__, tried.__doc__) == ("even", "Whether it is.")
    assert not inspect.signature(tried).parameters


def test_a_table_that_tries_nothing_is_refused() -> None:
    """Nor may a row be too short, or none."""
    with pytest.raises(ValueError, match="tries nothing"):
        table("number", [])
    with pytest.raises(ValueError, match="shorter"):
        table(("a", "b"), [(1, 2), (1,)])
    with pytest.raises(TypeError, match="several parts: 'ab'"):
        table(("a", "b"), ["ab"])


def test_what_ends_a_run_ends_it() -> None:
    """An interrupt is no failure of a row."""

    def interrupted(number: int) -> None:
        assert number
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table("number", [1, 2])(interrupted)()
