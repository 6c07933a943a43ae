"""The client for programs with an event loop."""

import asyncio
import copy
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from types import TracebackType
from typing import Self, TypeVar, cast

from memd_client.connect_socket import QUEUE_FULL_S, default_address, dial
from memd_client.conversation import (
    CLOSED,
    IN_FLIGHT,
    Answer,
    ConnectionEnded,
    Conversation,
    checked_filters,
    checked_reply,
    checked_timeout,
    filters,
    iso_time,
)
from memd_client.errors import ConnectionLost, MemdClientError, TimedOut
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

_PIECE = 1 << 12  # bytes read at once while greeting

R = TypeVar("R", bound=WireMessage)


class AsyncClient:
    """Sends requests to the daemon, many at a time over one connection.

    The methods, their arguments and their errors are those of Client. It has a connection for each event loop
    in which it is used, one after another or concurrently in threads. A task that is cancelled or times out
    does not affect others.

    Args:
        socket: The path of the daemon's socket; None: that of this user's daemon.
        timeout: Seconds that a whole call may take; None: no limit.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, timeout: float | None = 10.0) -> None:
        self._address = os.fspath(socket) if socket else default_address()
        self._timeout_s = checked_timeout(timeout)
        self._by_loop: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def search(
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
        """Search memory for a question."""
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
        found = await self._ask(request, Found)
        checked_filters(request, found)
        return found

    async def get(
        self,
        path: str,
        *,
        start_line: int = 1,
        lines: int | None = None,
        agent: str | None = None,
        session_key: str | None = None,
        max_chars: int | None = None,
    ) -> Note:
        """Read lines of an indexed file."""
        return await self._ask(
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

    async def sync(
        self,
        *,
        agent: str | None = None,
        force: bool = False,
        wait: bool = True,
        vectors: bool = True,
        session_key: str | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the disk; returns in time even if vectors are incomplete."""
        return await self._ask(
            Sync(agent=agent, force=force, wait=wait, vectors=vectors, session_key=session_key), SyncReport
        )

    async def status(self, agent: str | None = None, *, session_key: str | None = None) -> StatusReport:
        """Return the state of the daemon and its agents; `agent` None: of all agents."""
        return await self._ask(Status(agent=agent, session_key=session_key), StatusReport)

    async def reindex(
        self,
        *,
        agent: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        session_key: str | None = None,
    ) -> ReindexReport:
        """Rebuild the index beside the old one, and swap them."""
        return await self._ask(
            Reindex(agent=agent, force=force, dry_run=dry_run, session_key=session_key), ReindexReport
        )

    async def explain(
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
        """Search, and explain how each candidate was ranked."""
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
        found = await self._ask(request, Explanation)
        checked_filters(request, found.found)
        return found

    async def files(
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
        return await self._ask(request, FileList)

    async def chunks(
        self, path: str, *, agent: str | None = None, skip: int = 0, max_chunks: int = 50
    ) -> ChunkList:
        """List the chunks of an indexed file, page by page. For the owner only.

        Args:
            path: The path in a hit.
            agent: See search.
            skip: Chunks before the page.
            max_chunks: Chunks per page, 1 to 200.
        """
        return await self._ask(Chunks(path=path, agent=agent, skip=skip, max_chunks=max_chunks), ChunkList)

    async def turns(
        self, path: str, *, agent: str | None = None, skip: int = 0, max_turns: int = 50
    ) -> TurnList:
        """List the turns of a transcript, page by page. For the owner only.

        Args:
            path: The path in a hit.
            agent: See search.
            skip: Turns before the page.
            max_turns: Turns per page, 1 to 200.
        """
        return await self._ask(Turns(path=path, agent=agent, skip=skip, max_turns=max_turns), TurnList)

    async def duplicates(self, *, agent: str | None = None) -> DuplicateList:
        """List pairs of notes that are copies of each other, or of which one is superseded. For the owner only.

        Args:
            agent: See search.
        """
        return await self._ask(Duplicates(agent=agent), DuplicateList)

    async def embed(
        self, action: EmbedAction, agent: str | None = None, *, session_key: str | None = None
    ) -> EmbedReport:
        """Pause or resume embedding, confirm the cost of what waits, or turn batch jobs on again."""
        return await self._ask(Embed(action=action, agent=agent, session_key=session_key), EmbedReport)

    async def tags(self, agent: str | None = None, *, session_key: str | None = None) -> TagsReport:
        """Count the tags of notes, and the notes that they link to.

        Args:
            agent: The agent's id; None: all agents.
            session_key: The session that asks, for its own agent and the notes that it may see. None: the
                owner.
        """
        return await self._ask(Tags(agent=agent, session_key=session_key), TagsReport)

    async def warm(self, session_key: str, *, agent: str | None = None) -> SyncReport:
        """Bring the index up to date at the start of a session, once for each session key."""
        return await self._ask(Warm(session_key=session_key, agent=agent), SyncReport)

    async def redact(
        self, text: str, *, agent: str | None = None, session_key: str | None = None
    ) -> RedactedText:
        """Redact a text by the rules of an agent. For the owner, and for conversations without other readers."""
        return await self._ask(RedactText(text=text, agent=agent, session_key=session_key), RedactedText)

    async def ask(self, request: Request) -> WireMessage:
        """Send any request, for a program that passes on requests of others."""
        return await self._ask(request, WireMessage)

    async def reload(self) -> Reloaded:
        """Apply the whole configuration file, and wait for that. For the owner only."""
        return await self._ask(Reload(), Reloaded)

    async def stop(self) -> Stopping:
        """Stop the daemon, which still runs for a moment; a service manager may start it again. For the owner only."""
        return await self._ask(Stop(), Stopping)

    async def close(self) -> None:
        """Close the connections; calls in progress fail. The client stays closed."""
        self._is_closed = True
        here = self._current()
        for loop, connections in list(self._by_loop.items()):
            if connections is here:
                continue
            with suppress(RuntimeError):  # the loop has ended, and its connections with it
                loop.call_soon_threadsafe(connections.hang_up)
        await here.close()

    async def _ask(self, request: Request, kind: type[R]) -> R:
        connections = self._current()
        now = asyncio.get_running_loop().time()
        deadline = None if self._timeout_s is None else now + self._timeout_s
        try:
            async with asyncio.timeout_at(deadline) as limit:
                try:
                    reply = await self._exchange(connections, request, deadline)
                except ConnectionEnded:
                    reply = await self._exchange(connections, request, deadline)
        except TimeoutError:
            if not limit.expired():
                raise  # the program has a time limit of its own
            raise TimedOut(self._timeout_s or 0) from None
        except ConnectionEnded as gone:
            raise ConnectionLost(str(gone)) from None
        return checked_reply(reply, kind)

    async def _exchange(
        self, connections: "_LoopConnections", request: Request, deadline: float | None
    ) -> Reply:
        while True:
            # One call connects, and the others wait for it: a restarted daemon gets one new connection, not
            # one per call.
            async with connections.connecting:
                connection, is_fresh = await self._connected(connections)
            try:
                return await connection.ask(request, deadline)
            except _Retired:
                continue  # the request was not sent
            except ConnectionEnded as gone:
                # A new connection that ends was not lost to a restart, so a retry would not help.
                if is_fresh:
                    raise ConnectionLost(str(gone)) from None
                raise

    async def _connected(self, connections: "_LoopConnections") -> tuple["_Connection", bool]:
        """Return a usable connection, and whether it was just made."""
        self._check_open()
        if (connection := connections.find_usable()) is not None:
            return connection, False
        connection = await _connect(self._address)
        connections.add(connection)
        try:
            self._check_open()
        except ConnectionLost:
            await connection.close()
            raise
        return connection, True

    def _current(self) -> "_LoopConnections":
        """Return the connections of the running event loop; those of loops that have ended are closed."""
        loop = asyncio.get_running_loop()
        for other, connections in list(self._by_loop.items()):
            if other.is_closed() or not connections.is_of_this_process:
                self._by_loop.pop(other, connections).abandon()
        return self._by_loop.setdefault(loop, _LoopConnections())

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionLost(CLOSED)


class _Retired(Exception):
    """The connection takes no more requests; this one was not sent."""


class _LoopConnections:
    """The connections of one event loop: the last is in use, earlier ones still receive replies."""

    def __init__(self) -> None:
        self.connecting = asyncio.Lock()
        self._process = os.getpid()
        self._connections: list[_Connection] = []

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process has created it; in a forked child it is the parent's."""
        return self._process == os.getpid()

    def find_usable(self) -> "_Connection | None":
        if self._connections and self._connections[-1].is_usable:
            return self._connections[-1]
        return None

    def add(self, connection: "_Connection") -> None:
        self._connections = [*(one for one in self._connections if not one.has_ended), connection]

    def hang_up(self) -> None:
        """Close the connections; only in their event loop, where their descriptors are registered."""
        for connection in self._connections:
            connection.end()

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()

    def abandon(self) -> None:
        """Release the connections after their event loop has ended."""
        for connection in self._connections:
            connection.abandon()


class _Connection(asyncio.Protocol):
    """A connection after the exchange of hellos. Replies are matched to calls by id; others are dropped.

    A request whose caller has given up keeps its slot until the daemon has replied, because the daemon counts it, too.
    When half of the slots are taken by such requests, the connection is retired: it takes no more requests, and is
    closed after the last reply that a caller waits for, upon which the daemon cancels the rest.
    """

    def __init__(self, talk: Conversation, connected: socket.socket) -> None:
        self._talk = talk
        self._socket = connected
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._given_up: set[int] = set()
        self._is_retired = False
        self._end: MemdClientError | ConnectionEnded | None = None
        self._is_over = asyncio.Event()

    @property
    def is_usable(self) -> bool:
        return not self._is_retired and not self.has_ended

    @property
    def has_ended(self) -> bool:
        return self._end is not None or self._transport.is_closing()

    async def ask(self, request: Request, deadline: float | None) -> Reply:
        """Return the reply to a request; the deadline is a time of the event loop."""
        loop = asyncio.get_running_loop()
        await self._places.acquire()
        try:
            self._check_usable()
            left_s = None if deadline is None else deadline - loop.time()
            request_id, data = self._talk.ask(request, left_s)
        except BaseException:
            self._places.release()
            raise
        answer: asyncio.Future[Reply] = loop.create_future()
        self._waiting[request_id] = answer
        self._transport.write(data)
        try:
            return await answer
        finally:
            if self._waiting.pop(request_id, None) is not None and self._end is None:
                self._give_up(request_id)

    def _check_usable(self) -> None:
        if self._is_retired:
            raise _Retired
        if self.has_ended:
            raise copy.copy(self._end or self._talk.end())

    async def close(self) -> None:
        """Close the connection, and fail the calls that wait for a reply on it."""
        self.end()
        await self._is_over.wait()

    def end(self) -> None:
        """Like close, without waiting until the connection is closed."""
        self._finish(ConnectionLost(CLOSED))

    def abandon(self) -> None:
        """Close the connection without its event loop."""
        self._socket.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._talk.feed(data)
        try:
            while answer := self._talk.next_answer():
                self._answered(answer)
        except MemdClientError as error:
            self._finish(error)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  an end is an end
        self._finish(self._talk.end())
        self._is_over.set()

    def _answered(self, answer: Answer) -> None:
        waiting = self._waiting.pop(answer.request_id, None)
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(answer.reply)
            self._places.release()
        elif answer.request_id in self._given_up:
            self._given_up.discard(answer.request_id)
            self._places.release()
        self._close_if_done()

    def _give_up(self, request_id: int) -> None:
        self._given_up.add(request_id)
        if len(self._given_up) >= IN_FLIGHT // 2 and not self._is_retired:
            self._is_retired = True
            for _ in self._given_up:  # wakes calls that wait for a free slot
                self._places.release()
            self._given_up.clear()
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_retired and not self._waiting:
            self.end()

    def _finish(self, end: MemdClientError | ConnectionEnded) -> None:
        if self._end is not None:
            return
        self._end = end
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(copy.copy(end))  # each call raises its own copy, with its own traceback
        for _ in range(IN_FLIGHT):  # wakes calls that wait for a free slot
            self._places.release()
        self._transport.abort()


async def _connect(address: str) -> _Connection:
    while (connected := dial(address)) is None:  # noqa: ASYNC110  no event tells of room
        await asyncio.sleep(QUEUE_FULL_S)
    try:
        talk = await _greeted(connected)
        _, connection = await asyncio.get_running_loop().create_unix_connection(
            lambda: _Connection(talk, connected), sock=connected
        )
    except OSError as error:
        connected.close()
        raise ConnectionLost(f"The connection to the daemon broke: {error.strerror or error}.") from error
    except BaseException:
        connected.close()
        raise
    # Bytes that arrived with the hello are kept until the transport has a socket that it can close.
    connection.data_received(b"")
    return connection


async def _greeted(connected: socket.socket) -> Conversation:
    """Return a conversation after the exchange of hellos; a transport would drop what a daemon sends before it closes."""
    loop = asyncio.get_running_loop()
    talk = Conversation()
    with suppress(BrokenPipeError, ConnectionResetError):  # what the daemon sent before it closed says why
        await loop.sock_sendall(connected, talk.hello())
    while talk.next_hello() is None:
        data = b""
        with suppress(ConnectionResetError):
            data = await loop.sock_recv(connected, _PIECE)
        if not data:
            raise talk.end()
        talk.feed(data)
    return talk
