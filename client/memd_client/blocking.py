"""The blocking client."""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from types import TracebackType
from typing import Self, TypeVar

from memd_client.connect_socket import QUEUE_FULL_S, default_address, dial
from memd_client.conversation import (
    CLOSED,
    ConnectionEnded,
    Conversation,
    checked_filters,
    checked_reply,
    checked_timeout,
    filters,
    iso_time,
)
from memd_client.errors import ConnectionLost, TimedOut
from memd_client.messages import (
    ChunkList,
    Chunks,
    DuplicateList,
    Duplicates,
    Embed,
    EmbedAction,
    EmbedReport,
    Explain,
    Explanation,
    FileList,
    Files,
    FileSort,
    Found,
    Get,
    Mode,
    Note,
    RedactedText,
    RedactText,
    Reindex,
    ReindexReport,
    Reload,
    Reloaded,
    Reply,
    Request,
    Search,
    Sort,
    Source,
    Status,
    StatusReport,
    Stop,
    Stopping,
    Sync,
    SyncReport,
    Tags,
    TagsReport,
    TurnList,
    Turns,
    Warm,
    WireMessage,
)

_PIECE = 1 << 16  # bytes read at once
# A program that lets SIGPIPE end it, as in a pipeline, must survive a daemon that closes the connection.
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)

R = TypeVar("R", bound=WireMessage)
T = TypeVar("T")


class Client:
    """Sends requests to the daemon, one at a time.

    It connects on the first call, and again, once per call, when the daemon was restarted. Threads may share
    it: their calls are serialised. A forked child may use its copy, which opens a connection of its own.
    Every method may raise the errors of memd_client.errors and no others.

    Args:
        socket: The path of the daemon's socket; None: that of this user's daemon.
        timeout: Seconds that a whole call may take; None: no limit.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, timeout: float | None = 10.0) -> None:
        self._address = os.fspath(socket) if socket else default_address()
        self._timeout_s = checked_timeout(timeout)
        self._by_process: dict[int, _LockedConnection] = {}
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        agent: str | None = None,
        session_key: str | None = None,
        max_chars: int | None = None,
        now: date | str | None = None,
        strict: bool = False,
        mode: Mode | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        sort: Sort = "relevance",
        tags: Sequence[str] | str = (),
        path: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
    ) -> Found:
        """Search memory for a question.

        Args:
            query: The question, or some words of the answer.
            max_results: 1 to 50; None: as configured.
            min_score: 0 to 1, the least score of a hit; None: as configured.
            source: "memory" or "sessions"; None: all sources of the agent.
            agent: The agent's id; None: the session key's agent, else the only one, else "main".
            session_key: The conversation that asks; None: the owner.
            max_chars: The most characters of all snippets together; None: as configured; 0: no limit.
            now: The day or time at which the question is asked, from which "yesterday" is computed; a date, a
                datetime, or one in ISO 8601. None: now.
            strict: Whether to leave out weak hits, which are shown for lack of better ones.
            mode: "keyword" or "vector": only in this way; None or "hybrid": in all ways available. qmd
                ignores it.
            since: Nothing older is returned: a date, a datetime, or a phrase such as "7d", "last week" or 上周,
                whose beginning counts. None: no limit.
            until: Nothing later is returned: likewise, and the end of a phrase counts.
            sort: "relevance", or "time" for the newest hit first.
            tags: Only notes with all of these tags are searched; "work" includes "work/mail".
            path: Only files that match one of these globs are searched, such as "memory/projects/**", and
                none that matches one that begins with "!".
            properties: Only notes with all of these values in their front matter are searched.
        """
        request = Search(
            query=query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            agent=agent,
            session_key=session_key,
            max_chars=max_chars,
            now=iso_time(now),
            strict=strict,
            mode=mode,
            **filters(since, until, sort, tags, path, properties),
        )
        found = self._ask(request, Found)
        checked_filters(request, found)
        return found

    def get(
        self,
        path: str,
        *,
        start_line: int = 1,
        lines: int | None = None,
        agent: str | None = None,
        session_key: str | None = None,
        max_chars: int | None = None,
    ) -> Note:
        """Read lines of an indexed file.

        Args:
            path: The path in a hit.
            start_line: The first line, from 1.
            lines: The number of lines; None: as many as fit into a reply.
            agent: See search.
            session_key: See search.
            max_chars: Limit of the text, 100 or more; None: as much as fits into a reply.
        """
        return self._ask(
            Get(
                path=path,
                start_line=start_line,
                lines=lines,
                agent=agent,
                session_key=session_key,
                max_chars=max_chars,
            ),
            Note,
        )

    def sync(
        self,
        *,
        agent: str | None = None,
        force: bool = False,
        wait: bool = True,
        vectors: bool = True,
        session_key: str | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the disk; returns in time even if vectors are incomplete, which the report says.

        Args:
            agent: The agent's id; None: all agents.
            force: Whether to read every file, even if size and time are unchanged.
            wait: Whether to return once all text that was on disk at the call can be searched.
            vectors: Whether to wait for vectors, too, as long as they progress.
            session_key: The session that asks, for its own agent only. None: the owner.
        """
        return self._ask(
            Sync(agent=agent, force=force, wait=wait, vectors=vectors, session_key=session_key), SyncReport
        )

    def status(self, agent: str | None = None, *, session_key: str | None = None) -> StatusReport:
        """Return the state of the daemon and its agents.

        Args:
            agent: The agent's id; None: all agents.
            session_key: The session that asks, for its own agent only. None: the owner.
        """
        return self._ask(Status(agent=agent, session_key=session_key), StatusReport)

    def reindex(
        self,
        *,
        agent: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        session_key: str | None = None,
    ) -> ReindexReport:
        """Rebuild the index beside the old one, and swap them.

        Args:
            agent: The agent's id; None: all agents.
            force: Whether to embed all texts again, ignoring cached vectors.
            dry_run: Whether to only estimate the cost.
            session_key: The session that asks, for its own agent only. None: the owner.
        """
        return self._ask(
            Reindex(agent=agent, force=force, dry_run=dry_run, session_key=session_key), ReindexReport
        )

    def explain(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        agent: str | None = None,
        session_key: str | None = None,
        now: date | str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        sort: Sort = "relevance",
        tags: Sequence[str] | str = (),
        path: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
    ) -> Explanation:
        """Search, and explain how each candidate was ranked. The arguments are those of search."""
        request = Explain(
            query=query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            agent=agent,
            session_key=session_key,
            now=iso_time(now),
            **filters(since, until, sort, tags, path, properties),
        )
        found = self._ask(request, Explanation)
        checked_filters(request, found.found)
        return found

    def files(
        self,
        agent: str | None = None,
        *,
        source: Source | None = None,
        folder: str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        tags: Sequence[str] | str = (),
        path: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
        sort: FileSort = "path",
        after: str | None = None,
        max_files: int = 200,
    ) -> FileList:
        """List indexed files, page by page. For the owner only.

        Args:
            agent: See search.
            source: See search.
            folder: A folder with its final slash: only files directly in it, and its subfolders; "": the top.
                None: all files.
            since: See search.
            until: See search.
            tags: See search.
            path: See search.
            properties: See search.
            sort: "path", or "time" for the newest first.
            after: `next` of the previous page.
            max_files: Files and folders per page, 1 to 500.
        """
        wanted = filters(since, until, "relevance", tags, path, properties) | {"sort": sort}
        request = Files(agent=agent, source=source, folder=folder, after=after, max_files=max_files, **wanted)
        return self._ask(request, FileList)

    def chunks(
        self, path: str, *, agent: str | None = None, skip: int = 0, max_chunks: int = 50
    ) -> ChunkList:
        """List the chunks of an indexed file, page by page. For the owner only.

        Args:
            path: The path in a hit.
            agent: See search.
            skip: Chunks before the page.
            max_chunks: Chunks per page, 1 to 200.
        """
        return self._ask(Chunks(path=path, agent=agent, skip=skip, max_chunks=max_chunks), ChunkList)

    def turns(self, path: str, *, agent: str | None = None, skip: int = 0, max_turns: int = 50) -> TurnList:
        """List the turns of a transcript, page by page. For the owner only.

        Args:
            path: The path in a hit.
            agent: See search.
            skip: Turns before the page.
            max_turns: Turns per page, 1 to 200.
        """
        return self._ask(Turns(path=path, agent=agent, skip=skip, max_turns=max_turns), TurnList)

    def duplicates(self, *, agent: str | None = None) -> DuplicateList:
        """List pairs of notes that are copies of each other, or of which one is superseded. For the owner only.

        Args:
            agent: See search.
        """
        return self._ask(Duplicates(agent=agent), DuplicateList)

    def embed(
        self, action: EmbedAction, agent: str | None = None, *, session_key: str | None = None
    ) -> EmbedReport:
        """Pause or resume embedding, confirm the cost of what waits, or turn batch jobs on again.

        Args:
            action: "pause", "resume", "confirm" or "batch_on".
            agent: The agent's id; None: all agents.
            session_key: The session that asks, for its own agent only. None: the owner.
        """
        return self._ask(Embed(action=action, agent=agent, session_key=session_key), EmbedReport)

    def tags(self, agent: str | None = None, *, session_key: str | None = None) -> TagsReport:
        """Count the tags of notes, and the notes that they link to.

        Args:
            agent: The agent's id; None: all agents.
            session_key: The session that asks, for its own agent and the notes that it may see. None: the
                owner.
        """
        return self._ask(Tags(agent=agent, session_key=session_key), TagsReport)

    def warm(self, session_key: str, *, agent: str | None = None) -> SyncReport:
        """Bring the index up to date at the start of a session, once for each session key."""
        return self._ask(Warm(session_key=session_key, agent=agent), SyncReport)

    def redact(self, text: str, *, agent: str | None = None, session_key: str | None = None) -> RedactedText:
        """Redact a text by the rules of an agent. For the owner, and for conversations without other readers."""
        return self._ask(RedactText(text=text, agent=agent, session_key=session_key), RedactedText)

    def ask(self, request: Request) -> WireMessage:
        """Send any request, for a program that passes on requests of others."""
        return self._ask(request, WireMessage)

    def reload(self) -> Reloaded:
        """Apply the whole configuration file, and wait for that. For the owner only."""
        return self._ask(Reload(), Reloaded)

    def stop(self) -> Stopping:
        """Stop the daemon, which still runs for a moment; a service manager may start it again. For the owner only."""
        return self._ask(Stop(), Stopping)

    def close(self) -> None:
        """Close the connection, after the call of another thread if there is one. The client stays closed.

        A call is interrupted if it takes longer than the timeout, or if it was interrupted by a signal
        handler that closes the client.
        """
        self._is_closed = True
        locked = self._locked()
        if locked.is_held_by_this_thread():
            locked.hang_up()
            return
        try:
            locked.call(_Deadline(self._timeout_s), locked.drop)
        except TimedOut:
            locked.hang_up()

    def _ask(self, request: Request, kind: type[R]) -> R:
        deadline = _Deadline(self._timeout_s)
        locked = self._locked()
        # In a signal handler: the interrupted call waits for a reply on this thread's connection.
        is_nested = locked.is_held_by_this_thread()
        if is_nested:
            locked = _LockedConnection()

        def ask() -> Reply:
            try:
                reply = self._exchange(locked, request, deadline)
            except ConnectionEnded:
                reply = self._exchange(locked, request, deadline)
            if is_nested or self._is_closed:
                locked.drop()
            return reply

        return checked_reply(locked.call(deadline, ask), kind)

    def _exchange(self, locked: "_LockedConnection", request: Request, deadline: "_Deadline") -> Reply:
        if self._is_closed:
            raise ConnectionLost(CLOSED)
        if connection := locked.find_usable():
            return connection.ask(request, deadline)
        try:
            return locked.connect(self._address, deadline).ask(request, deadline)
        # A new connection that ends was not lost to a restart, so a retry would not help.
        except ConnectionEnded as gone:
            raise self._lost(gone) from None

    def _lost(self, gone: ConnectionEnded) -> ConnectionLost:
        return ConnectionLost(CLOSED if self._is_closed else str(gone))

    def _locked(self) -> "_LockedConnection":
        """Return this process's lock and connection; the copy of a parent's connection is closed."""
        locked = self._by_process.setdefault(os.getpid(), _LockedConnection())
        for pid in self._by_process.keys() - {os.getpid()}:
            if inherited := self._by_process.pop(pid, None):
                inherited.drop()
        return locked


class _Deadline:
    """The time at which a call times out."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        self._at = time.monotonic() + self._timeout_s

    def left(self) -> float | None:
        """Return the seconds until then, more than 0; None: there is no limit.

        Raises:
            TimedOut: the time has passed.
        """
        left_s = self._at - time.monotonic()
        if left_s <= 0:
            raise self.passed()
        return None if math.isinf(left_s) else left_s

    def has_passed(self) -> bool:
        """Return whether the call has timed out."""
        return time.monotonic() >= self._at

    def passed(self) -> TimedOut:
        """Return the error of a call that has timed out."""
        return TimedOut(self._timeout_s)


class _LockedConnection:
    """The connection of a process, with the lock that serialises the calls of threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: it knows its owner
        self._holder: int | None = None
        self._connection: _Connection | None = None

    def is_held_by_this_thread(self) -> bool:
        """Return whether a call in this thread holds the lock, which a signal handler has interrupted."""
        return self._holder == threading.get_ident()

    def call(self, deadline: _Deadline, act: Callable[[], T]) -> T:
        """Call a function while holding the lock.

        Raises:
            TimedOut: the lock was not free in time.
        """
        me = threading.get_ident()
        left_s = deadline.left()
        try:
            if not self._lock.acquire(timeout=-1 if left_s is None else left_s):
                raise deadline.passed()
            self._holder = me
            return act()
        finally:
            # An exception of a signal handler is raised when a call returns. Here the release is the first
            # call.
            if self._holder == me:
                self._holder = None
            try:  # noqa: SIM105  suppress would be a call
                self._lock.release()
            except RuntimeError:  # the lock was not acquired
                pass

    def find_usable(self) -> "_Connection | None":
        if self._connection and self._connection.is_usable():
            return self._connection
        return None

    def connect(self, address: str, deadline: _Deadline) -> "_Connection":
        self.drop()
        while (connected := dial(address)) is None:
            time.sleep(min(QUEUE_FULL_S, deadline.left() or QUEUE_FULL_S))
        connection = _Connection(connected)
        connection.greet(deadline)
        self._connection = connection
        return connection

    def drop(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def hang_up(self) -> None:
        """End the connection while another call waits for a reply on it."""
        if connection := self._connection:
            connection.hang_up()


class _Connection:
    """A socket connected to a daemon; any error closes it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._talk = Conversation()
        self._is_open = True
        self._is_midway = False  # a request was sent, and its reply has not arrived

    def is_usable(self) -> bool:
        """Return whether it is open and nothing has arrived since the last reply: a daemon sends more only to close."""
        if not self._is_open or self._is_midway or not self._talk.is_quiet:
            return False
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def greet(self, deadline: _Deadline) -> None:
        with self._closing_on_error(deadline):
            self._say(self._talk.hello(), deadline)
            self._hear(self._talk.next_hello, deadline)

    def ask(self, request: Request, deadline: _Deadline) -> Reply:
        request_id, data = self._talk.ask(request, deadline.left())
        with self._closing_on_error(deadline):
            self._is_midway = True
            self._say(data, deadline)
            answer = self._hear(self._talk.next_answer, deadline)
            if answer.request_id != request_id:
                raise ConnectionLost("The daemon answered a question that was not asked.")
            self._is_midway = False
            return answer.reply

    def hang_up(self) -> None:
        """End the connection for any call that waits on it, in this thread or another."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_open = False
        self._socket.close()

    @contextmanager
    def _closing_on_error(self, deadline: _Deadline) -> Iterator[None]:
        # A late reply to a call that has timed out, or was interrupted, would be taken for the reply to the
        # next.
        try:
            yield
        except TimeoutError as error:
            self.close()
            if type(error) is TimeoutError and deadline.has_passed():
                raise deadline.passed() from None
            raise  # raised by a signal handler: the program has a time limit of its own
        except OSError as error:
            self.close()
            raise ConnectionLost(f"The connection to the daemon broke: {error.strerror or error}.") from error
        except BaseException:
            self.close()
            raise

    def _say(self, data: bytes, deadline: _Deadline) -> None:
        self._socket.settimeout(deadline.left())
        # If the daemon has closed the connection, reading returns the reason that it sent, if any.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data, _NO_SIGNAL)

    def _hear(self, take: Callable[[], T | None], deadline: _Deadline) -> T:
        while (heard := take()) is None:
            self._socket.settimeout(deadline.left())
            data = b""
            with suppress(ConnectionResetError):  # treated like the end of the stream
                data = self._socket.recv(_PIECE)
            if not data:
                raise self._talk.end()
            self._talk.feed(data)
        return heard
