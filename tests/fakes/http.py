"""A small HTTP server on the loopback, for stand-ins of services."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

import h11
import msgspec

_STEPS = 5  # of the loop, from a connection that is taken, or closed, to the end of that


class Request(msgspec.Struct, frozen=True):
    """What came in."""

    method: str
    target: str  # path with its query
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Response(msgspec.Struct, frozen=True):
    """What goes out, and how badly."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    content_type: str = "application/json"
    delay_s: float = 0.0  # before the first byte
    cut_after: int | None = None  # bytes of the body, then the connection is closed
    hold_after: int | None = None  # bytes of the body, then nothing more comes while the client waits
    drip_s: float = 0.0  # between one byte of the body and the next
    reset: bool = False  # the connection is closed with no answer at all


Handler = Callable[[Request], Awaitable[Response]]


class Server:
    """Serves on a thread of its own, so that tests may block; ends with its `with` block."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._started = threading.Event()
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.open_connections = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def refuse(self) -> None:
        """Break off every connection, and refuse new ones."""

        async def end() -> None:
            await self._stop_listening()
            for writer in self._writers:
                writer.transport.abort()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(60)

    def listen(self) -> None:
        """Take connections again, where it did before."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)

    async def _listen(self) -> None:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._stop_listening())
        while tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.run_until_complete(self._run_on())  # what was closed is
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _stop_listening(self) -> None:
        """Take no more connections; one that was just taken gets to whoever will close it.

        `asyncio.Server.close` forgets the connections that it is still setting up: their sockets stay open.
        """
        if self._listening is None:
            return
        for listening in self._listening.sockets:
            self._loop.remove_reader(listening.fileno())
        await self._run_on()
        self._listening.close()
        self._listening = None

    async def _run_on(self) -> None:
        for _ in range(_STEPS):
            await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self._writers.add(writer)
        try:
            await self._talk(reader, writer)
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass
        finally:
            self.open_connections -= 1
            self._writers.discard(writer)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            request = await _read(connection, reader)
            if request is None:
                return
            answering = asyncio.ensure_future(self._handler(request))
            # A client that goes away is noticed, as a real server would.
            response = await answering
            await asyncio.sleep(response.delay_s)
            if response.reset:
                writer.transport.abort()
                return
            if not await _write(connection, reader, writer, response):
                return
            if connection.our_state is h11.MUST_CLOSE:
                return
            connection.start_next_cycle()


async def _read(connection: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(1 << 16))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode().lower(): value.decode("latin-1") for name, value in head.headers}
            return Request(head.method.decode(), head.target.decode(), headers, bytes(body))
        else:
            return None  # the client has closed


async def _write(
    connection: h11.Connection,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    response: Response,
) -> bool:
    """Send a response; whether the connection may be used again."""
    headers = {
        "content-type": response.content_type,
        "content-length": str(len(response.body)),
        **response.headers,
    }
    writer.write(
        connection.send(h11.Response(status_code=response.status, headers=list(headers.items()))) or b""
    )
    body = response.body if response.cut_after is None else response.body[: response.cut_after]
    if response.hold_after is not None:
        writer.write(connection.send(h11.Data(data=body[: response.hold_after])) or b"")
        await writer.drain()
        await reader.read(1)  # until the client has gone
        return False
    if response.drip_s:
        for number in range(len(body)):
            writer.write(connection.send(h11.Data(data=body[number : number + 1])) or b"")
            await writer.drain()
            await asyncio.sleep(response.drip_s)
    else:
        writer.write(connection.send(h11.Data(data=body)) or b"")
    await writer.drain()
    if len(body) < len(response.body):
        return False
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    await writer.drain()
    return True
