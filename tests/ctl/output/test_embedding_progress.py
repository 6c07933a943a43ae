"""How far embedding is."""

import pytest

from memd.ctl.output.embedding_progress import in_words, total
from memd_client.messages import Vectors
from tests.ctl.answers import agent, status


def test_all_agents_wait_in_one_line() -> None:
    """The longest estimate is that of all; one without an estimate has none."""
    both = status(
        agent(vectors=Vectors(done=1, waiting=2, eta_s=3.0)),
        agent(vectors=Vectors(done=10, waiting=20, eta_s=7.0)),
    )
    assert total(both) == Vectors(done=11, waiting=22, eta_s=7.0)
    assert total(status(agent(vectors=Vectors(waiting=2)))).eta_s is None


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (Vectors(), "none"),
        (Vectors(done=1830), "all 1,830 done"),
        (Vectors(done=1200, waiting=630), "1,200 of 1,830 done, 630 waiting"),
        (Vectors(done=1830, on_disk=True), "all 1,830 done; on disk, to keep below memory_limit_mb"),
        (Vectors(waiting=3, eta_s=2.0), "0 of 3 done, 3 waiting, a few seconds to go"),
    ],
)
def test_words_tell_what_is_there_and_what_waits(vectors: Vectors, said: str) -> None:
    """And how long it takes, where that is known."""
    assert in_words(vectors) == said
