"""The client for programs that wait for each answer."""

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
    Conversation,
    WentAway,
    asked_at,
    checked_filters,
    checked_reply,
    checked_timeout,
    filters,
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
# A program that lets SIGPIPE end it, as pipelines do, must outlive a daemon that hangs up.
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)

R = TypeVar("R", bound=WireMessage)
T = TypeVar("T")


class Client:
    """Asks the daemon, one question at a time.

    It connects when it is first asked, and again, once a call, when the daemon was restarted. Threads may
    share it: they take turns. A forked child may use its copy: it gets a connection of its own. Every method
    may raise the errors of memd_client.errors and no others.

    Args:
        socket: The socket of the daemon; None: where this user's daemon listens.
        timeout: Seconds that a whole call may take; None: as long as it takes.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, timeout: float | None = 10.0) -> None:
        self._address = os.fspath(socket) if socket else default_address()
        self._timeout_s = checked_timeout(timeout)
        self._lines: dict[int, _Line] = {}
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
        """Find what memory says about a question.

        Args:
            query: The question, or some words of the answer.
            max_results: 1 to 50; None: the configured number.
            min_score: 0 to 1, the least score of a hit; None: the configured one.
            source: "memory" or "sessions"; None: every source the agent has.
            agent: Whose memory; None: the session key's, else the only one, else "main".
            session_key: The conversation that asks; None: the owner.
            max_chars: Of all snippets together; None: the configured number; 0: as many as there are.
            now: The day or moment at which it is asked, which "yesterday" is told from; a date, a datetime, or one in
                ISO 8601. None: now.
            strict: Leave out weak hits, which are shown for want of better.
            mode: "keyword" or "vector": by these alone; None or "hybrid": by all there is. Of qmd it changes nothing.
            since: Nothing older is found: a date, a datetime, or a phrase such as "7d", "last week" or 上周, whose beginning
                counts. None: however old.
            until: Nothing later is found: likewise, and the end of a phrase counts.
            sort: "relevance", or "time" for the newest hit first.
            tags: Only notes with all of these are found; "work" is also "work/mail".
            path: Only files are found that one of these globs matches, such as "memory/projects/**", and none that begins
                with "!".
            properties: Only notes are found whose front matter has all of these values.
        """
        request = Search(
            query=query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            agent=agent,
            session_key=session_key,
            max_chars=max_chars,
            now=asked_at(now),
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
            path: As a hit gave it.
            start_line: The first line, from 1.
            lines: How many; None: as many as one reply holds.
            agent: As in search.
            session_key: As in search.
            max_chars: Of the text, 100 or more; None: as many as one reply holds.
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
        """Bring the index up to date with the disk. Ends in time even where vectors do not: see the report.

        Args:
            agent: Whose index; None: every agent's.
            force: Look into every file, whatever its size and time say.
            wait: Answer when all text that was on disk at the call is searchable.
            vectors: Wait on for vectors while they progress.
            session_key: Of the session that asks: its agent alone is meant. None: the owner.
        """
        return self._ask(
            Sync(agent=agent, force=force, wait=wait, vectors=vectors, session_key=session_key), SyncReport
        )

    def status(self, agent: str | None = None, *, session_key: str | None = None) -> StatusReport:
        """How everything is.

        Args:
            agent: Which agent; None: every one.
            session_key: Of the session that asks: it sees its own agent alone. None: the owner.
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
        """Build the index anew beside the old one, and swap.

        Args:
            agent: Whose index; None: every agent's.
            force: Embed again too, although the vectors are kept.
            dry_run: Only tell what it would cost.
            session_key: Of the session that asks: its agent alone is meant. None: the owner.
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
        """Search, and tell how each hit came to its place. The arguments are those of search."""
        request = Explain(
            query=query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            agent=agent,
            session_key=session_key,
            now=asked_at(now),
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
        """List indexed files, a page at a time. For the owner.

        Args:
            agent: As in search.
            source: As in search.
            folder: With its last slash: what lies in it alone, and its folders; "": at the top. None: every file.
            since: As in search.
            until: As in search.
            tags: As in search.
            path: As in search.
            properties: As in search.
            sort: "path", or "time" for the newest first.
            after: The next of the page before.
            max_files: Files and folders of the page, 1 to 500.
        """
        wanted = filters(since, until, "relevance", tags, path, properties) | {"sort": sort}
        request = Files(agent=agent, source=source, folder=folder, after=after, max_files=max_files, **wanted)
        return self._ask(request, FileList)

    def chunks(
        self, path: str, *, agent: str | None = None, skip: int = 0, max_chunks: int = 50
    ) -> ChunkList:
        """List the chunks of an indexed file, a page at a time. For the owner.

        Args:
            path: As a hit gave it.
            agent: As in search.
            skip: Chunks before the page.
            max_chunks: Of the page, 1 to 200.
        """
        return self._ask(Chunks(path=path, agent=agent, skip=skip, max_chunks=max_chunks), ChunkList)

    def turns(self, path: str, *, agent: str | None = None, skip: int = 0, max_turns: int = 50) -> TurnList:
        """List the turns of a transcript, a page at a time. For the owner.

        Args:
            path: As a hit gave it.
            agent: As in search.
            skip: Turns before the page.
            max_turns: Of the page, 1 to 200.
        """
        return self._ask(Turns(path=path, agent=agent, skip=skip, max_turns=max_turns), TurnList)

    def duplicates(self, *, agent: str | None = None) -> DuplicateList:
        """List notes that say the same, and notes that are superseded, each beside the other. For the owner.

        Args:
            agent: As in search.
        """
        return self._ask(Duplicates(agent=agent), DuplicateList)

    def embed(
        self, action: EmbedAction, agent: str | None = None, *, session_key: str | None = None
    ) -> EmbedReport:
        """Have embedding pause or go on, pay for what waits to be confirmed, or have batch jobs again.

        Args:
            action: "pause", "resume", "confirm" or "batch_on".
            agent: Whose embedding; None: every agent's.
            session_key: Of the session that asks: its agent alone is meant. None: the owner.
        """
        return self._ask(Embed(action=action, agent=agent, session_key=session_key), EmbedReport)

    def tags(self, agent: str | None = None, *, session_key: str | None = None) -> TagsReport:
        """Count the tags of notes, and the notes that they link to.

        Args:
            agent: Whose notes; None: every agent's.
            session_key: Of the session that asks: its agent alone is meant, and the notes that it may see. None: the owner.
        """
        return self._ask(Tags(agent=agent, session_key=session_key), TagsReport)

    def warm(self, session_key: str, *, agent: str | None = None) -> SyncReport:
        """Tell that a session begins: the index is brought up to date, once for each session key."""
        return self._ask(Warm(session_key=session_key, agent=agent), SyncReport)

    def redact(self, text: str, *, agent: str | None = None, session_key: str | None = None) -> RedactedText:
        """Take out of a text what is secret, by the rules of an agent. For the owner, and who asks for them alone."""
        return self._ask(RedactText(text=text, agent=agent, session_key=session_key), RedactedText)

    def ask(self, request: Request) -> WireMessage:
        """Send any request, for a program that passes on those of others."""
        return self._ask(request, WireMessage)

    def reload(self) -> Reloaded:
        """Bring all that the configuration file says into force, and wait for it. For the owner."""
        return self._ask(Reload(), Reloaded)

    def stop(self) -> Stopping:
        """End the daemon. It still runs for a moment; where it is a service, its manager may start it again. For the owner."""
        return self._ask(Stop(), Stopping)

    def close(self) -> None:
        """Close the connection, after the call of another thread if there is one. The client stays closed.

        A call loses its connection that takes longer than the timeout, or that a signal handler has interrupted which
        closes the client.
        """
        self._is_closed = True
        line = self._line()
        if line.is_held_here():
            line.hang_up()
            return
        try:
            line.in_turn(_Deadline(self._timeout_s), line.drop)
        except TimedOut:
            line.hang_up()

    def _ask(self, request: Request, kind: type[R]) -> R:
        deadline = _Deadline(self._timeout_s)
        line = self._line()
        # In a signal handler, the call that it has interrupted waits for an answer on the connection.
        is_nested = line.is_held_here()
        if is_nested:
            line = _Line()

        def ask() -> Reply:
            try:
                reply = self._exchange(line, request, deadline)
            except WentAway:
                reply = self._exchange(line, request, deadline)
            if is_nested or self._is_closed:
                line.drop()
            return reply

        return checked_reply(line.in_turn(deadline, ask), kind)

    def _exchange(self, line: "_Line", request: Request, deadline: "_Deadline") -> Reply:
        if self._is_closed:
            raise ConnectionLost(CLOSED)
        if connection := line.find_usable():
            return connection.ask(request, deadline)
        try:
            return line.connect(self._address, deadline).ask(request, deadline)
        except WentAway as gone:  # from a connection this fresh it is no restart that a second try would mend
            raise self._lost(gone) from None

    def _lost(self, gone: WentAway) -> ConnectionLost:
        return ConnectionLost(CLOSED if self._is_closed else str(gone))

    def _line(self) -> "_Line":
        """The lock and the connection of this process; those of a parent are left to the parent."""
        line = self._lines.setdefault(os.getpid(), _Line())
        for pid in self._lines.keys() - {os.getpid()}:
            if inherited := self._lines.pop(pid, None):
                inherited.drop()
        return line


class _Deadline:
    """The moment at which a call has taken too long."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        self._at = time.monotonic() + self._timeout_s

    def left(self) -> float | None:
        """Seconds until then, more than 0; None: it never comes.

        Raises:
            TimedOut: it has come.
        """
        left_s = self._at - time.monotonic()
        if left_s <= 0:
            raise self.passed()
        return None if math.isinf(left_s) else left_s

    def has_passed(self) -> bool:
        """Whether the call has taken too long."""
        return time.monotonic() >= self._at

    def passed(self) -> TimedOut:
        """The error of a call that has taken too long."""
        return TimedOut(self._timeout_s)


class _Line:
    """The one connection of a process, with the lock that gives each thread its turn on it."""

    def __init__(self) -> None:
        self._turn = threading.RLock()  # it knows whose it is
        self._holder: int | None = None
        self._connection: _Connection | None = None

    def is_held_here(self) -> bool:
        """Whether it is the turn of a call in this thread already, which a signal handler has interrupted."""
        return self._holder == threading.get_ident()

    def in_turn(self, deadline: _Deadline, act: Callable[[], T]) -> T:
        """Act when no other thread does.

        Raises:
            TimedOut: the turn did not come in time.
        """
        me = threading.get_ident()
        left_s = deadline.left()
        try:
            if not self._turn.acquire(timeout=-1 if left_s is None else left_s):
                raise deadline.passed()
            self._holder = me
            return act()
        finally:
            # A signal handler that raises does so where a call returns. Here the release is the first call.
            if self._holder == me:
                self._holder = None
            try:  # noqa: SIM105  suppress would be a call
                self._turn.release()
            except RuntimeError:  # the turn did not come
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
        """End the connection, while the call of another waits for an answer on it."""
        if connection := self._connection:
            connection.hang_up()


class _Connection:
    """A socket with a daemon at its other end. Whatever goes wrong on it closes it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._talk = Conversation()
        self._is_open = True
        self._is_midway = False  # a request was sent, and its answer has not come

    def is_usable(self) -> bool:
        """Whether it is open and nothing came since the last answer: a daemon speaks unasked only to part."""
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
        """End the connection for whoever waits on it, in this thread or another."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_open = False
        self._socket.close()

    @contextmanager
    def _closing_on_error(self, deadline: _Deadline) -> Iterator[None]:
        # An answer that comes after its caller gave up, or was interrupted, would be taken for the next one.
        try:
            yield
        except TimeoutError as error:
            self.close()
            if type(error) is TimeoutError and deadline.has_passed():
                raise deadline.passed() from None
            raise  # a signal handler's: the program has a time limit of its own
        except OSError as error:
            self.close()
            raise ConnectionLost(f"The connection to the daemon broke: {error.strerror or error}.") from error
        except BaseException:
            self.close()
            raise

    def _say(self, data: bytes, deadline: _Deadline) -> None:
        self._socket.settimeout(deadline.left())
        # Where the daemon has hung up, reading gives the reason it left, or shows that there is none.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data, _NO_SIGNAL)

    def _hear(self, take: Callable[[], T | None], deadline: _Deadline) -> T:
        while (heard := take()) is None:
            self._socket.settimeout(deadline.left())
            data = b""
            with suppress(ConnectionResetError):  # the end, like that of a peer that closes in peace
                data = self._socket.recv(_PIECE)
            if not data:
                raise self._talk.end()
            self._talk.feed(data)
        return heard
