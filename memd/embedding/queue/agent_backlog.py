"""What waits of one agent in an embedding queue, how far that is, and why nothing moves."""

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
from memd.text.tokens import estimate_tokens


class Paused(msgspec.Struct, frozen=True):
    """A person wants nothing of the agent to be embedded."""


BURST_S = 600.0  # after so long without any being sent, texts that went out before do not count any more


class WaitingForConfirmation(msgspec.Struct, frozen=True):
    """There is more to embed than a person wants to pay for unasked."""

    chunks: int  # texts, each counted once, that are not cached
    tokens: int  # estimated
    # Texts that went out just before, where it is only more than a person wants with them; see BURST_S.
    sent: int = 0


State = RequestHealth | Paused | WaitingForConfirmation
"""The state of an agent at a provider, or of the store that takes its vectors."""


def in_words(state: State, agent: str) -> str | None:
    """Why nothing of an agent is embedded, and what to do about it; None: nothing is in the way."""
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
    """Vectors that an agent has published before: a text whose vector is there is not embedded again."""

    async def next_found(
        self, index: Index, space: Space
    ) -> Sequence[tuple[ChunkId, TextHash, bytes]] | None:
        """Ask for the next of the texts that wait in an index, and never twice for one; fails with nothing of its own.

        Args:
            index: Of the agent.
            space: Of the vectors that are wanted.

        Returns:
            What is there for the index, float32; None: nothing is left to ask for, or it is no time to ask.
        """

    def leave_out(self) -> None:
        """Find nothing from here on: the texts are wanted embedded anew."""


class IndexToEmbed(msgspec.Struct, frozen=True):
    """An agent's index, as the scheduler serves it."""

    agent: str
    index: Index
    use_cache: bool
    published: PublishedVectors | None = None  # None: the agent publishes nothing


class EmbedRequest:
    """Some texts of one agent on their way to the provider and back."""

    def __init__(
        self, source: IndexToEmbed, chunks: Sequence[WaitingChunk], texts: Mapping[TextHash, str]
    ) -> None:
        self.source = source
        self.chunks = chunks
        self.texts = texts
        self.has_place = False

    def without(self, some: Collection[TextHash]) -> "EmbedRequest":
        """The same without some texts."""
        texts = {text_hash: text for text_hash, text in self.texts.items() if text_hash not in some}
        return EmbedRequest(self.source, [chunk for chunk in self.chunks if chunk.hash in texts], texts)


class AgentBacklog:
    """What waits of one agent, and what is under way."""

    def __init__(self, source: IndexToEmbed) -> None:
        self.source = source  # each time the agent is served it is another
        self.anew = asyncio.Event()  # something was written since the last batch was put together
        self.woken = asyncio.Event()  # there may be something to do
        self.ahead: list[WaitingChunk] = []  # read, and not asked for yet, the most wanted first
        self.out: set[TextHash] = set()  # asked for, or about to be stored
        self.requests: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None  # what a lane met
        # Texts whose request failed -> answers there had been by then.
        self.failed_at: dict[TextHash, int] = {}
        self.alone: dict[TextHash, int] = {}  # likewise, of those that were all of their request
        # Texts that are asked for with few others -> in requests of so many at most.
        self.most: dict[TextHash, int] = {}
        self.deferred: set[TextHash] = set()  # texts that fail while others do not: after all others
        # Texts that failed alone since the last answer: likewise, until the next one.
        self.suspected: set[TextHash] = set()
        self.fails_at_deferred = False  # the last failure was that of a deferred text
        self.held: frozenset[TextHash] = frozenset()  # waiting texts that are in batch jobs
        self.open = 0  # chunks, at the last look, that were neither asked for nor in a job
        self.asked = 0  # texts that the provider is asked for just now
        self.answered = 0  # texts that were sent before, since nothing waited last but what fails alone
        self.unconfirmed: WaitingForConfirmation | None = None
        self.asked_at = 0.0  # since when something is unconfirmed: nothing has been sent since
        self.awaits_others = False  # all it wants has been asked for, for other agents
        self.storing = asyncio.Lock()
        self.store: Healthy | Retrying = Healthy()
        self.is_idle = False
        self.task: asyncio.Task[None] | None = None

    @property
    def agent(self) -> str:
        """Its id."""
        return self.source.agent

    @property
    def sent(self) -> int:
        """Texts of this burst."""
        return self.asked + self.answered

    @property
    def only_jobs_left(self) -> bool:
        """Whether all that waits is in batch jobs."""
        is_busy = self.ahead or self.requests or self.anew.is_set()
        return bool(self.held) and not is_busy

    def wake(self, *, anew: bool = False) -> None:
        """Look whether there is something to do."""
        if anew:
            self.is_idle = False
            self.anew.set()
        self.woken.set()

    def waits_for_others(self) -> bool:
        """Whether there is something ahead, called when no request could be made of it: all of it is under way for others."""
        self.awaits_others = bool(self.ahead)
        return self.awaits_others

    @property
    def passed_over(self) -> frozenset[TextHash]:
        """Texts that are not read ahead as long as others wait."""
        return frozenset(self.deferred | self.suspected)

    def note_failure(self, request: EmbedRequest, answers: int) -> None:
        """A request came to nothing: one of its texts may be what the provider fails at, and must not delay the others.

        Texts whose request fails again, though others were answered in between, are asked for in halves, so that few
        failures tell which one it is. One that fails alone is behind the others until there is an answer, so that the next
        attempt is made with another one; if it then fails alone again, it stays behind them.

        Args:
            request: Came to nothing.
            answers: That there have been to others.
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
        """Nothing of some texts is held against them any more: they have their vectors."""
        for text_hash in hashes:
            for held in (self.failed_at, self.alone, self.most):
                held.pop(text_hash, None)

    def trust_again(self) -> None:
        """There was an answer: texts that failed alone before it may have failed like any other, and are newest first again."""
        if self.suspected:
            self.suspected.clear()
            self.wake(anew=True)

    def suspect_none(self) -> None:
        """Nothing else waits: what went behind all others is next."""
        self.deferred.clear()
        self.suspected.clear()
        self.fails_at_deferred = False

    def put_back(self, request: EmbedRequest, but: Collection[TextHash] = ()) -> None:
        """Have the texts of a request wait again before what else was read, but for some and for those that are passed over."""
        # Putting all that waits in order for each batch would take longer than the batch itself. Once the agent was
        # served anew, though, something else may be wanted more.
        if self.source is request.source:
            but = self.passed_over.union(but)
            back = [chunk for chunk in request.chunks if chunk.hash not in but]
            self.ahead = [*back, *self.ahead]


def rows(
    waiting: Sequence[WaitingChunk], vectors: Mapping[TextHash, bytes]
) -> list[tuple[ChunkId, TextHash, bytes]]:
    """Chunks with the vectors that came of their texts."""
    return [(chunk.id, chunk.hash, vectors[chunk.hash]) for chunk in waiting if chunk.hash in vectors]


def batch(
    waiting: Sequence[WaitingChunk],
    limits: ProviderLimits,
    passed_over: Collection[TextHash],
    most: Mapping[TextHash, int] = MappingProxyType({}),
) -> dict[TextHash, str]:
    """The first texts that fit into one request, each once; at least one, if there is any.

    Args:
        waiting: The chunks, the most wanted first.
        limits: Of one request.
        passed_over: Texts that are not asked for.
        most: Texts that are asked for with few others -> how many a request of theirs may have.
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
