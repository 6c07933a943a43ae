"""The waiting texts of one agent in an embedding queue, their progress, and why they wait."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import msgspec

from memd.domain_types import ChunkId, TextHash
from memd.embedding.health_transitions import Healthy, Refusing, RequestHealth, Retrying
from memd.providers.provider import ProviderLimits
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import Space
from memd.store.index import Index
from memd_client.token_estimate import estimate_tokens


class Paused(msgspec.Struct, frozen=True):
    """The user has paused the agent."""


BURST_S = 600.0  # a burst of texts ends after this time without any sent


class WaitingForConfirmation(msgspec.Struct, frozen=True):
    """More texts would be sent than the user allows without confirmation."""

    chunks: int  # distinct texts that are not cached
    tokens: int  # estimated
    # Texts sent just before, if the limit is exceeded only together with them; see BURST_S.
    sent: int = 0


State = RequestHealth | Paused | WaitingForConfirmation
"""The state of an agent at a provider, or of the index that stores its vectors."""


def in_words(state: State, agent: str) -> str | None:
    """Return why nothing of an agent is embedded, with advice; None: nothing prevents it."""
    match state:
        case Healthy():
            return None
        case Retrying():
            return state.reason
        case Refusing():
            return (
                f"{state.reason}. It is not asked again until the key or the configuration changes;"
                f" `memd-ctl embed resume --agent {agent}` tries now"
            )
        case Paused():
            return f"embedding is paused; `memd-ctl embed resume --agent {agent}` goes on"
        case WaitingForConfirmation():
            before = f" after {state.sent:,} just before" if state.sent else ""
            until = f"for {BURST_S / 60:g} minutes, or until" if state.sent else "until"
            return (
                f"{state.chunks:,} chunks, about {state.tokens:,} tokens, would be sent to the provider{before}, more than"
                f" remote.confirm_above_chunks; nothing is sent {until}"
                f" `memd-ctl embed confirm --agent {agent}`"
            )


class PublishedVectors(Protocol):
    """Vectors that an agent has published: its texts need not be embedded again."""

    asked_up_to: int | None
    """The last chunk by id that was looked up, if all up to it were; None: texts are embedded without."""

    async def next_found(
        self, index: Index, space: Space
    ) -> Sequence[tuple[ChunkId, TextHash, bytes]] | None:
        """Look up the next waiting texts of an index; each text once only. Failures are handled inside.

        Args:
            index: The agent's index.
            space: The vector space.

        Returns:
            Found vectors as float32, possibly none; None: there is nothing left to look up, or the source is unavailable.
        """

    def leave_out(self) -> None:
        """Return nothing from now on, since texts are to be embedded again."""


class IndexToEmbed(msgspec.Struct, frozen=True):
    """An agent's index, as served by the scheduler."""

    agent: str
    index: Index
    use_cache: bool
    published: PublishedVectors | None = None  # None: the agent does not publish


class EmbedRequest:
    """Texts of one agent in one request."""

    def __init__(
        self, source: IndexToEmbed, chunks: Sequence[WaitingChunk], texts: Mapping[TextHash, str]
    ) -> None:
        self.source = source
        self.chunks = chunks
        self.texts = texts
        self.has_slot = False

    def without(self, some: Collection[TextHash]) -> "EmbedRequest":
        """Return the request without some texts."""
        texts = {text_hash: text for text_hash, text in self.texts.items() if text_hash not in some}
        return EmbedRequest(self.source, [chunk for chunk in self.chunks if chunk.hash in texts], texts)


class AgentBacklog:
    """The waiting and requested texts of one agent."""

    def __init__(self, source: IndexToEmbed) -> None:
        self.source = source  # replaced each time the agent is served
        self.anew = asyncio.Event()  # set when texts were written since the last request was prepared
        self.woken = asyncio.Event()  # set when there may be something to do
        self.ahead: list[WaitingChunk] = []  # texts read and not requested yet, the most important first
        self.out: set[TextHash] = set()  # hashes of texts that are in flight or being stored
        self.requests: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None  # raised by a request's task
        # By hash of texts whose request failed: the number of answers until then.
        self.failed_at: dict[TextHash, int] = {}
        self.alone: dict[TextHash, int] = {}  # likewise, for texts that were alone in their request
        # By hash of texts that are requested with few others: the most texts of such a request.
        self.most: dict[TextHash, int] = {}
        self.deferred: set[TextHash] = set()  # texts that fail while others do not; requested last
        # Texts that failed alone since the last answer; requested last until the next answer.
        self.suspected: set[TextHash] = set()
        self.fails_at_deferred = False  # the last failure was that of a deferred text
        self.held: frozenset[TextHash] = frozenset()  # waiting texts that are in batch jobs
        self.open = 0  # chunks, at the last look, that were neither requested nor in a job
        self.asked = 0  # texts in flight
        self.answered = 0  # texts sent in this burst, see BURST_S
        self.unconfirmed: WaitingForConfirmation | None = None
        self.asked_at = 0.0  # since when a confirmation is required: nothing was sent since
        self.awaits_others = False  # all its waiting texts are in flight for other agents
        self.storing = asyncio.Lock()
        self.store: Healthy | Retrying = Healthy()
        self.has_met_bug = False  # why it is retried: a defect of memd, not the index
        self.is_idle = False
        self.task: asyncio.Task[None] | None = None

    @property
    def agent(self) -> str:
        """The agent's id."""
        return self.source.agent

    @property
    def sent(self) -> int:
        """The number of texts sent in this burst."""
        return self.asked + self.answered

    @property
    def only_jobs_left(self) -> bool:
        """Whether all waiting texts are in batch jobs."""
        is_busy = self.ahead or self.requests or self.anew.is_set()
        return bool(self.held) and not is_busy

    def wake(self, *, anew: bool = False) -> None:
        """Wake the agent's task; with `anew`, since texts were written."""
        if anew:
            self.is_idle = False
            self.anew.set()
        self.woken.set()

    def looked_up(self, waiting: Sequence[WaitingChunk]) -> Sequence[WaitingChunk]:
        """Leave out chunks that were written since the agent's published vectors were looked up; they are next."""
        published = self.source.published
        limit = None if published is None else published.asked_up_to
        return waiting if limit is None else [chunk for chunk in waiting if chunk.id <= limit]

    def waits_for_others(self) -> bool:
        """Called when no request could be prepared: return whether texts wait, which are then all in flight for others."""
        self.awaits_others = bool(self.ahead)
        return self.awaits_others

    @property
    def passed_over(self) -> frozenset[TextHash]:
        """The texts that are not read ahead while others wait."""
        return frozenset(self.deferred | self.suspected)

    def note_failure(self, request: EmbedRequest, answers: int) -> None:
        """Record a failed request: one of its texts may be the cause, and must not delay the others.

        If texts fail repeatedly while others succeed, they are requested in halves, so that few failures identify the cause. A text
        that fails alone is requested last until the next answer, so that the next attempt uses another text. If it then fails alone
        again, it stays last.

        Args:
            request: The failed request.
            answers: The number of answered requests so far.
        """
        if len(request.texts) == 1:
            [text_hash] = request.texts
            self.most[text_hash] = 1
            is_again = answers > self.alone.setdefault(text_hash, answers) or text_hash in self.deferred
            (self.deferred if is_again else self.suspected).add(text_hash)
            self.fails_at_deferred = is_again
            return
        for text_hash in request.texts:
            if answers > self.failed_at.setdefault(text_hash, answers):
                self.failed_at[text_hash] = answers
                self.most[text_hash] = len(request.texts) // 2

    def forget_failures(self, hashes: Iterable[TextHash]) -> None:
        """Forget the failures of texts that have vectors now."""
        for text_hash in hashes:
            for held in (self.failed_at, self.alone, self.most):
                held.pop(text_hash, None)

    def trust_again(self) -> None:
        """After an answer, restore the order of texts that had failed alone, perhaps only because the provider was down."""
        if self.suspected:
            self.suspected.clear()
            self.wake(anew=True)

    def suspect_none(self) -> None:
        """When nothing else waits, restore the order of all texts that were put last."""
        self.deferred.clear()
        self.suspected.clear()
        self.fails_at_deferred = False

    def put_back(self, request: EmbedRequest, but: Collection[TextHash] = ()) -> None:
        """Let the texts of a request wait again, first in order, except for some and for those that are requested last."""
        # Sorting all waiting texts for each request would take longer than the request. If the agent was served again meanwhile, other
        # texts may be more important.
        if self.source is request.source:
            but = self.passed_over.union(but)
            back = [chunk for chunk in request.chunks if chunk.hash not in but]
            self.ahead = [*back, *self.ahead]


def rows(
    waiting: Sequence[WaitingChunk], vectors: Mapping[TextHash, bytes]
) -> list[tuple[ChunkId, TextHash, bytes]]:
    """Return the chunks with the vectors of their texts."""
    return [(chunk.id, chunk.hash, vectors[chunk.hash]) for chunk in waiting if chunk.hash in vectors]


def batch(
    waiting: Sequence[WaitingChunk],
    limits: ProviderLimits,
    passed_over: Collection[TextHash],
    most: Mapping[TextHash, int] = MappingProxyType({}),
) -> dict[TextHash, str]:
    """Return the first distinct texts that fit into one request; at least one, if there is any.

    Args:
        waiting: The chunks, the most important first.
        limits: The limits of one request.
        passed_over: The hashes of texts to skip.
        most: By hash, the most texts of a request that contains this text.
    """
    texts: dict[TextHash, str] = {}
    tokens, room = limits.tokens, limits.texts
    for chunk in waiting:
        if chunk.hash in texts or chunk.hash in passed_over:
            continue
        cost = estimate_tokens(chunk.text)
        if texts and (cost > tokens or len(texts) >= room):
            break
        allowed = most.get(chunk.hash, room)
        if texts and len(texts) >= allowed:
            continue
        texts[chunk.hash] = chunk.text
        tokens, room = tokens - cost, min(room, allowed)
    return texts
