"""Probes of an installation: the facts that they return, and the child process that each runs in.

A probe of what may crash or hang runs in a child process that is killed at its deadline.
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
    """Base of all facts; a fact holds counts, paths and faults, never text of a note."""


class SqliteFacts(Fact, frozen=True):
    """SQLite as installed; a fault is None if the part works."""

    sqlite: str  # version
    apsw: str
    keywords: str | None
    vectors: str | None
    vec: str | None  # version of sqlite-vec; None: it cannot be loaded


class ModelSelftest(Fact, frozen=True):
    """The bundled model, tried on sentences in English and Chinese."""

    fault: str | None = None  # why it could not be tried
    version: str = ""  # of the package
    dimensions: int = 0
    finite: bool = True
    length: float = 0.0  # of the vector whose length differs most from 1, as the model returns it
    related: float = 0.0  # cosine of a question with its answer, in the language with the smaller difference
    unrelated: float = 0.0  # cosine of that question with an unrelated text
    load_ms: float = 0.0
    embed_ms: float = 0.0  # for one sentence


class InspectedRoot(msgspec.Struct, frozen=True, kw_only=True):
    """A path that an agent is configured to index."""

    path: str  # as configured, made absolute
    resolved: str  # symlinks followed
    is_workspace: bool
    fault: str | None  # None: it is readable
    remote: str | None = None  # type of its file system, if that is a network file system


class InspectedDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database in which another program stores transcripts."""

    file: str
    fault: str | None = None  # None: it is readable
    version: int = 0  # schema version
    is_open: bool = False  # its program has it open, or was killed
    sessions: int = 0
    shared: int = 0  # sessions of groups and channels
    subagents: int = 0  # sessions of subagents


class PresetNotes(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of another program that an agent is configured to search."""

    directory: str  # symlinks followed
    way: tuple[str, ...] = ()  # only below these directories
    file: str | None = None  # only this file


class Disk(Fact, frozen=True):
    """The file system of the state directory, which need not exist yet."""

    kind: str
    point: str
    is_remote: bool


class RootsScan(Fact, frozen=True):
    """What a scan finds below the roots of an agent."""

    agent: str
    roots: tuple[InspectedRoot, ...]
    presets: tuple[PresetNotes, ...]
    notes: int
    transcript_roots: tuple[InspectedRoot, ...]  # where transcripts are or will be
    transcripts: int
    databases: tuple[InspectedDatabase, ...]  # of transcripts
    # A few files and directories, with their names in the index; transcripts with their absolute paths.
    unreadable: tuple[str, ...]
    unreadable_count: int
    skipped: dict[str, int]  # reason -> number of files
    future: tuple[str, ...]  # a few of the files whose modification time is in the future
    future_count: int
    directories: int  # number of directories to watch


class KeptBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup of a database from before a schema upgrade."""

    name: str
    bytes: int
    schema: int  # its schema version
    made_at: float  # Unix time


class Store(Fact, frozen=True):
    """The index of one agent."""

    agent: str
    file: str
    configured: bool  # False: of an agent that is no longer configured
    exists: bool = True
    bytes: int = 0  # including the WAL
    unchecked: str | None = None  # why it was not examined
    closed: str | None = None  # why it cannot be opened
    faults: tuple[str, ...] = ()
    schema: int = 0
    known_schema: int = 0
    files: int = 0
    chunks: int = 0
    rebuild: str | None = None  # why the configuration requires a rebuild
    not_utf8: tuple[str, ...] = ()  # a few of the notes with bytes that have no meaning
    not_utf8_count: int = 0
    long_front_matter: tuple[str, ...] = ()  # a few of the notes with properties that are not read
    long_front_matter_count: int = 0
    damaged: tuple[str, ...] = ()  # names of damaged files that were set aside
    copies: tuple[KeptBackup, ...] = ()  # newest schema first


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
    files: tuple[str, ...] = ()  # files of ended batch jobs that the provider still stores
    damaged: tuple[str, ...] = ()
    copies: tuple[KeptBackup, ...] = ()


class Program(Fact, frozen=True):
    """The search program that an agent is configured to use."""

    agent: str
    file: str = ""
    version: str = ""  # as the program reports it
    fault: str | None = None  # why it was not found or does not run


_KILL_WAIT_S = 0.5  # SIGKILL does not end a process that waits for a dead disk: it is left behind

F = TypeVar("F")


class ProbeResult(msgspec.Struct, frozen=True):
    """The facts that a probe found, and why it ended early."""

    facts: tuple[object, ...] = ()
    reason: str | None = None  # a predicate without its subject; None: the probe has completed
    timed_out: bool = False

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """Return the facts of one type, in the order in which they were found."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))

    def first(self, kind: type[F]) -> F | None:
        """Return the first fact of a type, or None."""
        return next(iter(self.of(kind)), None)


class _End(msgspec.Struct, frozen=True):
    """The last message of a child that did not crash."""

    reason: str | None


class Probe:
    """A probe that runs in a child process.

    The child is a fork: it needs no interpreter to start, and shares the modules that are loaded. The probe
    itself must load native libraries, so that only the child crashes with them.
    """

    def __init__(self, pid: int, messages: Connection, deadline: float, timeout_s: float) -> None:
        self._pid = pid
        self._messages = messages
        self._deadline = deadline  # monotonic time
        self._timeout_s = timeout_s

    def result(self) -> ProbeResult:
        """Wait until the probe has ended or its time is over; call it once."""
        facts: list[object] = []
        with self._messages as messages:
            while messages.poll(max(0.0, self._deadline - time.monotonic())):
                try:
                    message = messages.recv()
                except (EOFError, OSError):  # the child ended without or within its last message
                    return ProbeResult(tuple(facts), _cause_of_death(self._pid))
                if isinstance(message, _End):
                    os.waitpid(self._pid, 0)
                    return ProbeResult(tuple(facts), message.reason)
                facts.append(message)
        _kill(self._pid)
        return ProbeResult(tuple(facts), f"gave no answer within {self._timeout_s:g} s", timed_out=True)


def start_probe(look: Callable[[], Iterable[object]], timeout_s: float) -> Probe:
    """Fork a child process that runs a probe; the calling process must have no other threads.

    Args:
        look: Yields facts, which must be picklable. It runs in the child.
        timeout_s: Seconds until the child is killed.
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
    """Send the facts of a probe; return why it failed, or None.

    Messages of errors may quote anything, so only those of the system and of imports are passed on.
    """
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
