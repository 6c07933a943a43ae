"""Search results and the state of embedding as text."""

import msgspec
import pytest

from memd.ctl.output import reply_text
from memd.ctl.output.reply_text import total_vectors, vectors_in_words
from memd.ctl.output.terminal import ansi, uncoloured
from memd_client.messages import BatchStatus, Degraded, Embedding, Found, Vectors
from tests.ctl.answers import FOUND, HIT, agent, status


def test_a_hit_is_a_place_a_score_and_its_snippet() -> None:
    """One empty line between two hits; no trailing blanks in a snippet."""
    other = msgspec.structs.replace(
        HIT, path="/srv/docs/a.md", start_line=7, end_line=7, score=1.0, snippet="x\n"
    )
    assert reply_text.hits_text([HIT, other], uncoloured) == (
        "memory/2026-02-09.md:3-5  0.715\n"
        "    # Retries\n"
        "\n"
        "    three, with jitter\n"
        "\n"
        "/srv/docs/a.md:7-7  1.000\n"
        "    x"
    )


def test_a_score_of_another_engine_is_named() -> None:
    """It is not to be compared with those of memd."""
    other = msgspec.structs.replace(HIT, score=0.0, own_scale=True)
    assert (
        reply_text.hit_headline(other, uncoloured) == "memory/2026-02-09.md:3-5  0.000 on a scale of its own"
    )


def test_the_copies_of_a_hit_are_named() -> None:
    """A path is shown as it is, and moves no cursor."""
    copied = msgspec.structs.replace(HIT, copies=["old.md#L3-L9", "\x1b[2Jb.md#L1-L1"])
    assert reply_text.hit_headline(copied, uncoloured).endswith("  also in old.md#L3-L9, \\x1b[2Jb.md#L1-L1")


def test_hits_for_want_of_better_are_named() -> None:
    """Each beside its score, and all together in a remark; one that is not weak is answer enough."""
    weak = msgspec.structs.replace(HIT, weak=True)
    assert reply_text.hit_headline(weak, uncoloured).endswith("0.715, weak")
    said = "Note: nothing in memory is likely to answer this; these hits are the closest there are."
    assert reply_text.answer_notes(Found(results=[weak])) == (said,)
    assert reply_text.answer_notes(Found(results=[weak, HIT])) == ()


def test_place_and_score_are_set_off_by_colour() -> None:
    """The words of the note are left as they are."""
    assert reply_text.hits_text([HIT], ansi).startswith(
        "\x1b[36mmemory/2026-02-09.md:3-5\x1b[0m  \x1b[2m0.715\x1b[0m\n    # Re"
    )


def test_a_snippet_cannot_command_the_terminal() -> None:
    """Escape sequences in a note are spelled out."""
    nasty = msgspec.structs.replace(HIT, snippet="\x1b[2Jgone")
    assert "\x1b" not in reply_text.hits_text([nasty], uncoloured)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (FOUND, ()),
        (Found(), ("No hits.",)),
        (
            Found(scope_denied=True),
            (
                "This session may not search this agent's memory: the scope rules of the configuration deny it.",
            ),
        ),
        (
            Found(
                results=[HIT],
                stale=True,
                degraded=[Degraded(part="query_embedding", reason="timed out\nafter 2 s")],
            ),
            (
                "Note: something written just now is not in these results yet; query embedding: timed out; after 2 s.",
            ),
        ),
        (
            Found(degraded=[Degraded(part="vector", reason="no model")]),
            ("No hits.", "Note: vector: no model."),
        ),
        (
            Found(results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="not installed"),
            ("Note: builtin answered instead of qmd: not installed.",),
        ),
        (
            Found(
                results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="It is gone. Install it."
            ),
            ("Note: builtin answered instead of qmd: It is gone. Install it.",),
        ),
        (
            Found(results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="Is it there?"),
            ("Note: builtin answered instead of qmd: Is it there?",),
        ),
        (
            Found(
                results=[HIT],
                backend="builtin",
                provider="local",
                fallback=True,
                fallback_from="voyage",
                fallback_reason="the key was not accepted",
            ),
            ("Note: local answered instead of voyage: the key was not accepted.",),
        ),
    ],
)
def test_what_is_missing_is_remarked(found: Found, said: tuple[str, ...]) -> None:
    """In one line, whatever is degraded."""
    assert reply_text.answer_notes(found) == said


def test_all_agents_wait_in_one_line() -> None:
    """The longest estimate is that of all; one without an estimate has none."""
    both = status(
        agent(vectors=Vectors(done=1, waiting=2, eta_s=3.0)),
        agent(vectors=Vectors(done=10, waiting=20, eta_s=7.0)),
    )
    assert total_vectors(both) == Vectors(done=11, waiting=22, eta_s=7.0)
    assert total_vectors(status(agent(vectors=Vectors(waiting=2)))).eta_s is None
    unused = agent(provider="none", vectors=Vectors(done=12))
    assert total_vectors(status(unused, agent(vectors=Vectors(done=1)))) == Vectors(done=1)


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
    assert reply_text.state_in_words(embedding) == said


@pytest.mark.parametrize(
    ("embedding", "reported", "parts"),
    [
        (Embedding(), [], []),
        (Embedding(reason="in a batch job of 600 texts"), [], ["in a batch job of 600 texts"]),
        (
            Embedding(state="stopped", reason="no quota. It is not asked again until the key changes"),
            ["no quota. Set remote.api_key, then restart memd"],
            ["stopped; `memd-ctl embed resume` asks the provider again, as does a changed key"],
        ),
        (Embedding(state="stopped", reason="no quota"), [], ["stopped: no quota"]),
        (
            Embedding(state="stopped", reason="the key was refused. It is not asked again"),
            ["too many requests (HTTP 429)"],
            ["stopped: the key was refused. It is not asked again"],
        ),
        (
            Embedding(state="backing_off", reason="no room is left", next_try_s=3.0),
            ["down", "no room is left"],
            ["the next attempt is in a few seconds"],
        ),
        (
            Embedding(state="backing_off", reason="down", next_try_s=3.0),
            ["down"],
            ["the next attempt is in a few seconds"],
        ),
        (Embedding(state="paused", reason="why"), ["why"], ["paused: why"]),
        (
            Embedding(state="waiting_for_confirmation", reason="30,000 chunks"),
            [],
            ["waiting for your confirmation: 30,000 chunks"],
        ),
    ],
)
def test_what_a_person_should_know(embedding: Embedding, reported: list[str], parts: list[str]) -> None:
    """Nothing is said twice, and nothing where all is well."""
    assert [what for _, what in reply_text.embedding_troubles(embedding, reported)] == parts


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
    assert reply_text.batch_in_words(status, _NOW) == said
