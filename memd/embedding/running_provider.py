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
from memd.embedding.health import ProviderHealth, Standby
from memd.embedding.query_queue import QuestionQueue
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
from memd.providers.remote.request import ContentRefused, RequestTooLarge
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.backoff import delay_s
from memd.runtime.changed import ChangeNotifier
from memd.store.embeddings import EmbeddingStore, Space
from memd.store.provider_records import ProviderStore

if TYPE_CHECKING:
    from memd.embedding.batch_jobs import SharedBatchJobs
    from memd.embedding.model_probe import ModelProbe

log = structlog.get_logger()

FIRST_WAIT_S = 2.0  # after the first failure to identify a model
PROBE_CAP_S = 60.0  # between two probes of a provider that is used and does not answer


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
    # Of who embeds, and of whether they answer: agents look again what they embed with.
    changes: ChangeNotifier = msgspec.field(default_factory=ChangeNotifier)


class RunningProvider:
    """One provider with its queue. What it is like is asked for once, remembered, and looked at again now and then."""

    def __init__(
        self,
        candidate: Candidate,
        tools: ProviderParts,
        settings: AgentSettings,
        standby: Standby | None = None,
    ) -> None:
        """Nothing runs, and nothing is sent, before `begin`.

        Args:
            candidate: As it was chosen.
            tools: What it is made with.
            settings: Of an agent that it is for.
            standby: Its fallback; None: there is none.
        """
        self.candidate = candidate
        self.provider: Provider | None = None  # None: what its model is like is not known yet
        self.questions: QuestionQueue | None = None  # to the provider
        self.queue: EmbeddingQueue | None = None
        self.health = ProviderHealth(
            self.name,
            tools.rng,
            tools.clock,
            is_remote=isinstance(candidate, ProviderSpec),
            key_places=candidate.key_places if isinstance(candidate, ProviderSpec) else "",
            standby=standby,
            changes=tools.changes,
        )
        self._tools = tools
        self._settings = settings
        self._living: list[asyncio.Task[None]] = []  # of the provider that there is
        self._task: asyncio.Task[None] | None = None

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
        """Whether the provider embeds questions, as far as is known."""
        return self.provider is not None and self.health.reason is None

    async def begin(self, *, at_once: bool) -> None:
        """Start, as far as that takes no request.

        Args:
            at_once: Whether a server is asked now what its model is like; else when health.probe_wanted is set.
        """
        candidate = self.candidate
        if not isinstance(candidate, ProviderSpec):
            self._live(candidate)
            self.health.probe_wanted.set()  # the model is loaded now, so that the first question does not wait for it
            self._task = self._start(self._keep_probing(_Known(candidate), None))
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
            self.health.probe_wanted.set()
        self._task = self._start(self._keep_probing(acquaintance, self._tools.patience.check_s))

    def ask_again(self) -> None:
        """Have the provider probed now, if it does not answer or was left for its fallback, and what waits for it sent."""
        self.health.doubt()
        if self.health.reason is not None or self.health.now.left is not None:
            self.health.probe_wanted.set()
        if self.queue is not None:
            self.queue.ask_again()

    async def close(self) -> None:
        """End requests, queue and connections; work that is under way is given up."""
        self.health.close()
        if self.questions is not None:
            self.questions.close()
        await _end([*self._living, *([] if self._task is None else [self._task])])
        provider = self.candidate if self.provider is None else self.provider
        if not isinstance(provider, ProviderSpec):
            await provider.close()

    # --- what it is like

    async def _keep_probing(self, probe: "ModelProbe | _Known", check_s: float | None) -> None:
        """Ask the provider how it is: when that is wanted, again after each failure, and every `check_s` seconds."""
        wanted, health = self.health.probe_wanted, self.health
        try:
            await wanted.wait()
            failures = 0
            while True:
                wanted.clear()
                try:
                    with failures_of(self.name):
                        found = await probe.ask()
                except (EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused) as failure:
                    failures += 1
                    health.probe_failed(failure)
                    wait_s = self._wait_s(failures, failure)
                else:
                    failures = 0
                    if found is not None:
                        if self.provider is not None:
                            log.warning("embed.model_changed", provider=self.name, model=self.model)
                        await self._replace(found)
                    health.probe_answered()
                    wait_s = min(
                        (one for one in (check_s, health.returns_in_s) if one is not None), default=None
                    )
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await wanted.wait()
        finally:
            await probe.close()

    def _wait_s(self, failures: int, failure: MemdError) -> float | None:
        """Until the next probe, in seconds; None: there is none before it is wanted."""
        if not isinstance(failure, EmbedUnavailable):
            return None
        cap_s = PROBE_CAP_S if self.health.now.left is None else self._tools.patience.ask_s
        wait_s = delay_s(failures, self._tools.rng, first_s=FIRST_WAIT_S, cap_s=cap_s)
        return max(wait_s, min(failure.retry_after_s or 0.0, cap_s))

    async def _replace(self, provider: Provider) -> None:
        """Use another provider from now on: it is known only now, or the model behind the name has changed."""
        before, self._living = self._living, []
        self._live(provider)
        await _end(before)

    def _live(self, provider: Provider) -> None:
        if self.questions is not None:
            self.questions.close()
        self.provider = provider
        self.health.begin_anew()
        self.questions = QuestionQueue(provider, self.health)
        self.queue = queue = self._queue(provider)
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
        self._tools.changes.notify()

    def _queue(self, provider: Provider) -> EmbeddingQueue:
        is_paid_for = isinstance(self.candidate, ProviderSpec)
        cache = self._tools.cache
        return EmbeddingQueue(
            provider,
            cache,
            self._tools.bound,
            self.health,
            confirm_above=self._settings.remote.confirm_above_chunks if is_paid_for else None,
            documents=lambda space: ProviderStore(cache, space),
            under_way=self._tools.under_way.setdefault(space_of(provider.identity), InFlight()),
        )

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._tools.tasks.create_task(work)


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


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
