"""The composition root: builds every part, starts them in order, and stops them in the reverse."""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from pathlib import Path
from random import Random

import msgspec
import structlog
import uvloop

from memd import logs, notify
from memd.agents import Agent, Agents
from memd.backends.builtin import Builtin
from memd.chunk.markdown import LONGEST
from memd.config import AgentSettings, Config
from memd.configfile.load import ConfigError, load
from memd.embed.choose import Choice, choose
from memd.embed.provider import Identity
from memd.errors import FatalError, MemdError
from memd.fleet import Choose, Engines, Fleet
from memd.search.searcher import Searcher
from memd.server import listener
from memd.server.connection import Connection
from memd.server.handlers import Handlers
from memd.server.lock import Lock
from memd.server.report import Facts
from memd.signals import Signals, Wish
from memd.sources.roots import roots_of
from memd.store.database import StoreDamaged
from memd.store.embeddings import EmbeddingStore
from memd.store.index import Index
from memd.store.meta import CHUNKING, TOKENIZER, Fingerprint, usable_part, why_rebuild
from memd.sync.dirty import Dirty
from memd.sync.loop import SyncLoop
from memd.sync.vectors import VectorQueue
from memd.version import VERSION
from memd.watch.debounce import Debouncer
from memd.watch.watcher import Changed, Health, Rescan, watch
from memd_client import paths

log = structlog.get_logger()

STOP_S = 1.5  # from the signal to the end, at most
SOFTWARE_FAILED = 70  # sysexits: EX_SOFTWARE


class Places(msgspec.Struct, frozen=True):
    """Where this daemon finds and keeps things."""

    config: Path | None  # None: the usual place, where there need not be a file
    state: Path
    socket: Path


def main(*, config: Path | None, state_dir: Path | None, socket: Path | None, choose: Choose = choose) -> int:
    """Run until SIGTERM or SIGINT; the exit status.

    Args:
        config: From the command line; None: the environment decides, then the platform.
        state_dir: Likewise.
        socket: Likewise.
        choose: Makes the embedding providers.
    """
    os.umask(0o077)  # what memd writes holds memory: it is its user's alone, wherever the state directory is
    terminal = sys.stderr is not None and sys.stderr.isatty()
    logs.configure(
        "info", sys.stderr, terminal=terminal, color=logs.wants_color(os.environ, terminal=terminal)
    )
    try:
        uvloop.run(serve(_places(config, state_dir, socket), os.environ, choose, on_stop=_end_in_time))
    except MemdError as error:
        return _last_word(error)
    except BaseExceptionGroup as failures:
        fatal = failures.subgroup(FatalError)
        expected, bugs = failures.split(MemdError)
        if fatal is not None:
            return _last_word(_first(fatal))
        if expected is not None and bugs is None:
            return _last_word(_first(expected))
        log.critical("daemon.failed", exc_info=failures)
        return SOFTWARE_FAILED
    return 0


def _end_in_time() -> None:
    """See to it that the process ends soon, whatever its threads are at.

    A thread that cuts a monstrous file, or waits for a dead network mount, cannot be interrupted, and Python would wait
    for it. Nothing is lost with it: what is not written yet is done at the next start.
    """
    deadline = threading.Timer(STOP_S, os._exit, (0,))
    deadline.daemon = True
    deadline.start()


async def serve(
    places: Places,
    environ: MutableMapping[str, str],
    choose: Choose,
    *,
    on_stop: Callable[[], None] | None = None,
) -> None:
    """Start everything in order, answer until a signal, stop everything in the reverse order.

    Args:
        places: Where everything is.
        environ: Of the process; what speaks of its service manager is taken out.
        choose: Makes the embedding providers.
        on_stop: Called as soon as a signal asks for the end.

    Raises:
        FatalError: it cannot run here, and says why.
    """
    notifier = notify.Notifier(environ)
    config = load(places.config, environ, Path.home())
    logs.set_level(config.daemon.log_level)
    signals = Signals(asyncio.get_running_loop(), on_stop)
    agents, facts = Agents(), Facts(VERSION, places.socket, config.file)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_sole_daemon(places))
        embeddings = EmbeddingStore(places.state / "embeddings.sqlite")
        await embeddings.open()
        stack.push_async_callback(embeddings.close)
        async with asyncio.TaskGroup() as tasks:
            engines = Engines(embeddings, tasks, choose)
            fleet = Fleet(agents, engines, tasks, lambda *parts: build_agent(places.state, *parts), keep)
            await fleet.follow(None, config)
            async with _listening(places.socket, Handlers(agents, facts)):
                manager = tasks.create_task(
                    _tell_manager(notifier, agents, notify.watchdog_interval_s(environ))
                )
                notifier.ready()
                log.info(
                    "daemon.started", version=VERSION, socket=str(places.socket), agents=sorted(config.agents)
                )
                while await signals.next() is Wish.RELOAD:
                    notifier.reloading()
                    config = await _reload(places, config, environ, fleet, facts)
                    notifier.ready()
                notifier.stopping()
                log.info("daemon.stopping")
                manager.cancel()
            await fleet.close()
            await engines.close()
    log.info("daemon.stopped")


async def build_agent(
    state: Path,
    agent_id: str,
    settings: AgentSettings,
    choice: Choice,
    queue: VectorQueue | None,
) -> Agent:
    """Open one agent's index, decide whether it can serve as it is, and wire up what works on it."""
    index = Index(state / "agents" / f"{agent_id}.sqlite")
    await index.open()
    wanted = _fingerprint(settings, None if choice.provider is None else choice.provider.identity)
    try:
        rebuild = await _adopt(index, wanted)
    except StoreDamaged as damage:
        await index.start_over(damage)
        rebuild = await _adopt(index, wanted)
    roots = roots_of(settings)
    dirty = Dirty(
        Debouncer(
            quiet_s=settings.sync.watch_debounce_ms / 1000, cap_s=settings.sync.watch_max_wait_ms / 1000
        ),
        time.monotonic,
    )
    vectors = queue.known if queue is not None and settings.cache.enabled else None
    sync = SyncLoop(
        agent_id, settings, roots, index, wanted, dirty=dirty, queue=queue, vectors=vectors, rng=Random()
    )
    if rebuild is not None:
        sync.rebuild(rebuild)
    searcher = Searcher(index, settings, choice)
    backend = Builtin(index, roots, searcher, sync, int(settings.max_file_mb * 1_000_000))
    return Agent(
        agent_id,
        settings,
        index=index,
        backend=backend,
        sync=sync,
        dirty=dirty,
        roots=roots,
        choice=choice,
        queue=queue,
    )


async def _adopt(index: Index, wanted: Fingerprint) -> str | None:
    """Use an index for what it is good for; why it must be rebuilt, or None."""
    stored = await index.fingerprint()
    reason = why_rebuild(stored, wanted) if (await index.counts()).files else None
    await index.adopt(wanted if reason is None else usable_part(stored, wanted))
    return reason


def _fingerprint(settings: AgentSettings, identity: Identity | None) -> Fingerprint:
    text_part = Fingerprint(
        chunking=f"{CHUNKING}: {settings.chunking.tokens}/{settings.chunking.overlap} tokens, {LONGEST} characters",
        tokenizer=str(TOKENIZER),
        sources=tuple(sorted(settings.sources)),
    )
    if identity is None:
        return text_part
    return msgspec.structs.replace(
        text_part,
        provider=identity.provider,
        model=identity.model,
        key=identity.key,
        dimensions=identity.dimensions,
    )


async def keep(agent: Agent) -> None:
    """Everything that keeps one agent's index up to date, for ever."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.sync.run())
        tasks.create_task(_follow_files(agent))
        tasks.create_task(_scan_now_and_then(agent))


async def _follow_files(agent: Agent) -> None:
    async with contextlib.aclosing(watch(agent.roots)) as events:
        async for event in events:
            match event:
                case Changed():
                    agent.dirty.mark(event.paths)
                case Rescan():
                    agent.dirty.mark_all()
                case Health():
                    agent.sync.watcher_trouble = event.reason


async def _scan_now_and_then(agent: Agent) -> None:
    """What no watcher saw (a network mount, an overflow nobody reported) is found at the next scan."""
    interval_s = agent.settings.sync.interval_minutes * 60
    while interval_s:
        await asyncio.sleep(interval_s)
        agent.dirty.mark_all()


async def _reload(
    places: Places, config: Config, environ: MutableMapping[str, str], fleet: Fleet, facts: Facts
) -> Config:
    """The new configuration, in force; or the old one, when the new one cannot be used."""
    try:
        new = load(places.config, environ, Path.home())
    except ConfigError as error:
        facts.config_error = str(error)
        log.error("config.reload_refused", reason=str(error))
        return config
    logs.set_level(new.daemon.log_level)
    await fleet.follow(config, new)
    facts.config, facts.config_error = new.file, None
    log.info("config.reloaded", agents=sorted(new.agents))
    return new


@contextlib.contextmanager
def _sole_daemon(places: Places) -> Iterator[None]:
    """Hold the locks of the state directory and of the socket, making the directories that are missing.

    Raises:
        FatalError: another daemon holds one, or a directory cannot be made.
    """
    for directory, variable in (
        (places.state / "agents", "MEMD_STATE_DIR"),
        (places.socket.parent, "MEMD_SOCKET"),
    ):
        try:
            if not directory.is_dir():
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FatalError(
                f"cannot make {error.filename}: {error.strerror}. Set {variable} to another path.",
                exit_code=78,
            ) from error
    with contextlib.ExitStack() as stack:
        for file, what in (
            (places.state / "memd.lock", places.state),
            (places.socket.with_name(f"{places.socket.name}.lock"), places.socket),
        ):
            stack.callback(Lock(file, what).release)
        yield


@contextlib.asynccontextmanager
async def _listening(path: Path, handlers: Handlers) -> AsyncIterator[None]:
    """Answer whoever connects."""
    connections: set[Connection] = set()
    listening = listener.bind(path)
    server = await asyncio.get_running_loop().create_unix_server(
        lambda: Connection(handlers.handle, os.getuid(), VERSION, connections), sock=listening
    )
    try:
        yield
    finally:
        server.close()
        listener.remove(path)
        for connection in list(connections):
            connection.close()


async def _tell_manager(notifier: notify.Notifier, agents: Agents, watchdog_s: float | None) -> None:
    """Tell the service manager what goes on, and that the loop runs."""
    said = ""
    while True:
        indexing = [
            f"{agent.id} {agent.sync.progress[0]}/{agent.sync.progress[1]}"
            for agent in agents.all().values()
            if agent.sync.progress
        ]
        status = f"indexing {', '.join(indexing)}" if indexing else "ready"
        if status != said:
            notifier.status(status)
            said = status
        if watchdog_s is not None:
            notifier.watchdog()
        await asyncio.sleep(min(watchdog_s or 2.0, 2.0))


def _places(config: Path | None, state_dir: Path | None, socket: Path | None) -> Places:
    home = Path.home()
    state = (state_dir or paths.state_dir(os.environ, sys.platform, home)).absolute()
    at = (socket or paths.socket_file(os.environ, sys.platform, home, state=state)).absolute()
    try:
        return Places(config, state, paths.checked_socket(at, sys.platform))
    except paths.SocketPathTooLong as error:
        raise FatalError(str(error), exit_code=78) from error


def _first(group: BaseExceptionGroup[MemdError]) -> MemdError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _last_word(error: MemdError) -> int:
    print(f"memd: {error}", file=sys.stderr)  # noqa: T201 - for whoever started it, in a terminal or a journal
    return error.exit_code if isinstance(error, FatalError) else SOFTWARE_FAILED
