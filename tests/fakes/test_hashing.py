import numpy as np
import pytest

from memd.providers.provider import EmbedRejected, EmbedUnavailable
from tests.fakes import HashingProvider


def test_rows_have_length_one() -> None:
    """Every text has a unit vector, one without words included."""
    rows = HashingProvider().embed(["the staging database", "", "?!", "数据库", "\ud800"])
    assert rows.shape == (5, 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("which database did we pick", "we pick PostgreSQL as the database", "lunch is at noon on Friday"),
        ("数据库选型", "我们讨论了数据库的选型", "明天去北京出差"),
    ],
)
def test_shared_words_bring_texts_together(question: str, answer: str, other: str) -> None:
    """A text with words of the question is closer to it than one without."""
    rows = HashingProvider().embed([question, answer, other])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_vectors_depend_on_nothing_but_the_text() -> None:
    """Two providers agree, whatever they embedded before and beside it."""
    one, other = HashingProvider(), HashingProvider()
    other.embed(["something else"])
    np.testing.assert_array_equal(one.embed(["a note"])[0], other.embed(["first", "a note"])[1])


async def test_requests_fail_as_often_as_told() -> None:
    """After the failures that were asked for, everything works again."""
    provider = HashingProvider()
    provider.fail_next(2)
    with pytest.raises(EmbedUnavailable):
        await provider.embed_passages(["a"])
    with pytest.raises(EmbedUnavailable):
        await provider.embed_query("a")
    np.testing.assert_array_equal((await provider.embed_passages(["a"]))[0], await provider.embed_query("a"))
    assert provider.requests == [["a"], ["a"]]


async def test_marked_texts_are_rejected() -> None:
    """A rejection names the text by its place in the request."""
    provider = HashingProvider(rejects=["poison"])
    with pytest.raises(EmbedRejected) as rejected:
        await provider.embed_passages(["fine", "some poison"])
    assert rejected.value.index == 1
