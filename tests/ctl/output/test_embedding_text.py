"""The state and the progress of embedding, in words."""

import pytest

from memd.ctl.output import embedding_text
from memd.ctl.output.embedding_text import total_vectors, vectors_in_words
from memd_client.messages import BatchStatus, Embedding, Vectors
from tests.ctl.answers import agent, status


def test_all_agents_wait_in_one_line() -> None:
    """The longest estimate is that of all; one without an estimate has none."""
    both = status(
        agent(vectors=Vectors(done=1, waiting=2, eta_s=3.0)),
        agent(vectors=Vectors(done=10, waiting=20, eta_s=7.0)),
    )
    assert total_vectors(both) == Vectors(done=11, waiting=22, eta_s=7.0)
    assert total_vectors(status(agent(vectors=Vectors(waiting=2)))).eta_s is None


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
    assert vectors_in_words(vectors) == said


_NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("embedding", "said"),
    [
        (Embedding(), "working"),
        (Embedding(state="paused", reason="a person said so"), "paused: a person said so"),
        (
            Embedding(state="backing_off", reason="openai: no answer", next_try_s=38.0),
            "waiting to try again in about 40 seconds: openai: no answer",
        ),
        (Embedding(state="stopped", reason="no quota"), "stopped: no quota"),
        (Embedding(state="none"), "nothing is embedded"),
        (Embedding(state="none", reason="openai: no quota"), "nothing is embedded: openai: no quota"),
        (Embedding(state="of a later daemon"), "of a later daemon"),
    ],
)
def test_a_state_in_one_line(embedding: Embedding, said: str) -> None:
    """With the reason, and when it is tried again."""
    assert embedding_text.state_in_words(embedding) == said


@pytest.mark.parametrize(
    ("embedding", "provider_told", "parts"),
    [
        (Embedding(), False, []),
        (Embedding(reason="in a batch job of 600 texts"), False, ["in a batch job of 600 texts"]),
        (
            Embedding(state="stopped", reason="no quota"),
            True,
            ["stopped; `memd-ctl embed resume` asks the provider again, as does a changed key"],
        ),
        (Embedding(state="stopped", reason="no quota"), False, ["stopped: no quota"]),
        (
            Embedding(state="backing_off", reason="down", next_try_s=3.0),
            True,
            ["the next attempt is in a few seconds"],
        ),
        (Embedding(state="paused", reason="why"), True, ["paused: why"]),
        (
            Embedding(state="waiting_for_confirmation", reason="30,000 chunks"),
            True,
            ["waiting for your confirmation: 30,000 chunks"],
        ),
    ],
)
def test_what_a_person_should_know(embedding: Embedding, provider_told: bool, parts: list[str]) -> None:
    """Nothing is said twice, and nothing where all is well."""
    assert [what for _, what in embedding_text.troubles(embedding, provider_told=provider_told)] == parts


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (BatchStatus(enabled=True), "on"),
        (
            BatchStatus(enabled=True, files_left=2),
            "on; 2 files of ended jobs not deleted at the provider's yet, tried again",
        ),
        (BatchStatus(enabled=True, jobs=1, texts=600), "on, 1 job under way with 600 texts"),
        (
            BatchStatus(enabled=True, failures=1, reason="expired", at=_NOW - 60),
            "on; 1 of 2 failures, 1 min ago: expired",
        ),
        (
            BatchStatus(enabled=True, on=False, failures=2, reason="expired", at=_NOW - 3600),
            (
                "off after 2 failures, 1 h ago: expired; plain requests do their work;"
                " `memd-ctl embed batch on` turns them on again"
            ),
        ),
    ],
)
def test_batches_in_one_line(status: BatchStatus, said: str) -> None:
    """State, count, reason, time, and how to have them again."""
    assert embedding_text.batch_in_words(status, _NOW) == said
