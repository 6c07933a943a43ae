"""What waits of an agent, and why, in words."""

from pathlib import Path
from typing import Any, cast

import pytest

from memd.domain_types import ChunkId, TextHash
from memd.embedding.health_transitions import Healthy, Refusing, Retrying
from memd.embedding.passage_queue.agent_backlog import (
    AgentBacklog,
    EmbedRequest,
    IndexToEmbed,
    Paused,
    State,
    WaitingForConfirmation,
    batch,
    in_words,
    rows,
)
from memd.embedding.passage_queue.fair_slots import InFlight, RequestSender
from memd.providers.provider import ProviderLimits
from memd.store.chunks import WaitingChunk
from memd.store.index import Index


def chunk(number: int, text: str | None = None) -> WaitingChunk:
    """A chunk whose text is hashed by its number."""
    return WaitingChunk(ChunkId(number), TextHash(bytes([number])), text or f"text {number}")


def source(tmp_path: Path) -> IndexToEmbed:
    return IndexToEmbed("main", Index(tmp_path / "main.sqlite"), use_cache=True)


def request(of: IndexToEmbed, *numbers: int) -> EmbedRequest:
    chunks = [chunk(number) for number in numbers]
    return EmbedRequest(of, chunks, {one.hash: one.text for one in chunks})


@pytest.mark.parametrize(
    ("limits", "passed_over", "expected"),
    [
        (ProviderLimits(8000, 10, 1), (), [1, 2, 3]),
        (ProviderLimits(8000, 2, 1), (), [1, 2]),
        (ProviderLimits(8000, 2, 1), (1,), [2, 3]),
        (ProviderLimits(1, 10, 1), (), [1]),  # too long for any request, and asked for all the same
        (ProviderLimits(8000, 10, 1), (1, 2, 3), []),
    ],
)
def test_a_request_has_the_first_texts_that_fit(
    limits: ProviderLimits, passed_over: tuple[int, ...], expected: list[int]
) -> None:
    """Each text once, without those that others ask for."""
    waiting = [chunk(1), chunk(1), chunk(2), chunk(3)]
    texts = batch(waiting, limits, {TextHash(bytes([number])) for number in passed_over})
    assert [text_hash[0] for text_hash in texts] == expected


def test_every_chunk_of_a_text_gets_its_vector() -> None:
    """Those whose text got none get none."""
    waiting = [chunk(1), WaitingChunk(ChunkId(7), TextHash(b"\x01"), "text 1"), chunk(2)]
    assert rows(waiting, {TextHash(b"\x01"): b"v"}) == [(1, b"\x01", b"v"), (7, b"\x01", b"v")]


def test_what_came_to_nothing_is_wanted_first(tmp_path: Path) -> None:
    """Before what was read after it, and without what is settled."""
    backlog = AgentBacklog(source(tmp_path))
    backlog.ahead = [chunk(4)]
    backlog.put_back(request(backlog.source, 1, 2, 3), {TextHash(b"\x02")})
    assert [one.id for one in backlog.ahead] == [1, 3, 4]


def test_what_came_to_nothing_alone_is_behind_the_others_until_there_is_an_answer(tmp_path: Path) -> None:
    """It is not read ahead meanwhile, however often the agent is served anew; an answer takes the suspicion away, once."""
    backlog = AgentBacklog(source(tmp_path))
    failing = request(backlog.source, 5)
    backlog.note_failure(failing, answers=0)
    backlog.put_back(failing)
    assert backlog.ahead == []
    assert backlog.passed_over == {b"\x05"}
    assert list(batch([chunk(5), chunk(6)], ProviderLimits(1000, 10, 1), (), backlog.most)) == [b"\x05"]
    backlog.anew.clear()
    backlog.trust_again()
    assert backlog.passed_over == frozenset()
    assert backlog.anew.is_set()
    backlog.note_failure(failing, answers=1)
    backlog.trust_again()
    assert backlog.passed_over == {b"\x05"}, "it failed again though others did not"
    assert backlog.fails_at_deferred
    backlog.suspect_none()
    assert backlog.passed_over == frozenset()
    assert not backlog.fails_at_deferred


def test_what_was_asked_for_before_the_agent_was_served_anew_is_read_again(tmp_path: Path) -> None:
    """Something else may be wanted more by now."""
    backlog = AgentBacklog(source(tmp_path))
    before = request(backlog.source, 1)
    backlog.source = source(tmp_path)
    backlog.put_back(before, ())
    assert backlog.ahead == []


def test_texts_that_fail_while_others_do_not_are_asked_for_in_halves(tmp_path: Path) -> None:
    """A provider that fails at everything is no sign against a text."""
    backlog = AgentBacklog(source(tmp_path))
    failing = request(backlog.source, 1, 2, 3, 4)
    backlog.note_failure(failing, answers=5)
    backlog.note_failure(failing, answers=5)
    assert backlog.most == {}
    backlog.note_failure(failing, answers=6)
    assert set(backlog.most.values()) == {2}
    waiting = [chunk(n) for n in (1, 2, 3, 4, 5)]
    assert list(batch(waiting, ProviderLimits(1000, 10, 1), (), backlog.most)) == [b"\x01", b"\x02"]
    assert list(batch(waiting[::-1], ProviderLimits(1000, 10, 1), (), backlog.most)) == [b"\x05", b"\x04"]
    backlog.forget_failures([TextHash(b"\x01"), TextHash(b"\x02")])
    assert list(batch(waiting, ProviderLimits(1000, 10, 1), (), backlog.most)) == [b"\x01", b"\x02", b"\x05"]


@pytest.mark.parametrize(
    ("held", "ahead", "anew", "expected"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (True, True, False, False),
        (True, False, True, False),
    ],
)
def test_an_agent_waits_for_jobs_alone_when_nothing_else_is_left(
    tmp_path: Path, *, held: bool, ahead: bool, anew: bool, expected: bool
) -> None:
    """Nothing that is read, nothing that was just written."""
    backlog = AgentBacklog(source(tmp_path))
    backlog.held = frozenset({TextHash(b"\x01")} if held else ())
    backlog.ahead = [chunk(2)] if ahead else []
    if anew:
        backlog.wake(anew=True)
    assert backlog.only_jobs_left == expected


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (Retrying(0.0, 1.0, 1, "openai: no answer"), "openai: no answer"),
        (Refusing(0.0, "openai: the quota is used up"), "`memd-ctl embed resume --agent work`"),
        (Paused(), "`memd-ctl embed resume --agent work`"),
        (WaitingForConfirmation(30_000, 12_000_000), "30,000 chunks, about 12,000,000 tokens"),
        (
            WaitingForConfirmation(30, 900, 40),
            "30 chunks, about 900 tokens, would be sent to the provider after 40 just before",
        ),
        (
            WaitingForConfirmation(30, 900, 40),
            "nothing is sent for 10 minutes, or until `memd-ctl embed confirm",
        ),
        (WaitingForConfirmation(30_000, 12_000_000), "`memd-ctl embed confirm --agent work`"),
    ],
)
def test_a_person_is_told_what_to_do(state: State, said: str) -> None:
    """Why nothing is embedded, and the command that changes it."""
    assert said in str(in_words(state, "work"))


def test_what_works_needs_no_words() -> None:
    """Nothing is in the way."""
    assert in_words(Healthy(), "work") is None


async def test_who_waits_for_texts_of_others_looks_again_when_those_are_answered(tmp_path: Path) -> None:
    """Once: what it was read ahead is read anew, and later answers are none of its business."""
    waiting, other = (
        AgentBacklog(IndexToEmbed(name, Index(tmp_path / name), use_cache=True)) for name in "ab"
    )
    in_flight, nobody = InFlight(), cast("Any", None)
    slots = RequestSender(
        {"a": waiting, "b": other}, nobody, nobody,
        batch_submitter=nobody, known=nobody, storing=nobody, switches=nobody, in_flight=in_flight,
    )  # fmt: skip
    waiting.ahead = [WaitingChunk(ChunkId(1), TextHash(b"1"), "text")]
    other.ahead = [*waiting.ahead]
    for one in (waiting, other):
        one.woken.clear()
    assert waiting.waits_for_others()
    in_flight.ended([TextHash(b"1")])
    assert (waiting.woken.is_set(), waiting.ahead) == (True, [])
    assert (other.woken.is_set(), len(other.ahead)) == (False, 1)
    waiting.woken.clear()
    slots.look_again()
    assert not waiting.woken.is_set()
