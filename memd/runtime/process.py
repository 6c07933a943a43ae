"""What a daemon asks of its own process: places, limits, collector, umask, an event loop, signals, and an end in time."""

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
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import structlog
import uvloop

from memd.errors import FatalError, MemdError
from memd.runtime.installed_code import MANAGED_STATUS, InstalledCode, run_anew
from memd.runtime.threads import ResourceShortage, Threads
from memd_client import paths

log = structlog.get_logger()

# What a daemon makes and drops has few circles in it: Python's 700 would look for them all the time.
COLLECT = (20_000, 20, 50)
SWITCH_S = 0.0005  # a thread computes for so long, at most, while others wait for their turn
OPEN_FILES = 10_240  # what macOS allows at most
LOOKUPS = 4  # of hosts at a time: a resolver may not answer for many seconds
SOFTWARE_FAILED = 70  # sysexits: EX_SOFTWARE
STOP_S = 1.5  # from the signal to the end, at most


class DaemonPlaces(msgspec.Struct, frozen=True):
    """Where a daemon finds and keeps things."""

    config: Path | None  # None: the usual place, where there need not be a file
    state: Path
    socket: Path


def find_places(config: Path | None, state_dir: Path | None, socket: Path | None) -> DaemonPlaces:
    """The places that the command line names, else the environment, else the platform.

    Raises:
        FatalError: the path of the socket is longer than the system allows.
    """
    home = Path.home()
    state = (state_dir or paths.state_dir(os.environ, sys.platform, home)).absolute()
    at = (socket or paths.socket_file(os.environ, sys.platform, home, state=state)).absolute()
    try:
        return DaemonPlaces(config, state, paths.checked_socket(at, sys.platform))
    except paths.SocketPathTooLong as error:
        raise FatalError(str(error), exit_code=78) from error


def prepare() -> None:
    """Have the process fit to hold memory for long: before anything is opened, and before the event loop runs."""
    _leave_the_loop_room()
    _allow_open_files()
    _leave_no_core()
    os.umask(0o077)  # what memd writes holds memory: it is its user's alone, wherever the state directory is


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


def callback_failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody awaited. Its message ends in the repr of what was called, which holds what it was called with."""
    what = re.split(r"[(<\n]", str(context.get("message", "")), maxsplit=1)[0].strip()
    log.error("daemon.callback_failed", what=what, exc_info=context.get("exception"))


def last_word(failure: BaseException) -> int:
    """Say why the daemon ends; the exit status.

    What memd foresaw is one line for whoever started it, anything else is logged with its place: Python itself would write
    all its words to stderr.
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


def stray_failed(place: str, failure: BaseException) -> None:
    """Log what failed where nobody waits for it, as in a thread or a destructor."""
    log.error("daemon.stray_failed", place=place, exc_info=failure)


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


def open_files() -> int:
    """How many files the process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def end_in_time(action: "SignalAction") -> None:
    """See to it that the process ends soon, or begins anew, whatever its threads are at.

    A thread that cuts a monstrous file, or waits for a dead network mount, cannot be interrupted, and Python would wait
    for it. Nothing is lost with it: what is not written yet is done at the next start.
    """
    end = run_anew if action is SignalAction.RESTART else partial(os._exit, 0)
    deadline = threading.Timer(STOP_S, end)
    deadline.daemon = True
    try:
        deadline.start()
    except RuntimeError:  # no thread is to be had: then the kernel ends it, by SIGALRM
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, STOP_S)


def leave(status: int) -> NoReturn:
    """End the process with this exit status, once all is stopped and closed, whatever its threads are at.

    Python's own end would end a thread as soon as it asks for the interpreter: where it loads the model for a question,
    that is in C++, which aborts the whole process then (SIGABRT).
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


class SignalAction(Enum):
    """What a signal, or a client, asks the daemon to do."""

    STOP = auto()  # SIGTERM, SIGINT
    RELOAD = auto()  # SIGHUP
    RESTART = auto()  # another version was installed


class Signals:
    """The requested actions, in the order of their arrival."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_stop: Callable[[SignalAction], None] | None = None
    ) -> None:
        """Listen from now on; call it on the loop of the main thread.

        Args:
            loop: Of the main thread.
            on_stop: Called as soon as a stop or a restart is requested, whether or not a task waits for the next action.
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
        """Request an action after those that wait."""
        self._actions.put_nowait(action)
        if action is not SignalAction.RELOAD and self._on_stop is not None:
            self._on_stop(action)

    async def next(self) -> SignalAction:
        """Wait for the next action; several reloads in a row are one."""
        action = await self._actions.get()
        while action is SignalAction.RELOAD and not self._actions.empty():
            action = self._actions.get_nowait()
        return action


async def upgraded(signals: Signals) -> None:
    """Wait until another version of memd is installed, and request a restart."""
    await InstalledCode().replaced()
    signals.want(SignalAction.RESTART)


def ended(action: SignalAction, *, is_managed: bool) -> SignalAction:
    """The action; where another version is to be started by the service manager, the end that has it do so.

    What the manager has given to this process, its socket among it, would be lost to the next program in it.
    """
    if action is SignalAction.RESTART and is_managed:
        raise FatalError("another version of memd is installed", exit_code=MANAGED_STATUS)
    return action


_OURS = ("memd", "memd_client")


def learn_types() -> None:
    """Have msgspec inspect all structs of memd that are imported by now; call it before there are threads.

    msgspec caches what it knows of a struct in the class, and stores it there before it is complete. A thread that first
    decodes a struct while another thread does so reads past the end of the cache, and the process crashes (msgspec 0.22,
    SIGSEGV). Several threads begin at once when a daemon starts with transcripts to read, or with questions that wait.
    """
    for kind in list(_below(msgspec.Struct)):
        if kind.__module__.partition(".")[0] in _OURS:
            # Of what is only held in memory, some fields are of types that nothing can be decoded to.
            with contextlib.suppress(TypeError, NameError):
                msgspec.msgpack.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
