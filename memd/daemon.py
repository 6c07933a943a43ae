"""The composition root: builds every part, starts them in order, and stops them in the reverse."""

import asyncio
import contextlib
import errno
import gc
import os
import re
import resource
import signal
import socket as socketlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import structlog
import uvloop

from memd.agent.agents import Agents, RunningAgent
from memd.agent.supervisor import AgentSupervisor
from memd.backends.backend import BackendEnvironment, IndexedAgent
from memd.backends.builtin import Builtin
from memd.backends.choice import choose_backend
from memd.config.load import ConfigError, load, location
from memd.config.reload import Configuration, stamp_of
from memd.config.settings import AgentSettings, Config
from memd.embedding.fallback_state import FallbackThresholds
from memd.embedding.registry import AgentProviders, Choose, ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.errors import FatalError, MemdError
from memd.index_service import WATCHING, IndexService, index_parts
from memd.indexing.changes.pending import PendingChanges
from memd.indexing.changes.periodic_scan import scan_now_and_then
from memd.indexing.changes.poll import look_by_scan
from memd.indexing.changes.watch_changes import follow
from memd.indexing.rules import treatment_of
from memd.maintenance.loop import BackgroundTask
from memd.memory_limit.limit import MemoryLimit
from memd.providers.api_keys.key_file import read_small, with_credentials
from memd.providers.api_keys.logins import ChoiceInputs
from memd.providers.choose import ProviderChoice, choose
from memd.rebuild.build_and_swap import discard_all
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.runtime import logs, safe_traceback, sd_notify
from memd.runtime.debounce import Debouncer
from memd.runtime.log_file import LogFile
from memd.runtime.msgspec_warmup import learn_types
from memd.runtime.signals import SignalAction, Signals
from memd.runtime.threads import ResourceShortage, Threads
from memd.runtime.ticks import until_beat_s
from memd.search.searcher import Searcher
from memd.server import listener
from memd.server.acceptor import Acceptor, most_agents, most_connections
from memd.server.connection import Connection
from memd.server.handlers import Handlers
from memd.server.requests.control import DaemonControl
from memd.server.single_instance import sole_daemon
from memd.server.status.report import ProcessFacts
from memd.sources.roots import roots_as_written, roots_of
from memd.store.embeddings import EmbeddingStore
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, usable_part, why_rebuild, with_vectors, without_vectors
from memd.text.memory_paths import Root
from memd.version import VERSION
from memd.watch.watcher import WatcherHealth, watch
from memd_client import paths

log = structlog.get_logger()

COLLECT = (
    20_000,
    20,
    50,
)  # what a daemon makes and drops has few circles in it: Python's 700 would look for them all the time
SWITCH_S = 0.0005  # a thread computes for so long, at most, while others wait for their turn
OPEN_FILES = 10_240  # what macOS allows at most
ROOTS_S = 1.0  # for which the start of an agent waits for its disk
PATIENCE = FallbackThresholds()
LOOKUPS = 4  # of hosts at a time: a resolver may not answer for many seconds
LOOK_S = 1.0  # between two looks whether the socket has its file
STOP_S = 1.5  # from the signal to the end, at most
SOFTWARE_FAILED = 70  # sysexits: EX_SOFTWARE


class DaemonEventLoop(uvloop.Loop):
    """The event loop, which has names of hosts looked up on threads of memd's own.

    libuv starts threads for that at the first look-up, and ends the process where it cannot
    (https://docs.libuv.org/en/v1.x/threadpool.html).
    """

    def __init__(self) -> None:
        super().__init__()
        self._lookups = Threads(LOOKUPS, "memd-lookup")

    async def getaddrinfo(
        self,
        host: str | bytes | None,
        port: str | bytes | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - the name is asyncio's
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Like that of any loop; an OSError where no thread can be started."""
        try:
            return await self._lookups.run(socketlib.getaddrinfo, host, port, family, type, proto, flags)
        except ResourceShortage as failure:
            raise OSError(errno.EAGAIN, str(failure)) from failure


class DaemonPlaces(msgspec.Struct, frozen=True):
    """Where this daemon finds and keeps things."""

    config: Path | None  # None: the usual place, where there need not be a file
    state: Path
    socket: Path


def main(
    *, config: Path | None, state_dir: Path | None, socket: Path | None, choose: Choose | None = None
) -> int:
    """Run until SIGTERM or SIGINT; the exit status.

    Args:
        config: From the command line; None: the environment decides, then the platform.
        state_dir: Likewise.
        socket: Likewise.
        choose: Makes the embedding providers; None: what the settings and the environment say.
    """
    _leave_the_loop_room()
    _allow_open_files()
    _leave_no_core()
    os.umask(0o077)  # what memd writes holds memory: it is its user's alone, wherever the state directory is
    terminal = sys.stderr is not None and sys.stderr.isatty()
    logs.configure(
        "info", sys.stderr, terminal=terminal, color=logs.wants_color(os.environ, terminal=terminal)
    )
    safe_traceback.catch_strays(_stray_failed)
    try:
        places = _places(config, state_dir, socket)
        uvloop.run(
            serve(places, os.environ, choose or _choose_here, on_stop=_end_in_time),
            loop_factory=DaemonEventLoop,
        )
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
    except Exception as failure:
        # The top. Python itself would write all its words to stderr.
        log.critical("daemon.failed", exc_info=failure)
        return SOFTWARE_FAILED
    return 0


def _stray_failed(place: str, failure: BaseException) -> None:
    log.error("daemon.stray_failed", place=place, exc_info=failure)


def _callback_failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody awaited. Its message ends in the repr of what was called, which holds what it was called with."""
    what = re.split(r"[(<\n]", str(context.get("message", "")), maxsplit=1)[0].strip()
    log.error("daemon.callback_failed", what=what, exc_info=context.get("exception"))


def _choose_here(settings: AgentSettings) -> ProviderChoice:
    """The provider that the settings mean, with the keys of this process's user."""
    return choose(settings, ChoiceInputs(with_credentials(os.environ, read_small), Path.home(), read_small))


def _leave_the_loop_room() -> None:
    """Let no thread, and not the garbage collector, keep the event loop waiting for longer than it must.

    With several searches at work on threads, the loop waits for its turn behind each; and a collection goes through all
    that was imported, for 30 ms, to find that it is still there.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)
    gc.collect()
    gc.freeze()


def _allow_open_files() -> None:
    """Have as many files open as the system lets this user: an agent has about ten, and the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _leave_no_core() -> None:
    """Have a crash leave no core file: it would hold notes and keys, in a directory that others may read.

    Only the soft limit: whoever hunts a crash raises it with prlimit(1). The worker and qmd inherit it. The process stays
    open to a debugger of its user, who can read the notes anyway.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _open_files() -> int:
    """How many files the process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def _end_in_time() -> None:
    """See to it that the process ends soon, whatever its threads are at.

    A thread that cuts a monstrous file, or waits for a dead network mount, cannot be interrupted, and Python would wait
    for it. Nothing is lost with it: what is not written yet is done at the next start.
    """
    deadline = threading.Timer(STOP_S, os._exit, (0,))
    deadline.daemon = True
    try:
        deadline.start()
    except RuntimeError:  # no thread is to be had: then the kernel ends it, by SIGALRM
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, STOP_S)


async def serve(
    places: DaemonPlaces,
    environ: MutableMapping[str, str],
    choose: Choose,
    *,
    on_stop: Callable[[], None] | None = None,
    patience: FallbackThresholds = PATIENCE,
) -> None:
    """Start everything in order, answer until a signal, stop everything in the reverse order.

    Args:
        places: Where everything is.
        environ: Of the process; what speaks of its service manager is taken out.
        choose: Makes the embedding providers.
        on_stop: Called as soon as a signal asks for the end.
        patience: With providers that do not answer.

    Raises:
        FatalError: it cannot run here, and says why.
    """
    learn_types()
    asyncio.get_running_loop().set_exception_handler(_callback_failed)
    notifier = sd_notify.Notifier(environ)
    given = listener.given(environ, places.socket)
    # Listening first: a reload that is wished for while the file is read is one of what it says afterwards.
    signals = Signals(asyncio.get_running_loop(), on_stop)
    config = load(places.config, environ, Path.home())
    logs.set_level(config.daemon.log_level)
    agents = Agents()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(sole_daemon(places.state, places.socket))
        # From here on: a process that could not have the lock must not give another's log a new name.
        logs.before_each(LogFile(places.state / "memd.log").tend)
        discard_all(places.state / "agents")
        embeddings = EmbeddingStore(places.state / "embeddings.sqlite")
        await embeddings.open()
        stack.push_async_callback(embeddings.close)
        async with asyncio.TaskGroup() as tasks:
            saving = tasks.create_task(embeddings.run())
            engines = ProviderRegistry(ProviderParts(embeddings, tasks, Random(), patience), choose)
            # Whose work waits for nothing: more at a time than processors would only keep the event loop from its turn.
            computing = Threads(os.cpu_count() or 1, "memd-compute")
            around = BackendEnvironment(environ, Path.home())
            limit = MemoryLimit(
                lambda: {agent.id: agent.index.vectors for agent in agents.all().values()},
                lambda: engines.worker_pids,
            )
            limit.follow(config.daemon.memory_limit_mb)
            fleet = AgentSupervisor(
                agents,
                engines,
                tasks,
                # Below a limit, whether there is room for vectors is known only when all else is there.
                lambda *parts: build_agent(
                    places.state, computing, around, *parts, resident=not limit.is_set
                ),
                keep,
                most_agents(_open_files()),
            )
            await fleet.follow(config)
            limiting = tasks.create_task(limit.run())
            configuration = _configuration(places, environ, config, fleet, limit)
            reload = partial(_reload, configuration, engines, notifier)
            following = tasks.create_task(configuration.run())
            facts = ProcessFacts(VERSION, places.socket, configuration, cache=embeddings, memory=limit)
            control = DaemonControl(stop=partial(signals.want, SignalAction.STOP), reload=reload)
            handlers = Handlers(agents, facts, control)
            async with _listening(places.socket, given, handlers, agents, tasks):
                manager = tasks.create_task(
                    _tell_manager(notifier, agents, sd_notify.watchdog_interval_s(environ))
                )
                notifier.ready()
                log.info(
                    "daemon.started", version=VERSION, socket=str(places.socket), agents=sorted(config.agents)
                )
                await _until_stopped(signals, reload)
                notifier.stopping()
                log.info("daemon.stopping")
                manager.cancel()
                saving.cancel()
                limiting.cancel()
                async with configuration.unchanged():
                    following.cancel()
                    await handlers.close()
            await fleet.close()
            await engines.close()
    log.info("daemon.stopped")


async def _until_stopped(signals: Signals, reload: Callable[[], Awaitable[object]]) -> None:
    is_put_off = False
    while await signals.next() is SignalAction.RELOAD:
        try:
            await reload()
        except ConfigError:
            is_put_off = False  # status and the log tell
        except ResourceShortage as failure:
            if not is_put_off:
                log.warning("config.reload_put_off", reason=str(failure))
            is_put_off = True
            asyncio.get_running_loop().call_later(LOOK_S, signals.want, SignalAction.RELOAD)
        except FatalError:
            raise
        except Exception:
            is_put_off = False
            log.exception("config.reload_failed")
        else:
            is_put_off = False


async def build_agent(
    state: Path,
    computing: Threads,
    around: BackendEnvironment,
    agent_id: str,
    settings: AgentSettings,
    supply: AgentProviders,
    *,
    resident: bool = True,
) -> RunningAgent:
    """Open one agent's index, decide whether it can serve as it is, and wire up what works on it.

    Args:
        state: Directory of what memd keeps.
        computing: Threads that all agents share.
        around: What other engines are started in.
        agent_id: Its name.
        settings: Of the agent.
        supply: What embeds for it.
        resident: Whether its vectors are to be in memory.

    Raises:
        StoreUnavailable, StoreDamaged, StoreNewer: it cannot be opened now.
    """
    index = Index(state / "agents" / f"{agent_id}.sqlite", resident=resident)
    try:
        return await _built_on(index, state, computing, around, agent_id, settings, supply)
    except BaseException:  # another attempt opens it again
        await index.close()
        raise


async def _built_on(
    index: Index,
    state: Path,
    computing: Threads,
    around: BackendEnvironment,
    agent_id: str,
    settings: AgentSettings,
    supply: AgentProviders,
) -> RunningAgent:
    wanted = wanted_fingerprint(settings, supply.wanted)
    rebuild = await _opened(index, wanted, embeds=supply.embeds)
    if index.space is not None:
        supply.hold(frozenset({index.space}))
        if wanted.space is None and (stored := await index.fingerprint()) is not None:
            wanted = with_vectors(wanted, stored)  # what it is to have is not known yet
    roots = await _roots(agent_id, settings, state)
    dirty = PendingChanges(
        Debouncer(
            quiet_s=settings.sync.watch_debounce_ms / 1000, cap_s=settings.sync.watch_max_wait_ms / 1000
        ),
        time.monotonic,
    )
    treatment = treatment_of(settings, roots)
    parts = index_parts(
        agent_id, settings, treatment, index, wanted, pending=dirty, spaces=supply, rng=Random()
    )
    sync = IndexService(agent_id, index, dirty, parts)
    if rebuild is not None:
        sync.rebuild(rebuild)
    searcher = Searcher(index, settings, supply, computing)
    indexed = IndexedAgent(agent_id, settings, treatment, index, sync)
    return RunningAgent(
        agent_id,
        settings,
        index=index,
        backend=choose_backend(indexed, around, Builtin(indexed, searcher, supply)),
        sync=sync,
        dirty=dirty,
        roots=roots,
        supply=supply,
    )


async def _roots(agent_id: str, settings: AgentSettings, state: Path) -> tuple[Root, ...]:
    """The roots of an agent; as they are written, where the disk that they are on does not answer."""
    try:
        async with asyncio.timeout(ROOTS_S):
            return await Threads(1, f"memd-roots-{agent_id}").run(roots_of, settings, state=state)
    except TimeoutError:
        log.warning("agent.disk_silent", agent=agent_id, waited_s=ROOTS_S)
        return roots_as_written(settings, state=state)


async def _opened(index: Index, wanted: Fingerprint, *, embeds: bool) -> str | None:
    """Open an index, with an empty one in its place if it is damaged; why its text must be cut anew, or None."""
    await index.open()
    try:
        return await _adopt(index, wanted, embeds=embeds)
    except StoreDamaged as damage:
        await index.start_over(damage)
        return await _adopt(index, wanted, embeds=embeds)


async def _adopt(index: Index, wanted: Fingerprint, *, embeds: bool) -> str | None:
    """Use an index for what it is good for; why its text must be cut anew, or None.

    Vectors of another model than the one that is wanted serve as well, until others are there.
    """
    stored = await index.fingerprint()
    if not (await index.counts()).files:
        await index.adopt(wanted)
        return None
    reason = why_rebuild(stored, without_vectors(wanted))
    usable = wanted if reason is None else usable_part(stored, wanted)
    if stored is not None and stored.space is not None:
        usable = with_vectors(usable, stored)
    await index.adopt(usable if embeds else without_vectors(usable))
    return reason


async def keep(agent: RunningAgent) -> None:
    """Everything that keeps one agent's index up to date, for ever."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.sync.run())
        for task in (
            BackgroundTask(WATCHING, partial(_follow_files, agent)),
            BackgroundTask("scanning now and then", partial(_scan_now_and_then, agent)),
        ):
            tasks.create_task(agent.sync.background.keep(task))
        tasks.create_task(agent.backend.warm())


async def _follow_files(agent: RunningAgent) -> None:
    """What changes on the disk is marked, and then the business of the passes."""

    def tell(health: WatcherHealth) -> None:
        agent.sync.watcher_trouble = None if health.ok else health.reason
        agent.sync.watcher_note = health.reason if health.ok else None

    look = look_by_scan(agent.roots, int(agent.settings.max_file_mb * 1_000_000))
    await follow(watch(agent.roots, backlog=agent.sync.backlog), agent.dirty, look, tell)


async def _scan_now_and_then(agent: RunningAgent) -> None:
    await scan_now_and_then(agent.dirty, agent.settings.sync.interval_minutes * 60)


def _configuration(
    places: DaemonPlaces,
    environ: MutableMapping[str, str],
    config: Config,
    fleet: AgentSupervisor,
    limit: MemoryLimit,
) -> Configuration:
    """What is in force, and how another configuration comes into force."""

    async def apply(_: Config, new: Config) -> None:
        logs.set_level(new.daemon.log_level)
        limit.follow(new.daemon.memory_limit_mb)
        await fleet.follow(new)

    home = Path.home()
    file, _ = location(places.config, environ, home)
    return Configuration(config, partial(load, places.config, environ, home), partial(stamp_of, file), apply)


async def _reload(
    configuration: Configuration, engines: ProviderRegistry, notifier: sd_notify.Notifier
) -> tuple[str, ...]:
    """Bring the whole file into force, and have providers that refused asked again; the settings that were not in force.

    Raises:
        ConfigError: the file cannot be used.
    """
    notifier.reloading()
    try:
        changed = await configuration.reload()
        await engines.renew()
    finally:
        notifier.ready()
    return changed


@contextlib.asynccontextmanager
async def _listening(
    path: Path, given: socketlib.socket | None, handlers: Handlers, agents: Agents, tasks: asyncio.TaskGroup
) -> AsyncIterator[None]:
    """Answer whoever connects, at a socket that the service manager has opened or at one of our own."""
    connections: set[Connection] = set()
    listening = listener.Listening(path, given)
    acceptor = Acceptor(
        listening.socket,
        lambda: Connection(handlers.of_client(), os.getuid(), VERSION, connections),
        connections,
        lambda: most_connections(_open_files(), len(agents.all())),
    )
    keeping = tasks.create_task(_keep_listening(listening, acceptor))
    try:
        yield
    finally:
        keeping.cancel()
        await acceptor.close()
        listening.remove()
        for connection in list(connections):
            connection.close()


async def _keep_listening(listening: listener.Listening, acceptor: Acceptor) -> None:
    """Bind the socket again whose file was deleted: clients would take the daemon for one that does not run."""
    said: str | None = None
    while True:
        await asyncio.sleep(until_beat_s(asyncio.get_running_loop().time(), LOOK_S))
        if not listening.is_gone():
            continue
        try:
            acceptor.listen_on(listening.bind_again())
        except listener.SocketUnusable as failure:
            if str(failure) != said:
                log.error("server.socket_gone", reason=str(failure))
            said = str(failure)
        else:
            said = None
            log.warning("server.socket_bound_again", reason="its file was deleted")


async def _tell_manager(notifier: sd_notify.Notifier, agents: Agents, watchdog_s: float | None) -> None:
    """Tell the service manager, where there is one, what goes on, and that the loop runs."""
    if not notifier.is_heard:
        return
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
        beat_s = min(watchdog_s or 2.0, 2.0)
        await asyncio.sleep(until_beat_s(asyncio.get_running_loop().time(), beat_s))


def _places(config: Path | None, state_dir: Path | None, socket: Path | None) -> DaemonPlaces:
    home = Path.home()
    state = (state_dir or paths.state_dir(os.environ, sys.platform, home)).absolute()
    at = (socket or paths.socket_file(os.environ, sys.platform, home, state=state)).absolute()
    try:
        return DaemonPlaces(config, state, paths.checked_socket(at, sys.platform))
    except paths.SocketPathTooLong as error:
        raise FatalError(str(error), exit_code=78) from error


def _first(group: BaseExceptionGroup[MemdError]) -> MemdError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _last_word(error: MemdError) -> int:
    print(f"memd: {error}", file=sys.stderr)  # noqa: T201 - for whoever started it, in a terminal or a journal
    return error.exit_code if isinstance(error, FatalError) else SOFTWARE_FAILED
