import numpy as np
import pytest

from memd.providers.remote.parse_reply import decoded, matrix
from memd.providers.remote.request import BadReply


def test_rows_become_unit_vectors() -> None:
    """float32, each of length 1."""
    rows = matrix([[3, 4], [0, 2]], count=2, dimensions=2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, np.array([[0.6, 0.8], [0, 1]], np.float32))


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 0.0]],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[1.0, 0.0], [1.0]],
        [[1.0], [1.0]],
        [[], []],
        [[1.0, float("nan")], [1.0, 0.0]],
        [[1.0, float("inf")], [1.0, 0.0]],
        [[0.0, 0.0], [1.0, 0.0]],
        [[1e200, 1e200], [1.0, 0.0]],
        [[1.0, "x"], [1.0, 0.0]],
        [[1.0, None], [1.0, 0.0]],
    ],
)
def test_what_cannot_be_trusted_is_refused(rows: list[list[float]]) -> None:
    """Too few, too many, of other lengths, or with something in them that is no number."""
    with pytest.raises(BadReply):
        matrix(rows, count=2, dimensions=2)


def test_without_a_known_length_all_must_be_alike() -> None:
    """The first answer of a model tells how long its vectors are."""
    assert matrix([[1, 0, 0]], count=1, dimensions=None).shape == (1, 3)
    with pytest.raises(BadReply):
        matrix([[1, 0], [1, 0, 0]], count=2, dimensions=None)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": 1}', b"[" * 3000, b"\xff"])
def test_another_document_is_refused(body: bytes) -> None:
    """By name of the provider."""
    with pytest.raises(BadReply, match="example"):
        decoded("example", body, dict[str, list[int]])
