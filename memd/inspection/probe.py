"""Probes of an installation: the facts that they find, and the child process that each runs in.

What may crash or never end is looked at in a child process that is killed at its deadline.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn, TypeVar

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all facts; a fact holds counts, paths and faults, never the text of a note."""


class Engine(Fact, frozen=True):
    """SQLite as it is here; a fault is None where the part works."""

    sqlite: str  # version
    apsw: str
    keywords: str | None
    vectors: str | None
    vec: str | None  # version of sqlite-vec


class Model(Fact, frozen=True):
    """The bundled model, tried on sentences in English and Chinese."""

    fault: str | None = None  # why it could not be tried
    version: str = ""
    dimensions: int = 0
    finite: bool = True
    length: float = 0.0  # of the vector that strays furthest from 1, as the engine gives it
    related: float = 0.0  # cosine of a question with its answer, in the worse of the two languages
    unrelated: float = 0.0  # cosine of that question with a text that has nothing to do with it
    load_ms: float = 0.0
    embed_ms: float = 0.0  # of one sentence


class InspectedRoot(msgspec.Struct, frozen=True, kw_only=True):
    """One path that an agent is configured to index."""

    path: str  # as configured, made absolute
    resolved: str  # symlinks followed
    is_workspace: bool
    fault: str | None  # None: it can be read
    remote: str | None = None  # its file system, where other machines can change files


class InspectedDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database in which another program keeps transcripts."""

    file: str
    fault: str | None = None  # None: it can be read
    version: int = 0  # of its tables
    is_open: bool = False  # its program has it open, or was killed
    sessions: int = 0
    shared: int = 0  # of them, those of groups and channels
    subagents: int = 0  # of them, those of subagents


class PresetNotes(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of another program that an agent is configured to search."""

    directory: str  # symlinks followed
    way: tuple[str, ...] = ()  # they lie below these directories alone
    file: str | None = None  # this one alone


class Disk(Fact, frozen=True):
    """The file system that the state directory is on, or will be."""

    kind: str
    point: str
    is_remote: bool


class RootsScan(Fact, frozen=True):
    """Everything below the roots of an agent, as the daemon would scan it."""

    agent: str
    roots: tuple[InspectedRoot, ...] = ()
    presets: tuple[PresetNotes, ...] = ()
    notes: int = 0
    transcript_roots: tuple[InspectedRoot, ...] = ()  # where transcripts are, or will be
    transcripts: int = 0
    databases: tuple[InspectedDatabase, ...] = ()  # of transcripts
    # Files and directories, a few of them, as the index calls them; what belongs to transcripts by its absolute path.
    unreadable: tuple[str, ...] = ()
    unreadable_count: int = 0
    skipped: dict[str, int] = {}  # reason -> files
    future: tuple[str, ...] = ()  # files that say they were written later than now, a few of them
    future_count: int = 0
    directories: int = 0  # to be watched


class KeptBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a database as it was before it was brought up to date."""

    name: str
    bytes: int
    schema: int  # that it has
    made_at: float  # Unix time


class Store(Fact, frozen=True):
    """The index of one agent."""

    agent: str
    file: str
    configured: bool  # False: left over from an agent that the configuration does not have
    exists: bool = True
    bytes: int = 0  # its log included
    unchecked: str | None = None  # why it was left alone
    closed: str | None = None  # why it cannot be opened
    faults: tuple[str, ...] = ()
    schema: int = 0
    known_schema: int = 0
    files: int = 0
    chunks: int = 0
    rebuild: str | None = None  # why the configuration asks for a new one
    damaged: tuple[str, ...] = ()  # names of files that were set aside
    copies: tuple[KeptBackup, ...] = ()  # the one of the newest schema first


class Cache(Fact, frozen=True):
    """The cache of vectors, embeddings.sqlite."""

    file: str
    exists: bool = True
    bytes: int = 0
    unchecked: str | None = None
    closed: str | None = None
    faults: tuple[str, ...] = ()
    schema: int = 0
    known_schema: int = 0
    rows: int = 0
    files: tuple[str, ...] = ()  # of batch jobs that have ended, at their providers
    damaged: tuple[str, ...] = ()
    copies: tuple[KeptBackup, ...] = ()


class Program(Fact, frozen=True):
    """The program that an agent is configured to search with."""

    agent: str
    file: str = ""
    version: str = ""  # as it says
    fault: str | None = None  # why it is not found, or does not run


_KILL_WAIT_S = 0.5  # not even SIGKILL ends what waits for a dead disk: such a child is left behind

F = TypeVar("F")


class ProbeResult(msgspec.Struct, frozen=True):
    """The facts that a probe found, and why it ended early."""

    facts: tuple[object, ...] = ()
    trouble: str | None = None  # the predicate of a sentence; None: the look came to its end
    timed_out: bool = False

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one type, in the order in which they were found."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))

    def first(self, kind: type[F]) -> F | None:
        """The first fact of a type; None where the probe found none."""
        return next(iter(self.of(kind)), None)


class _End(msgspec.Struct, frozen=True):
    """The last message of a child that has not crashed."""

    trouble: str | None


class Probe:
    """A look at something, in a child process that begins at once.

    The child is a fork: it needs no interpreter that can be started, and shares what is loaded already. Native libraries are
    to be loaded by the look itself, so that only the child crashes with them.
    """

    def __init__(self, pid: int, messages: Connection, deadline: float, timeout_s: float) -> None:
        self._pid = pid
        self._messages = messages
        self._deadline = deadline  # of the monotonic clock
        self._timeout_s = timeout_s

    def result(self) -> ProbeResult:
        """Wait until the look has ended or its time is over; to be called once."""
        facts: list[object] = []
        with self._messages as messages:
            while messages.poll(max(0.0, self._deadline - time.monotonic())):
                try:
                    message = messages.recv()
                except (EOFError, OSError):  # it ended without a last message, or within one
                    return ProbeResult(tuple(facts), _cause_of_death(self._pid))
                if isinstance(message, _End):
                    os.waitpid(self._pid, 0)
                    return ProbeResult(tuple(facts), message.trouble)
                facts.append(message)
        _kill(self._pid)
        return ProbeResult(tuple(facts), f"gave no answer within {self._timeout_s:g} s", timed_out=True)


def start_probe(look: Callable[[], Iterable[object]], timeout_s: float) -> Probe:
    """Fork a child that looks; the calling process has no other threads.

    Args:
        look: Yields what it finds, a fact at a time, as values that pickle can carry. It runs in the child.
        timeout_s: Seconds from now until the child is killed.
    """
    deadline = time.monotonic() + timeout_s
    messages, sending = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        _run_child(look, sending)
    sending.close()
    return Probe(pid, messages, deadline, timeout_s)


def _run_child(look: Callable[[], Iterable[object]], sending: Connection) -> NoReturn:
    status = 1
    try:
        # Keep what a crashing library prints out of the output of the parent.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sending.send(_End(_send_facts(look, sending)))
        status = 0
    finally:
        # Exit without the handlers and buffers of the parent, which would run and flush twice.
        os._exit(status)


def _send_facts(look: Callable[[], Iterable[object]], sending: Connection) -> str | None:
    """What went wrong. The message of an error may quote anything, but for those of the system and of imports."""
    try:
        for fact in look():
            sending.send(fact)
    except OSError as error:
        return f"cannot be looked at: {error.strerror or type(error).__name__}"
    except ImportError as error:
        return f"cannot be tried: {error}"
    except Exception as error:  # noqa: BLE001  the parent reports it beside what was found
        return f"failed with {type(error).__name__}"
    return None


def _cause_of_death(pid: int) -> str:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_WAIT_S
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
