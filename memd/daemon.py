"""The composition root: builds every part, starts them in order, and stops them in the reverse."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import partial
from pathlib import Path
from random import Random

import structlog
import uvloop

from memd import VERSION
from memd.agent.agents import Agents
from memd.agent.build import build_agent, keep
from memd.agent.supervisor import AgentSupervisor
from memd.backends.backend import BackendEnvironment
from memd.config.load import ConfigError, load, location
from memd.config.reload import Configuration, stamp_of
from memd.config.settings import Config
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.registry import Choose, ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.errors import FatalError
from memd.maintenance.loop import BackgroundTask, BackgroundTasks
from memd.memory_limit.enforce import MemoryLimit, ProcessMemory
from memd.providers.choose import choose_here
from memd.rebuild.build_and_swap import discard_all
from memd.runtime import logs, process, safe_traceback, sd_notify
from memd.runtime.installed_code import run_anew
from memd.runtime.log_file import LogFile
from memd.runtime.process import SignalAction, Signals, learn_types
from memd.runtime.threads import ResourceShortage
from memd.server import listening_socket
from memd.server.acceptor import answering, most_agents
from memd.server.handlers import Handlers
from memd.server.lock import sole_daemon
from memd.server.requests.control import DaemonControl
from memd.server.requests.status import ProcessFacts, notify_manager
from memd.store.embedding_cache import EmbeddingStore

log = structlog.get_logger()

THRESHOLDS = FallbackThresholds()
RELOAD_AGAIN_S = 1.0  # delay before a reload is retried for which the process lacked resources


def main(
    *, config: Path | None, state_dir: Path | None, socket: Path | None, choose: Choose | None = None
) -> int:
    """Run the daemon until SIGTERM or SIGINT; return the exit status.

    Args:
        config: The configuration file given on the command line; None: as the environment or else the
            platform says.
        state_dir: The state directory; None: likewise.
        socket: The path of the socket; None: likewise.
        choose: Chooses the embedding providers; None: as the settings and the environment say.
    """
    process.prepare()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    logs.configure(
        "info", sys.stderr, terminal=terminal, color=logs.wants_color(os.environ, terminal=terminal)
    )
    safe_traceback.handle_uncaught(process.log_uncaught)
    process.settle_time_zone(os.environ)
    try:
        places = process.find_places(config, state_dir, socket)
        ended = uvloop.run(
            serve(
                places,
                os.environ,
                choose or partial(choose_here, state=places.state),
                on_stop=process.bound_stop_time,
            ),
            loop_factory=process.DaemonEventLoop,
        )
    except (Exception, BaseExceptionGroup) as failure:  # noqa: BLE001 - top level: the failure is logged, or printed in one line
        return process.report_end(failure)
    if ended is SignalAction.RESTART:
        run_anew()
    return 0


async def serve(
    places: process.DaemonPlaces,
    environ: MutableMapping[str, str],
    choose: Choose,
    *,
    on_stop: Callable[[SignalAction], None] | None = None,
    thresholds: FallbackThresholds = THRESHOLDS,
) -> SignalAction:
    """Start everything in order, serve until a signal, and stop in the reverse order; return the action to take.

    Args:
        places: The daemon's paths.
        environ: The process's environment; variables of the service manager are removed.
        choose: Chooses the embedding providers.
        on_stop: Called as soon as a signal asks for a stop or restart.
        thresholds: When providers count as failed.

    Raises:
        FatalError: the daemon cannot run, and the message says why; or another version shall run, which the
            service manager starts.
    """
    learn_types()
    asyncio.get_running_loop().set_exception_handler(process.callback_failed)
    notifier = sd_notify.Notifier(environ)
    given = listening_socket.given(environ, places.socket)
    # Before the file is read: a reload that is requested meanwhile must come after it.
    signals = Signals(asyncio.get_running_loop(), on_stop)
    config = load(places.config, environ, Path.home())
    logs.set_level(config.daemon.log_level)
    agents = Agents()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(sole_daemon(places.state, places.socket))
        # Only now: a process that did not get the lock must not rotate the log of the one that has it.
        logs.before_each(LogFile(places.state / "memd.log").tend)
        discard_all(places.state / "agents")
        embeddings = EmbeddingStore(places.state / "embeddings.sqlite")
        await embeddings.open()
        stack.push_async_callback(embeddings.close)
        async with asyncio.TaskGroup() as tasks:
            background = BackgroundTasks(None, Random())
            saving = tasks.create_task(
                background.keep(BackgroundTask("saving vectors to the cache", embeddings.run))
            )
            registry = ProviderRegistry(
                ProviderParts(embeddings, tasks, Random(), thresholds, background=background), choose
            )
            environment = BackendEnvironment(environ, Path.home())
            limit = MemoryLimit(agents, ProcessMemory(registry))
            limit.follow(config.daemon.memory_limit_mb)
            supervisor = AgentSupervisor(
                agents,
                registry,
                tasks,
                # With a limit, vectors are loaded later, when it is known how much memory is left.
                lambda *parts: build_agent(places.state, environment, *parts, resident=not limit.is_set),
                keep,
                most_agents(process.open_files()),
            )
            await supervisor.follow(config)
            limiting = tasks.create_task(
                background.keep(BackgroundTask("keeping to the memory limit", limit.run))
            )
            configuration = _configuration(places, environ, config, supervisor, limit)
            reload = partial(_reload, configuration, supervisor, registry, notifier)
            following = tasks.create_task(configuration.run())
            facts = ProcessFacts(
                VERSION, places.socket, configuration, cache=embeddings, memory=limit, background=background
            )
            control = DaemonControl(stop=partial(signals.want, SignalAction.STOP), reload=reload)
            handlers = Handlers(agents, facts, control)
            async with (
                answering(places.socket, given, handlers, agents, tasks, background),
                _noticing_upgrades(signals, tasks, background),
            ):
                informing = partial(notify_manager, notifier, agents, sd_notify.watchdog_interval_s(environ))
                manager = tasks.create_task(
                    background.keep(BackgroundTask("informing the service manager", informing, is_once=True))
                )
                notifier.ready()
                log.info(
                    "daemon.started", version=VERSION, socket=str(places.socket), agents=sorted(config.agents)
                )
                action = await until_stopped(signals, reload)
                notifier.stopping()
                log.info("daemon.stopping")
                manager.cancel()
                saving.cancel()
                limiting.cancel()
                async with configuration.unchanged():
                    following.cancel()
                    await handlers.close()
            await supervisor.close()
            await registry.close()
    log.info("daemon.stopped")
    return process.ended(action, is_managed=notifier.is_heard or given is not None)


@contextlib.asynccontextmanager
async def _noticing_upgrades(
    signals: Signals, tasks: asyncio.TaskGroup, background: BackgroundTasks
) -> AsyncIterator[None]:
    noticing = BackgroundTask("noticing an upgrade", partial(process.upgraded, signals), is_once=True)
    task = tasks.create_task(background.keep(noticing))
    try:
        yield
    finally:
        task.cancel()


async def until_stopped(signals: Signals, reload: Callable[[], Awaitable[object]]) -> SignalAction:
    """Reload on each signal that asks for it; return the action that ends the daemon."""
    is_put_off = False
    while (action := await signals.next()) is SignalAction.RELOAD:
        try:
            await reload()
        except ResourceShortage as failure:
            if not is_put_off:
                log.warning("config.reload_put_off", reason=str(failure))
            is_put_off = True
            asyncio.get_running_loop().call_later(RELOAD_AGAIN_S, signals.want, SignalAction.RELOAD)
            continue
        except ConfigError:
            pass  # the status and the log show it
        except FatalError:
            raise
        except Exception:
            log.exception("config.reload_failed")
        is_put_off = False
    return action


def _configuration(
    places: process.DaemonPlaces,
    environ: MutableMapping[str, str],
    config: Config,
    supervisor: AgentSupervisor,
    limit: MemoryLimit,
) -> Configuration:
    """Return the configuration in force, which applies new versions to the log, the memory limit and the agents."""

    async def apply(_: Config, new: Config) -> None:
        logs.set_level(new.daemon.log_level)
        limit.follow(new.daemon.memory_limit_mb)
        await supervisor.follow(new)

    home = Path.home()
    file, _ = location(places.config, environ, home)
    return Configuration(config, partial(load, places.config, environ, home), partial(stamp_of, file), apply)


async def _reload(
    configuration: Configuration,
    supervisor: AgentSupervisor,
    registry: ProviderRegistry,
    notifier: sd_notify.Notifier,
) -> tuple[str, ...]:
    """Apply the configuration file, follow links, and retry providers that refused; return the settings that have changed.

    Raises:
        ConfigError: the file is invalid.
    """
    notifier.reloading()
    try:
        changed = await configuration.reload()
        await supervisor.resolve_again()
        await registry.renew()
    finally:
        notifier.ready()
    return changed
