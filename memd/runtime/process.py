"""Settings of the daemon's process: paths, limits, garbage collector, umask, event loop, signals and exit."""

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
from collections.abc import Callable, Iterator, MutableMapping
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import structlog
import uvloop

from memd.errors import FatalError, MemdError
from memd.runtime import malloc
from memd.runtime.installed_code import MANAGED_STATUS, InstalledCode, run_anew
from memd.runtime.threads import ResourceShortage, Threads
from memd.runtime.time_zones import replace_unusable_zone
from memd_client import paths

log = structlog.get_logger()

# The daemon's objects are rarely in cycles: Python's threshold of 700 would start collections all the time.
COLLECT = (20_000, 20, 50)
SWITCH_S = 0.0005  # longest time that a thread computes while others wait for the interpreter
OPEN_FILES = 10_240  # the most that macOS allows
LOOKUPS = 4  # concurrent lookups of host names: a resolver may take many seconds to answer
SOFTWARE_FAILED = 70  # sysexits: EX_SOFTWARE
STOP_S = 1.5  # longest time from the signal to the exit


class DaemonPlaces(msgspec.Struct, frozen=True):
    """Paths of a daemon."""

    config: Path | None  # None: the default path, where the file may be missing
    state: Path
    socket: Path


def find_places(config: Path | None, state_dir: Path | None, socket: Path | None) -> DaemonPlaces:
    """Return the paths given on the command line, else those of the environment, else the platform's.

    Raises:
        FatalError: the socket's path is longer than the system allows, or is that of the root directory.
    """
    home = Path.home()
    state = (state_dir or paths.state_dir(os.environ, sys.platform, home)).absolute()
    at = (socket or paths.socket_file(os.environ, sys.platform, home, state=state)).absolute()
    if not at.name:
        raise FatalError(
            f"{at} cannot be a socket: it is the root directory. Set MEMD_SOCKET to the path of a file.",
            exit_code=78,
        )
    try:
        return DaemonPlaces(config, state, paths.checked_socket(at, sys.platform))
    except paths.SocketPathTooLong as error:
        raise FatalError(str(error), exit_code=78) from error


def prepare() -> None:
    """Prepare the process to run for long with memory text in it; call it before any file is opened and the loop runs."""
    _bound_loop_delays()
    malloc.share_arenas()
    _allow_open_files()
    _disable_core_files()
    # memd's files contain memory: only its user may read them, wherever the state directory is.
    os.umask(0o077)


class DaemonEventLoop(uvloop.Loop):
    """The event loop; host names are looked up on threads of memd.

    libuv starts its own threads at the first lookup, and aborts the process if it cannot
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
        """Like asyncio's; raises OSError if no thread can be started."""
        try:
            return await self._lookups.run(socketlib.getaddrinfo, host, port, family, type, proto, flags)
        except ResourceShortage as failure:
            raise OSError(errno.EAGAIN, str(failure)) from failure


def settle_time_zone(environ: MutableMapping[str, str]) -> None:
    """Log if the time zone of the environment is unusable; the process is then in UTC. Call it before threads run."""
    reason = replace_unusable_zone(environ)
    if reason is not None:
        hint = "days and times are in UTC; set TZ, or the setting timezone, to a zone such as Europe/Berlin"
        log.warning("daemon.time_zone_unusable", reason=reason, hint=hint)


def callback_failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that nobody awaited; the message is cut, as it ends in the repr of a call with its arguments."""
    what = re.split(r"[(<\n]", str(context.get("message", "")), maxsplit=1)[0].strip()
    log.error("daemon.callback_failed", what=what, exc_info=context.get("exception"))


def report_end(failure: BaseException) -> int:
    """Report why the daemon ends; return the exit status.

    An expected error is printed as one line; any other is logged with its traceback, since Python itself
    would print its whole message to stderr.
    """
    if isinstance(failure, BaseExceptionGroup):
        fatal = failure.subgroup(FatalError)
        expected, bugs = failure.split(MemdError)
        if fatal is not None:
            return _print_error(_first(fatal))
        if expected is not None and bugs is None:
            return _print_error(_first(expected))
    if isinstance(failure, MemdError):
        return _print_error(failure)
    log.critical("daemon.failed", exc_info=failure)
    return SOFTWARE_FAILED


def _first(group: BaseExceptionGroup[MemdError]) -> MemdError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _print_error(error: MemdError) -> int:
    print(f"memd: {error}", file=sys.stderr)  # noqa: T201 - for whoever started it, in a terminal or a journal
    return error.exit_code if isinstance(error, FatalError) else SOFTWARE_FAILED


def log_uncaught(place: str, failure: BaseException) -> None:
    """Log an exception that nothing awaits, such as one in a thread or a destructor."""
    log.error("daemon.stray_failed", place=place, exc_info=failure)


def _bound_loop_delays() -> None:
    """Limit how long threads and the garbage collector delay the event loop.

    While several searches run on threads, the loop waits for its turn after each of them; and a full
    collection would take 30 ms, because it would traverse everything that was imported: so no collection looks at that.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)
    gc.freeze()
    gc.enable()


def _allow_open_files() -> None:
    """Raise the limit of open files as far as allowed: an agent needs about ten, and the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _disable_core_files() -> None:
    """Disable core files: a crash would write notes and keys to a directory that others may read.

    Only the soft limit is set, so prlimit(1) can raise it to debug a crash. The worker and qmd inherit it. A
    debugger of the same user may still attach; that user can read the notes anyway.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def open_files() -> int:
    """Return how many files the process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def bound_stop_time(action: "SignalAction") -> None:
    """Make sure that the process ends or restarts within STOP_S, whatever its threads do.

    A thread that cuts a huge file, or waits for a dead network mount, cannot be interrupted, and Python would
    wait for it. Nothing is lost: what was not written is done at the next start.
    """
    end = run_anew if action is SignalAction.RESTART else partial(os._exit, 0)
    deadline = threading.Timer(STOP_S, end)
    deadline.daemon = True
    try:
        deadline.start()
    except RuntimeError:  # no thread can be started: let SIGALRM end the process
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, STOP_S)


def exit_now(status: int) -> NoReturn:
    """End the process at once with this exit status; call it when everything is stopped and closed.

    A normal exit of Python ends other threads when they next ask for the interpreter. In a thread that is
    loading the model for a question, that happens within C++ code, which aborts the process (SIGABRT).
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


class SignalAction(Enum):
    """An action that a signal or a client requests."""

    STOP = auto()  # SIGTERM, SIGINT
    RELOAD = auto()  # SIGHUP
    RESTART = auto()  # another version was installed


class Signals:
    """The queue of requested actions."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_stop: Callable[[SignalAction], None] | None = None
    ) -> None:
        """Install the signal handlers.

        Args:
            loop: The event loop of the main thread.
            on_stop: Called as soon as a stop or a restart is requested, even if no task waits for the next
                action.
        """
        self._actions: asyncio.Queue[SignalAction] = asyncio.Queue()
        self._on_stop = on_stop
        for number, action in (
            (signal.SIGTERM, SignalAction.STOP),
            (signal.SIGINT, SignalAction.STOP),
            (signal.SIGHUP, SignalAction.RELOAD),
        ):
            loop.add_signal_handler(number, self.want, action)

    def want(self, action: SignalAction) -> None:
        """Append an action to the queue."""
        self._actions.put_nowait(action)
        if action is not SignalAction.RELOAD and self._on_stop is not None:
            self._on_stop(action)

    async def next(self) -> SignalAction:
        """Wait for the next action; consecutive reloads are returned as one."""
        action = await self._actions.get()
        while action is SignalAction.RELOAD and not self._actions.empty():
            action = self._actions.get_nowait()
        return action


async def upgraded(signals: Signals) -> None:
    """Wait until another version of memd is installed, and request a restart."""
    await InstalledCode().replaced()
    signals.want(SignalAction.RESTART)


def ended(action: SignalAction, *, is_managed: bool) -> SignalAction:
    """Return the action, or raise a FatalError if the service manager must do the restart.

    What the manager has passed to this process, such as its socket, would be lost if another program replaced
    it.
    """
    if action is SignalAction.RESTART and is_managed:
        raise FatalError("another version of memd is installed", exit_code=MANAGED_STATUS)
    return action


_OURS = ("memd", "memd_client")


def learn_types() -> None:
    """Let msgspec inspect all structs of memd that are imported; call it before threads are started.

    msgspec caches a struct's type information in the class, and stores it there before it is complete. A
    thread that first decodes a struct while another thread does so reads past the end of the cache, and the
    process crashes (msgspec 0.22, SIGSEGV). Several threads start at once when a daemon starts with
    transcripts to read or with waiting questions.
    """
    for kind in list(_below(msgspec.Struct)):
        if kind.__module__.partition(".")[0] in _OURS:
            # Structs that are only held in memory may have fields that nothing can be decoded to.
            with contextlib.suppress(TypeError, NameError):
                msgspec.msgpack.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
