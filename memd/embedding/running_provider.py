"""One provider in use: its health, its queues, and the probes of its model."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec
import structlog

from memd.config.settings import AgentSettings, CacheSettings
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.passage_queue.fair_slots import InFlight
from memd.embedding.passage_queue.results import CacheBound
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.provider_health import ProviderHealth, Standby
from memd.embedding.query_queue import QuestionQueue
from memd.errors import MemdError
from memd.maintenance.loop import BackgroundTask, BackgroundTasks
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
from memd.providers.remote.dialect import ContentRefused, RequestTooLarge
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.timers import delay_s
from memd.store.embedding_cache import EmbeddingStore, Space

if TYPE_CHECKING:
    from memd.embedding.model_info import ModelProbe
    from memd.embedding.run_batch_jobs import SharedBatchJobs

log = structlog.get_logger()

FIRST_WAIT_S = 2.0  # after the first failure to identify a model
PROBE_CAP_S = 60.0  # between two probes of a provider that is used and does not answer


class ProviderParts(msgspec.Struct, frozen=True):
    """What running providers are made with; all of a daemon share it."""

    cache: EmbeddingStore
    tasks: asyncio.TaskGroup
    rng: Random
    thresholds: FallbackThresholds
    clock: Callable[[], float] = time.monotonic
    bound: CacheBound = msgspec.field(default_factory=lambda: CacheBound(CacheSettings().max_entries))
    # By space, since agents with different settings may use the same space.
    in_flight: dict[Space, InFlight] = {}
    jobs: dict[Space, "SharedBatchJobs"] = {}
    # Runs tasks whose failures must not end the daemon.
    background: BackgroundTasks = msgspec.field(default_factory=lambda: BackgroundTasks(None, Random()))
    # Notified when the provider in use changes, or a provider starts or stops answering.
    changes: ChangeNotifier = msgspec.field(default_factory=ChangeNotifier)


class RunningProvider:
    """One provider with its queues. Its model is probed once, stored, and checked again periodically."""

    def __init__(
        self,
        candidate: Candidate,
        parts: ProviderParts,
        settings: AgentSettings,
        standby: Standby | None = None,
    ) -> None:
        """Create the object; `begin` starts it.

        Args:
            candidate: The chosen provider.
            parts: What running providers share.
            settings: The settings of an agent that uses it.
            standby: Its fallback; None: there is none.
        """
        self.candidate = candidate
        self.host: str | None = None  # the host to which texts are sent; None: a local provider
        self.query_timeout_s: float | None = None  # the timeout of a question; None: not configured
        if isinstance(candidate, ProviderSpec):
            self.name, self.model = candidate.provider, candidate.model
            self.host, self.query_timeout_s = candidate.account.host, candidate.query_timeout_s
        else:
            self.name, self.model = candidate.identity.provider, candidate.identity.model
        self.provider: Provider | None = None  # None: its model is not known yet
        self.questions: QuestionQueue | None = None
        self.queue: EmbeddingQueue | None = None
        self.health = ProviderHealth(
            self.name,
            parts.rng,
            parts.clock,
            is_remote=isinstance(candidate, ProviderSpec),
            key_places=candidate.key_places if isinstance(candidate, ProviderSpec) else "",
            standby=standby,
            changes=parts.changes,
        )
        self._parts = parts
        self._settings = settings
        self._work: list[asyncio.Task[None]] = []  # tasks that belong to self.provider
        # Tasks of probes and counts, which outlast self.provider.
        self._lasting: list[asyncio.Task[None]] = []
        self._untaken: Provider | None = None  # the provider of a newly identified model, not in use yet

    @property
    def identity(self) -> Identity | None:
        """The identity of its vectors; None: its model is not known yet."""
        return None if self.provider is None else self.provider.identity

    @property
    def space(self) -> Space | None:
        """The space of its vectors; None: its model is not known yet."""
        return None if self.queue is None else self.queue.known.space

    @property
    def worker_pid(self) -> int | None:
        """The id of the process that embeds its passages; None: there is none."""
        return self.candidate.worker_pid if isinstance(self.candidate, HasWorker) else None

    @property
    def is_answering(self) -> bool:
        """Whether the provider is running and healthy, as far as is known."""
        return self.provider is not None and self.health.reason is None

    async def begin(self, *, at_once: bool) -> None:
        """Start without waiting for requests.

        Args:
            at_once: Whether to probe a server now; otherwise when health.probe_wanted is set.
        """
        candidate = self.candidate
        if not isinstance(candidate, ProviderSpec):
            self._use(candidate)
            self.health.probe_wanted.set()  # loads the model, so that the first question does not wait for it
            self._lasting = [self._start(self._probe(_LocalProbe(candidate), None))]
            return
        # Only a remote provider needs httpx.
        from memd.embedding.model_info import ModelInfoStore, ModelProbe  # noqa: PLC0415

        probe = ModelProbe(candidate, ModelInfoStore(self._parts.cache, candidate))
        try:
            known = await probe.load()
        except BaseException:
            await probe.close()
            raise
        if known is not None:
            self._use(known)
        if at_once:
            self.health.probe_wanted.set()
        self._lasting = [
            self._start(probe.note_sent()),
            self._start(self._probe(probe, self._parts.thresholds.check_s)),
        ]

    def ask_again(self) -> None:
        """Probe the provider now if it fails or its fallback is used, and send what waits for it."""
        self.health.retry_after_refusal()
        if self.health.reason is not None or self.health.now.left is not None:
            self.health.probe_wanted.set()
        if self.queue is not None:
            self.queue.ask_again()

    async def close(self) -> None:
        """Close queues and connections, and cancel requests in flight."""
        self.health.close()
        if self.questions is not None:
            self.questions.close()
        await _end([*self._work, *self._lasting])
        provider = self.candidate if self.provider is None else self.provider
        if not isinstance(provider, ProviderSpec):
            await provider.close()

    # --- probes

    async def _probe(self, probe: "ModelProbe | _LocalProbe", check_s: float | None) -> None:
        """Probe until cancelled, beginning when a probe is wanted for the first time."""
        task = BackgroundTask(
            f"probing the embedding provider {self.name}",
            partial(self._keep_probing, probe, check_s),
            self.health.probe_wanted.wait,
        )
        try:
            await self._parts.background.keep(task)
        finally:
            await probe.close()

    async def _keep_probing(self, probe: "ModelProbe | _LocalProbe", check_s: float | None) -> None:
        """Probe when it is wanted, with backoff after failures, and every `check_s` seconds."""
        wanted, health = self.health.probe_wanted, self.health
        failures = 0
        while True:
            wanted.clear()
            try:
                with failures_of(self.name):
                    found = self._untaken = await probe.ask() or self._untaken
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
                    self._untaken = None
                health.probe_answered()
                wait_s = min((one for one in (check_s, health.returns_in_s) if one is not None), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await wanted.wait()

    def _wait_s(self, failures: int, failure: MemdError) -> float | None:
        """Return the seconds until the next probe; None: it waits until a probe is wanted."""
        if not isinstance(failure, EmbedUnavailable):
            return None
        cap_s = PROBE_CAP_S if self.health.now.left is None else self._parts.thresholds.ask_s
        wait_s = delay_s(failures, self._parts.rng, first_s=FIRST_WAIT_S, cap_s=cap_s)
        return max(wait_s, min(failure.retry_after_s or 0.0, cap_s))

    async def _replace(self, provider: Provider) -> None:
        """Replace the provider: its model is known only now, or has changed."""
        before = len(self._work)
        self._use(provider)
        ended, self._work = self._work[:before], self._work[before:]
        await _end(ended)

    def _use(self, provider: Provider) -> None:
        if self.questions is not None:
            self.questions.close()
        self.provider = provider
        self.health.begin_anew()
        self.questions = QuestionQueue(provider, self.health)
        self.queue = queue = self._queue(provider)
        self._work.append(self._start(queue.run()))
        if isinstance(self.candidate, ProviderSpec):
            from memd.embedding.run_batch_jobs import CachedBatchJobs, SharedBatchJobs  # noqa: PLC0415
            from memd.providers.remote.provider import RemoteProvider  # noqa: PLC0415  # likewise

            assert isinstance(provider, RemoteProvider)
            jobs = CachedBatchJobs(
                self.candidate,
                provider.identity,
                self._parts.cache,
                self._settings.remote.batch,
                queue,
                self._parts.rng,
                self._parts.jobs.setdefault(queue.known.space, SharedBatchJobs()),
                provider.bias,
            )
            self._work.append(self._start(jobs.run()))
        self._parts.changes.notify()

    def _queue(self, provider: Provider) -> EmbeddingQueue:
        is_paid_for = isinstance(self.candidate, ProviderSpec)
        cache = self._parts.cache
        return EmbeddingQueue(
            provider,
            cache,
            self._parts.bound,
            self.health,
            confirm_above=self._settings.remote.confirm_above_chunks if is_paid_for else None,
            in_flight=self._parts.in_flight.setdefault(space_of(provider.identity), InFlight()),
        )

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._parts.tasks.create_task(work)


class _LocalProbe:
    """Probes a local provider, whose model is known, by a question."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def ask(self) -> None:
        """Embed a question.

        Raises:
            EmbedUnavailable: the provider failed.
        """
        await self._provider.embed_query("warm-up")

    async def close(self) -> None:
        """Do nothing, since nothing is open."""


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
