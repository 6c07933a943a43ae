"""The client for programs with an event loop."""

import asyncio
import copy
import os
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar, cast

from memd_client.conversation import CLOSED, IN_FLIGHT, Conversation, WentAway, settle
from memd_client.dial import QUEUE_FULL_S, default_address, dial
from memd_client.errors import ConnectionLost, MemdClientError, TimedOut
from memd_client.messages import (
    Embed,
    EmbedAction,
    EmbedReport,
    Explain,
    Explanation,
    Found,
    Get,
    Message,
    Note,
    Reindex,
    ReindexReport,
    Reply,
    Request,
    Search,
    Source,
    Status,
    StatusReport,
    Sync,
    SyncReport,
    Warm,
)
from memd_client.timeout import checked_timeout

_PIECE = 1 << 12  # bytes read at once while greeting

R = TypeVar("R", bound=Message)


class AsyncClient:
    """Asks the daemon, many questions at a time over one connection.

    The methods and their arguments are those of Client, and so are the errors. It serves one event loop at a
    time; in a later one it connects anew. A task that is cancelled, or runs out of time, harms no other.

    Args:
        socket: The socket of the daemon; None: where this user's daemon listens.
        timeout: Seconds that a whole call may take; None: as long as it takes.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, timeout: float | None = 10.0) -> None:
        self._address = os.fspath(socket) if socket else default_address()
        self._timeout_s = checked_timeout(timeout)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting = asyncio.Lock()
        self._wire: _Wire | None = None
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
    ) -> Found:
        """Find what memory says about a question."""
        return await self._ask(
            Search(
                query=query,
                max_results=max_results,
                min_score=min_score,
                source=source,
                agent=agent,
                session_key=session_key,
                max_chars=max_chars,
            ),
            Found,
        )

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
        """Bring the index up to date with the disk. Ends in time even where vectors do not."""
        return await self._ask(
            Sync(agent=agent, force=force, wait=wait, vectors=vectors, session_key=session_key), SyncReport
        )

    async def status(self, agent: str | None = None, *, session_key: str | None = None) -> StatusReport:
        """How everything is; None: of every agent."""
        return await self._ask(Status(agent=agent, session_key=session_key), StatusReport)

    async def reindex(
        self,
        *,
        agent: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        session_key: str | None = None,
    ) -> ReindexReport:
        """Build the index anew beside the old one, and swap."""
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
    ) -> Explanation:
        """Search, and tell how each hit came to its place."""
        return await self._ask(
            Explain(
                query=query,
                max_results=max_results,
                min_score=min_score,
                source=source,
                agent=agent,
                session_key=session_key,
            ),
            Explanation,
        )

    async def embed(
        self, action: EmbedAction, agent: str | None = None, *, session_key: str | None = None
    ) -> EmbedReport:
        """Have embedding pause or go on, pay for what waits to be confirmed, or have batch jobs again."""
        return await self._ask(Embed(action=action, agent=agent, session_key=session_key), EmbedReport)

    async def warm(self, session_key: str, *, agent: str | None = None) -> SyncReport:
        """Tell that a session begins: the index is brought up to date, once for each session key."""
        return await self._ask(Warm(session_key=session_key, agent=agent), SyncReport)

    async def close(self) -> None:
        """Close the connection; calls that are under way lose it. The client stays closed."""
        self._is_closed = True
        self._enter_loop()
        if self._wire:
            await self._wire.close()

    async def _ask(self, request: Request, kind: type[R]) -> R:
        now = self._enter_loop().time()
        deadline = None if self._timeout_s is None else now + self._timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                try:
                    reply = await self._exchange(request, deadline)
                except WentAway:
                    reply = await self._exchange(request, deadline)
        except TimeoutError:
            raise TimedOut(self._timeout_s or 0) from None
        except WentAway as gone:
            raise ConnectionLost(str(gone)) from None
        return settle(reply, kind)

    async def _exchange(self, request: Request, deadline: float | None) -> Reply:
        # One connects, the others wait for it: a restarted daemon meets one new connection, not one a caller.
        async with self._connecting:
            wire, is_fresh = await self._connected()
        try:
            return await wire.ask(request, deadline)
        except WentAway as gone:
            if is_fresh:  # then it is no restart, and a second try would not mend it
                raise ConnectionLost(str(gone)) from None
            raise

    async def _connected(self) -> tuple["_Wire", bool]:
        """A usable connection, and whether it was made just now."""
        self._check_open()
        if self._wire and self._wire.is_usable:
            return self._wire, False
        self._wire = await _connect(self._address)
        try:
            self._check_open()
        except ConnectionLost:
            await self._wire.close()
            raise
        return self._wire, True

    def _enter_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # One asyncio.run follows another, and what the first left open is bound to a loop that is over.
            if self._wire:
                self._wire.abandon()
            self._loop, self._connecting, self._wire = loop, asyncio.Lock(), None
        return loop

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionLost(CLOSED)


class _Wire(asyncio.Protocol):
    """A greeted connection. Each answer finds its asker by the id; one that nobody waits for is dropped."""

    def __init__(self, talk: Conversation, connected: socket.socket) -> None:
        self._talk = talk
        self._socket = connected
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._end: MemdClientError | WentAway | None = None
        self._is_over = asyncio.Event()

    @property
    def is_usable(self) -> bool:
        return self._end is None and not self._transport.is_closing()

    async def ask(self, request: Request, deadline: float | None) -> Reply:
        """The answer to a request; the deadline is a time of the event loop."""
        loop = asyncio.get_running_loop()
        async with self._slots:
            if not self.is_usable:
                raise copy.copy(self._end or self._talk.end())
            left_s = None if deadline is None else deadline - loop.time()
            request_id, data = self._talk.ask(request, left_s)
            answer: asyncio.Future[Reply] = loop.create_future()
            self._waiting[request_id] = answer
            try:
                self._transport.write(data)
                return await answer
            finally:
                self._waiting.pop(request_id, None)

    async def close(self) -> None:
        """Let go of the connection, and of those who wait for an answer on it."""
        self._finish(ConnectionLost(CLOSED))
        await self._is_over.wait()

    def abandon(self) -> None:
        """Let go of the connection without the event loop that it belongs to."""
        self._socket.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._talk.feed(data)
        try:
            while answer := self._talk.next_answer():
                waiting = self._waiting.get(answer.request_id)
                if waiting and not waiting.done():
                    waiting.set_result(answer.reply)
        except MemdClientError as error:
            self._finish(error)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  an end is an end
        self._finish(self._talk.end())
        self._is_over.set()

    def _finish(self, end: MemdClientError | WentAway) -> None:
        if self._end is not None:
            return
        self._end = end
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(copy.copy(end))  # each raises its own, with its own traceback
        self._transport.abort()


async def _connect(address: str) -> _Wire:
    while (connected := dial(address)) is None:  # noqa: ASYNC110  no event tells of room
        await asyncio.sleep(QUEUE_FULL_S)
    try:
        talk = await _greeted(connected)
        _, wire = await asyncio.get_running_loop().create_unix_connection(
            lambda: _Wire(talk, connected), sock=connected
        )
    except OSError as error:
        connected.close()
        raise ConnectionLost(f"The connection to the daemon broke: {error.strerror or error}.") from error
    except BaseException:
        connected.close()
        raise
    # What came together with the greeting waits until the transport has a socket that it can close.
    wire.data_received(b"")
    return wire


async def _greeted(connected: socket.socket) -> Conversation:
    """A conversation that is greeted; a transport would drop what a daemon says before it hangs up."""
    loop = asyncio.get_running_loop()
    talk = Conversation()
    with suppress(BrokenPipeError, ConnectionResetError):  # what the daemon said before it hung up tells why
        await loop.sock_sendall(connected, talk.hello())
    while talk.next_hello() is None:
        data = b""
        with suppress(ConnectionResetError):
            data = await loop.sock_recv(connected, _PIECE)
        if not data:
            raise talk.end()
        talk.feed(data)
    return talk
