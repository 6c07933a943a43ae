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

PATIENCE = FallbackThresholds()
RELOAD_AGAIN_S = 1.0  # until a reload is made that the process had no means for


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
    process.prepare()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    logs.configure(
        "info", sys.stderr, terminal=terminal, color=logs.wants_color(os.environ, terminal=terminal)
    )
    safe_traceback.catch_strays(process.stray_failed)
    try:
        places = process.find_places(config, state_dir, socket)
        ended = uvloop.run(
            serve(places, os.environ, choose or choose_here, on_stop=process.end_in_time),
            loop_factory=process.DaemonEventLoop,
        )
    except (Exception, BaseExceptionGroup) as failure:  # noqa: BLE001 - the top: it is logged, or told in one line
        return process.last_word(failure)
    if ended is SignalAction.RESTART:
        run_anew()
    return 0


async def serve(
    places: process.DaemonPlaces,
    environ: MutableMapping[str, str],
    choose: Choose,
    *,
    on_stop: Callable[[SignalAction], None] | None = None,
    patience: FallbackThresholds = PATIENCE,
) -> SignalAction:
    """Start everything in order, answer until a signal, stop everything in the reverse order; whether to start again.

    Args:
        places: Where everything is.
        environ: Of the process; what speaks of its service manager is taken out.
        choose: Makes the embedding providers.
        on_stop: Called as soon as a signal asks for the end.
        patience: With providers that do not answer.

    Raises:
        FatalError: it cannot run here, and says why; or another version is to run, which the service manager starts.
    """
    learn_types()
    asyncio.get_running_loop().set_exception_handler(process.callback_failed)
    notifier = sd_notify.Notifier(environ)
    given = listening_socket.given(environ, places.socket)
    # Listening first: a reload that is requested while the file is read is one of what it says afterwards.
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
            background = BackgroundTasks(None, Random())
            saving = tasks.create_task(
                background.keep(BackgroundTask("saving vectors to the cache", embeddings.run))
            )
            registry = ProviderRegistry(
                ProviderParts(embeddings, tasks, Random(), patience, background=background), choose
            )
            environment = BackendEnvironment(environ, Path.home())
            limit = MemoryLimit(agents, ProcessMemory(registry))
            limit.follow(config.daemon.memory_limit_mb)
            supervisor = AgentSupervisor(
                agents,
                registry,
                tasks,
                # Below a limit, whether there is room for vectors is known only when all else is there.
                lambda *parts: build_agent(places.state, environment, *parts, resident=not limit.is_set),
                keep,
                most_agents(process.open_files()),
            )
            await supervisor.follow(config)
            limiting = tasks.create_task(
                background.keep(BackgroundTask("keeping to the memory limit", limit.run))
            )
            configuration = _configuration(places, environ, config, supervisor, limit)
            reload = partial(_reload, configuration, registry, notifier)
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
    """Reload whenever a signal wants it; the action that ends the daemon."""
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
            pass  # status and the log tell
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
    """What is in force, and how another configuration comes into force."""

    async def apply(_: Config, new: Config) -> None:
        logs.set_level(new.daemon.log_level)
        limit.follow(new.daemon.memory_limit_mb)
        await supervisor.follow(new)

    home = Path.home()
    file, _ = location(places.config, environ, home)
    return Configuration(config, partial(load, places.config, environ, home), partial(stamp_of, file), apply)


async def _reload(
    configuration: Configuration, registry: ProviderRegistry, notifier: sd_notify.Notifier
) -> tuple[str, ...]:
    """Bring the whole file into force, and have providers that refused asked again; the settings that were not in force.

    Raises:
        ConfigError: the file cannot be used.
    """
    notifier.reloading()
    try:
        changed = await configuration.reload()
        await registry.renew()
    finally:
        notifier.ready()
    return changed
