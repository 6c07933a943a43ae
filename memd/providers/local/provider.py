"""The local provider: the bundled model embeds passages in a worker process, and questions on a thread."""

import asyncio
import hashlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np
import structlog

from memd.providers.local import bundled_model
from memd.providers.local.bundled_model import fit
from memd.providers.local.process import WorkerDied, WorkerProcess
from memd.providers.local.query_thread import QueryThread
from memd.providers.provider import (
    Calibration,
    EmbedRejected,
    EmbedUnavailable,
    Identity,
    ProviderLimits,
    Vector,
    Vectors,
)
from memd.runtime.timers import Backoff

log = structlog.get_logger()

# The usual cosine of a question and an unrelated text of the other language, and the cosine from which on a text is worth reading:
# the latter chosen so that the scores are those of the model before its vectors were joined with others, where .25 was best.
CALIBRATION = Calibration.where(0.0, 0.21)

# Less than a second of work on two cores: as much may be lost when a request is interrupted.
LIMITS = ProviderLimits(tokens=3200, texts=1000, concurrency=1)
IDLE_S = 60.0
START_TIMEOUT_S = 180.0  # long, as the model is read only while no other program uses the disk
# Several hundred times what four texts take on two idle cores. Beside busy programs the worker gets a small share
# of them: a text then took ten seconds where 0.1 is usual.
TIMEOUT_S = 120.0
TIMEOUT_S_PER_BYTE = 0.05
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
DEATHS = 2  # a text on which so many workers died is refused
# Texts that the worker is given at once, and their bytes together. A short request waits for as much of a long one.
TOGETHER = 4
BYTES_TOGETHER = bundled_model.PASSAGE_BYTES

# -P: a directory named memd in the daemon's working directory must not be imported.
COMMAND = (sys.executable, "-P", "-m", "memd.providers.local.worker")


class QuestionEmbedder(Protocol):
    """Embeds questions."""

    def query(self, text: str) -> Vector:
        """Return the vector of a question, of shape (dimensions,)."""
        ...


class LocalProvider:
    """Embeds with the bundled model."""

    def __init__(
        self,
        installed: bundled_model.InstalledModel,
        rng: Random,
        *,
        command: Sequence[str] = COMMAND,
        idle_s: float = IDLE_S,
        timeout_s: float = TIMEOUT_S,
        first_wait_s: float = FIRST_WAIT_S,
        questions: QueryThread[QuestionEmbedder] | None = None,
    ) -> None:
        """Create the provider; the first request starts the worker and loads the model.

        Args:
            installed: The result of bundled_model.find().
            rng: Source of the jitter between two starts of the worker.
            command: Starts a worker that speaks memd.providers.local.protocol.
            idle_s: The worker is stopped after so many seconds without work, to free its memory.
            timeout_s: A worker that does not answer for TOGETHER texts within this time, plus a little for each
                byte, is killed.
            first_wait_s: The longest wait before a restart of the worker after its first death.
            questions: Embeds questions; None: the bundled model does.
        """
        self._version = installed.version
        self._identity = _identity(installed)
        self._command = tuple(command)
        self._idle_s = idle_s
        self._timeout_s = timeout_s
        # Held for some texts at a time, so that a short request need not wait for all of a long one.
        self._lock = asyncio.Lock()
        self._worker: WorkerProcess | None = None
        # Between starts of the worker.
        self._backoff = Backoff(rng, first_s=first_wait_s, cap_s=LONGEST_WAIT_S)
        self._reason = ""  # of the last failure
        self._not_before = 0.0  # loop time before which no worker is started
        self._deaths: dict[bytes, int] = {}  # hash of a text -> number of workers that died on it alone
        self._suspects: set[bytes] = set()  # hashes of texts of groups that a worker died on: they go alone
        self._retirement: asyncio.TimerHandle | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._questions = questions or QueryThread(bundled_model.load)
        self._closed = False

    @property
    def identity(self) -> Identity:
        """The space of the vectors: the model's file, its package's version, and the dimensions."""
        return self._identity

    @property
    def calibration(self) -> Calibration:
        """The calibration of this model's cosines."""
        return CALIBRATION

    @property
    def limits(self) -> ProviderLimits:
        """A second of work per call, and one call at a time, as there is one worker."""
        return LIMITS

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker; None if it is not running."""
        return None if self._worker is None or self._worker.ended else self._worker.pid

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents in the worker process.

        Of a text longer than PASSAGE_BYTES only the beginning is embedded. A cancelled call has no effect on
        the provider.

        Raises:
            EmbedUnavailable: the worker died or does not start; a later call starts it again.
            EmbedRejected: two workers died on this text alone, now or earlier in this process, or its vector is
                unusable.
        """
        for index, text in enumerate(texts):
            if self._deaths.get(_key(text), 0) >= DEATHS:
                raise EmbedRejected(index, f"{DEATHS} embedding workers died on this text")
        rows = np.empty((len(texts), bundled_model.DIMENSIONS), np.float32)
        done = 0
        try:
            while done < len(texts):
                some = texts[done : done + self._together(texts, done)]
                async with self._lock:
                    vectors = await self._passages(done, some)
                for vector in vectors:
                    rows[done] = _usable(done, vector)
                    done += 1
        except (EmbedUnavailable, EmbedRejected) as failure:
            failure.vectors = dict(enumerate(rows[:done]))  # each took its time
            raise
        return rows

    def _together(self, texts: Sequence[str], begin: int) -> int:
        """Return how many texts, from one on, are embedded at once."""
        size = 0
        for count, text in enumerate(texts[begin : begin + TOGETHER]):
            size += len(fit(text, bundled_model.PASSAGE_BYTES).encode())
            if count and (size > BYTES_TOGETHER or _key(text) in self._suspects):
                return count
            if _key(text) in self._suspects:
                return 1
        return min(TOGETHER, len(texts) - begin)

    async def embed_query(self, text: str) -> Vector:
        """Embed a question on a thread of its own; the first call loads the model, in about 20 ms.

        Of a text longer than QUERY_BYTES only the beginning is embedded.

        Raises:
            EmbedUnavailable: the model cannot be loaded, or is stuck in another question, or the provider is
                closed.
        """
        self._refuse_when_closed()
        vector = bundled_model.unit(await self._questions.ask(lambda model: model.query(text)))
        if vector is None:
            raise EmbedUnavailable("The bundled model gave no usable vector for this question.")
        return vector

    async def close(self) -> None:
        """Stop the worker within about a second; a question in progress runs to its end."""
        self._closed = True
        self._stay_awake()
        if self._worker is not None:
            await self._worker.stop()
        async with self._lock:  # a request in progress has failed by now
            if self._worker is not None:
                await self._worker.stop()
                self._worker = None
        if self._retiring is not None:
            await self._retiring
        self._questions.forget()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise EmbedUnavailable("The embedding provider is closed.")

    async def _passages(self, index: int, texts: Sequence[str]) -> Vectors:
        """Embed texts at once; the first has this index among those of its request.

        Raises:
            EmbedUnavailable, EmbedRejected: see embed_passages.
        """
        self._stay_awake()
        heads = [fit(text, bundled_model.PASSAGE_BYTES) for text in texts]
        timeout_s = self._timeout_s + TIMEOUT_S_PER_BYTE * sum(len(head.encode()) for head in heads)
        try:
            worker = await self._running_worker()
            vectors = await worker.embed(heads, timeout_s)
        except WorkerDied as death:
            raise self._blame(death, index, texts) from death
        finally:
            self._rest()
        self._backoff.reset()
        for key in map(_key, texts) if self._deaths or self._suspects else ():
            self._deaths.pop(key, None)
            self._suspects.discard(key)
        return vectors

    async def _running_worker(self) -> WorkerProcess:
        """Return a worker that has loaded the model.

        Raises:
            EmbedUnavailable: there is none, and no text is the cause.
        """
        self._refuse_when_closed()
        try:
            if self._worker is None or self._worker.ended:
                self._wait_out()
                self._worker = await WorkerProcess.start(self._command)
                log.info("embed.worker_started", pid=self._worker.pid)
            ready = await self._worker.greeting(START_TIMEOUT_S)
        except OSError as failure:
            raise self._unavailable(f"does not start ({failure})") from failure
        except WorkerDied as death:
            raise self._unavailable(str(death)) from death
        if (ready.version, ready.dimensions) != (self._version, bundled_model.DIMENSIONS):
            await self._worker.stop()
            raise self._unavailable(
                f"has {ready.version} where this daemon has {self._version}: restart memd"
            )
        return self._worker

    def _wait_out(self) -> None:
        wait_s = self._not_before - asyncio.get_running_loop().time()
        if wait_s > 0:
            raise EmbedUnavailable(
                f"The embedding worker {self._reason}. It is started again in {wait_s:.1f} s."
            )

    def _blame(self, death: WorkerDied, index: int, texts: Sequence[str]) -> EmbedUnavailable | EmbedRejected:
        unavailable = self._unavailable(str(death))
        if not death.by_itself or self._closed:
            return unavailable
        if len(texts) > 1:
            self._suspects.update(map(_key, texts))
            return unavailable
        key = _key(texts[0])
        deaths = self._deaths[key] = self._deaths.get(key, 0) + 1
        if deaths < DEATHS:
            return unavailable
        return EmbedRejected(index, f"{deaths} embedding workers died on this text; the last one {death}")

    def _unavailable(self, reason: str) -> EmbedUnavailable:
        if self._closed:
            return EmbedUnavailable("The embedding provider is closed.")
        wait_s = self._backoff.failed()
        self._not_before = asyncio.get_running_loop().time() + wait_s
        self._reason = reason
        log.warning(
            "embed.worker_failed", reason=reason, failures=self._backoff.failures, wait_s=round(wait_s, 2)
        )
        return EmbedUnavailable(f"The embedding worker {reason}.")

    def _stay_awake(self) -> None:
        if self._retirement is not None:
            self._retirement.cancel()
            self._retirement = None

    def _rest(self) -> None:
        if not self._closed:
            self._stay_awake()
            self._retirement = asyncio.get_running_loop().call_later(self._idle_s, self._retire)

    def _retire(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and not worker.ended:
            self._retiring = asyncio.get_running_loop().create_task(worker.stop())
            log.info("embed.worker_retired", pid=worker.pid, idle_s=self._idle_s)


def build(model: str, rng: Random, state: Path | None = None) -> LocalProvider:
    """Return the local provider, neither started nor loaded.

    Args:
        model: The configured model; empty for the default.
        rng: Source of the jitter between two starts of the worker.
        state: The state directory, where a part of the model is unpacked; None: into memory.

    Raises:
        ModelMissing: the model is not installed, or another one is configured.
    """
    if model not in {"", bundled_model.MODEL, bundled_model.FORMER_MODEL}:
        raise bundled_model.ModelMissing(
            f"The local provider has one model, {bundled_model.MODEL}; it does not have {model!r}. "
            'Set model = "" or name another provider.'
        )
    return LocalProvider(
        bundled_model.find(),
        rng,
        command=COMMAND if state is None else (*COMMAND, str(state)),
        questions=QueryThread(partial(bundled_model.load, state=state)),
    )


def _identity(installed: bundled_model.InstalledModel) -> Identity:
    shapes = f"{installed.version}\n{bundled_model.FILE}\n{bundled_model.DIMENSIONS}\n"
    trained = (bundled_model.TUNING_FILE, bundled_model.JOINING_FILE)
    training = b"".join(bundled_model.beside(name).read_bytes() for name in trained)
    key = hashlib.sha256(shapes.encode() + training).hexdigest()[:16]
    return Identity("local", bundled_model.MODEL, key, bundled_model.DIMENSIONS)


def _usable(index: int, vector: Vector) -> Vector:
    unit = bundled_model.unit(vector)
    if unit is None:
        raise EmbedRejected(index, "the bundled model gave no usable vector for this text")
    return unit


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
