"""One provider of an engine, from what is known of it at the start to what embeds."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING

import msgspec
import structlog

from memd.config.settings import AgentSettings, CacheSettings
from memd.embedding.fallback_state import FallbackThresholds
from memd.embedding.observed_provider import Failure, watched
from memd.embedding.queue.cache import CacheBound
from memd.embedding.queue.in_flight import InFlight
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.errors import MemdError
from memd.providers.choose import Candidate
from memd.providers.provider import (
    EmbedTerminal,
    EmbedUnavailable,
    HasWorker,
    Identity,
    Provider,
    failures_of,
    space_of,
)
from memd.providers.query_queue import QuestionQueue
from memd.providers.remote.request import BadReply, ContentRefused, KeyRefused, RequestTooLarge
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.backoff import delay_s
from memd.store.embeddings import EmbeddingStore, Space
from memd.store.provider_records import ProviderStore

if TYPE_CHECKING:
    from memd.embedding.batch_jobs import SharedBatchJobs
    from memd.embedding.model_probe import ModelProbe

log = structlog.get_logger()

FIRST_WAIT_S = 2.0  # after the first failure to identify a model
PROBE_CAP_S = 60.0  # between two questions to a provider that is used and does not answer


class ProviderParts(msgspec.Struct, frozen=True):
    """What members are made with."""

    cache: EmbeddingStore
    tasks: asyncio.TaskGroup
    rng: Random
    patience: FallbackThresholds
    clock: Callable[[], float] = time.monotonic
    bound: CacheBound = msgspec.field(default_factory=lambda: CacheBound(lambda: CacheSettings().max_entries))
    # What those have in common whose settings differ, and whose vectors do not.
    under_way: dict[Space, InFlight] = {}
    jobs: dict[Space, "SharedBatchJobs"] = {}


class ProviderTrouble(msgspec.Struct, frozen=True):
    """Why a provider does not embed."""

    reason: str  # for people, with what to do about it where that is known
    since: float  # of the clock
    is_final: bool  # until the key, the account or the configuration changes


class RunningProvider:
    """One provider with its queue. What it is like is asked for once, remembered, and looked at again now and then."""

    def __init__(
        self,
        candidate: Candidate,
        tools: ProviderParts,
        settings: AgentSettings,
        *,
        told: Callable[[ProviderTrouble | None], None],
        moved: Callable[[], None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            candidate: As it was chosen.
            tools: What it is made with.
            settings: Of an agent that it is for.
            told: Called with each trouble, and with None when it has answered.
            moved: Called when there is another provider to be used.
        """
        self.candidate = candidate
        self.provider: Provider | None = None  # None: what it is like is not known yet
        self.questions: QuestionQueue | None = None  # to the provider
        self.queue: EmbeddingQueue | None = None
        self.trouble: ProviderTrouble | None = None
        self.longest_wait_s = PROBE_CAP_S  # between two questions while it does not answer
        self._tools = tools
        self._settings = settings
        self._told = told
        self._moved = moved
        self._asked = asyncio.Event()  # somebody wants to know how it is
        self._living: list[asyncio.Task[None]] = []  # of the provider that there is
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        """Of the provider."""
        return (
            self.candidate.provider
            if isinstance(self.candidate, ProviderSpec)
            else self.candidate.identity.provider
        )

    @property
    def model(self) -> str:
        """Of the provider."""
        return (
            self.candidate.model
            if isinstance(self.candidate, ProviderSpec)
            else self.candidate.identity.model
        )

    @property
    def host(self) -> str | None:
        """Who hears what is sent; None: nobody."""
        return self.candidate.account.host if isinstance(self.candidate, ProviderSpec) else None

    @property
    def identity(self) -> Identity | None:
        """Of its vectors; None: not known yet."""
        return None if self.provider is None else self.provider.identity

    @property
    def space(self) -> Space | None:
        """Where its vectors belong."""
        return None if self.queue is None else self.queue.known.space

    @property
    def query_timeout_s(self) -> float | None:
        """How long it may take to embed a question; None: nothing was configured."""
        return self.candidate.query_timeout_s if isinstance(self.candidate, ProviderSpec) else None

    @property
    def worker_pid(self) -> int | None:
        """The process that embeds for it, while there is one."""
        return self.candidate.worker_pid if isinstance(self.candidate, HasWorker) else None

    @property
    def is_answering(self) -> bool:
        """Whether there is somebody to embed a question, as far as is known."""
        return self.provider is not None and self.trouble is None

    async def begin(self, *, at_once: bool) -> None:
        """Live, as far as that takes no request.

        Args:
            at_once: Whether a model that is not known may be asked what it is like; else that waits for ask.
        """
        candidate = self.candidate
        if not isinstance(candidate, ProviderSpec):
            self._live(candidate)
            self._asked.set()  # the model is loaded now, so that the first question does not wait for it
            self._task = self._start(self._keep_acquainted(_Known(candidate), None))
            return
        # httpx is for who has a remote provider.
        from memd.embedding.model_info import ModelInfoStore  # noqa: PLC0415
        from memd.embedding.model_probe import ModelProbe  # noqa: PLC0415

        acquaintance = ModelProbe(candidate, ModelInfoStore(self._tools.cache, candidate))
        try:
            known = await acquaintance.recall()
        except BaseException:
            await acquaintance.close()
            raise
        if known is not None:
            self._live(known)
        if at_once:
            self._asked.set()
        self._task = self._start(self._keep_acquainted(acquaintance, self._tools.patience.check_s))

    def ask(self) -> None:
        """Find out soon how the provider is."""
        self._asked.set()

    def ask_again(self) -> None:
        """Have it asked once more now, if it does not answer or refuses, and what waits for it sent."""
        if self.trouble is not None:
            self.ask()
        if self.queue is not None:
            self.queue.ask_again()

    async def close(self) -> None:
        """End requests, queue and connections; work that is under way is given up."""
        self._is_closed = True
        if self.questions is not None:
            self.questions.close()
        await _end([*self._living, *([] if self._task is None else [self._task])])
        if self.provider is not None:
            await self.provider.close()

    # --- what it is like

    async def _keep_acquainted(self, acquaintance: "ModelProbe | _Known", check_s: float | None) -> None:
        try:
            await self._asked.wait()
            failures = 0
            while True:
                self._asked.clear()
                try:
                    with failures_of(self.name):
                        found = await acquaintance.ask()
                except (EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused) as failure:
                    failures += 1
                    self._failed(failure)
                    await self._pause(self._wait_s(failures, failure))
                    continue
                failures = 0
                if found is not None:
                    if self.provider is not None:
                        log.warning("embed.model_changed", provider=self.name, model=self.model)
                    await self._replace(found)
                self._answered()
                await self._pause(check_s)
        finally:
            await acquaintance.close()

    def _wait_s(self, failures: int, failure: MemdError) -> float | None:
        """Until the next question; None: there is none."""
        if not isinstance(failure, EmbedUnavailable):
            return None
        wait_s = delay_s(failures, self._tools.rng, first_s=FIRST_WAIT_S, cap_s=self.longest_wait_s)
        return max(wait_s, min(failure.retry_after_s or 0.0, self.longest_wait_s))

    async def _pause(self, wait_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._asked.wait()

    async def _replace(self, provider: Provider) -> None:
        """Use another provider from now on: it is known only now, or the model behind the name has changed."""
        before, self._living = self._living, []
        self._live(provider)
        await _end(before)

    def _live(self, provider: Provider) -> None:
        if self.questions is not None:
            self.questions.close()
        # A worker process embeds the passages of a provider that is on this machine: they say nothing about its questions, and
        # the queue says how they go.
        self.provider = watched(provider, self._heard, passages=isinstance(self.candidate, ProviderSpec))
        self.questions = QuestionQueue(self.provider)
        self.queue = queue = self._queue(self.provider)
        self._living.append(self._start(queue.run()))
        if isinstance(self.candidate, ProviderSpec):
            from memd.embedding.batch_jobs import CachedBatchJobs, SharedBatchJobs  # noqa: PLC0415
            from memd.providers.remote.provider import RemoteProvider  # noqa: PLC0415  # likewise

            assert isinstance(provider, RemoteProvider)
            jobs = CachedBatchJobs(
                self.candidate,
                provider.identity,
                self._tools.cache,
                self._settings.remote.batch,
                queue,
                self._tools.rng,
                self._tools.jobs.setdefault(queue.known.space, SharedBatchJobs()),
                provider.bias,
            )
            self._living.append(self._start(jobs.run()))
        self._moved()

    def _queue(self, provider: Provider) -> EmbeddingQueue:
        is_paid_for = isinstance(self.candidate, ProviderSpec)
        cache = self._tools.cache
        return EmbeddingQueue(
            provider,
            cache,
            self._tools.bound,
            self._tools.rng,
            confirm_above=self._settings.remote.confirm_above_chunks if is_paid_for else None,
            documents=lambda space: ProviderStore(cache, space),
            under_way=self._tools.under_way.setdefault(space_of(provider.identity), InFlight()),
        )

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._tools.tasks.create_task(work)

    # --- how it is

    def _heard(self, failure: Failure | None) -> None:
        """How a request ended that somebody else put."""
        if self._is_closed:
            return
        if failure is None:
            if self.trouble is not None:
                self._answered()
                self._asked.set()  # after an outage another model may be behind the name
            return
        is_new = self.trouble is None
        self._failed(failure)
        if is_new or isinstance(failure, BadReply):
            self._asked.set()

    def _failed(self, failure: MemdError) -> None:
        is_final = not isinstance(failure, EmbedUnavailable)
        since = self._tools.clock() if self.trouble is None else self.trouble.since
        if self.trouble is None or self.trouble.is_final != is_final:
            log.warning("embed.provider_failed", provider=self.name, reason=str(failure), final=is_final)
        self.trouble = ProviderTrouble(in_words(failure, self.candidate), since, is_final)
        self._told(self.trouble)

    def _answered(self) -> None:
        if self.trouble is not None:
            log.info("embed.provider_recovered", provider=self.name)
        self.trouble = None
        self._told(None)


class _Known:
    """A provider of which nothing needs to be found out but whether it answers."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def ask(self) -> None:
        """Have it embed a question.

        Raises:
            EmbedUnavailable: it does not.
        """
        await self._provider.embed_query("warm-up")

    async def close(self) -> None:
        """Nothing was opened for this."""


def in_words(failure: MemdError, candidate: Candidate) -> str:
    """What went wrong, and what a person can do about it."""
    if isinstance(failure, KeyRefused) and isinstance(candidate, ProviderSpec):
        return f"{failure}. Set {candidate.key_places}, then restart memd, or send it SIGHUP if the configuration has the key"
    return str(failure)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
