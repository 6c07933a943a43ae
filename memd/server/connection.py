"""One client: frames in, frames out, in any order, with bounds on everything."""

import asyncio
import select
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec
import structlog

from memd_client import codec
from memd_client.connect_socket import peer_uid
from memd_client.messages import PROTOCOL, Failure, Hello, Reply, Request

log = structlog.get_logger()


class ConnectionLimits(msgspec.Struct, frozen=True):
    """How much of the daemon one client may take."""

    in_flight: int = 64  # requests; beyond, it is not read
    hello_s: float = 10.0  # a client that says nothing is in nobody's way for long
    frame_s: float = 30.0  # from the first byte of a frame to its last
    unread_s: float = 30.0  # how long it may leave its replies unread


_USUAL = ConnectionLimits()

Handle = Callable[[Request], Awaitable[Reply]]


class Connection(asyncio.Protocol):
    """The server's side of one connection. Made for each client by the event loop."""

    def __init__(
        self,
        handle: Handle,
        uid: int,
        version: str,
        connections: "set[Connection]",
        bounds: ConnectionLimits = _USUAL,
    ) -> None:
        """Make the protocol of one connection that is to come.

        Args:
            handle: Answers a request; its failures are answers too.
            uid: Who may connect.
            version: Of the daemon, for its greeting.
            connections: Holds this one from its beginning to its end.
            bounds: How much of the daemon the client may take.
        """
        self._handle = handle
        self._uid = uid
        self._version = version
        self._connections = connections
        self._bounds = bounds
        self._reader = codec.FrameReader(codec.REQUEST_LIMIT)
        self._transport: asyncio.Transport
        self._requests: set[asyncio.Task[None]] = set()
        self._greeted = False
        self._reading = True
        self._ended = False  # the client has sent its last byte
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._closing = False
        self._moved_at = asyncio.get_running_loop().time()  # when something came or was answered last

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there: it must run as the daemon's user."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        uid = peer_uid(self._transport.get_extra_info("socket"))
        if uid is not None and uid != self._uid:
            log.warning("server.stranger_refused", uid=uid)
            self._closing = True  # what it sent already is not read
            self._transport.abort()
            return
        self._connections.add(self)
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The client is gone: nobody wants its answers."""
        self._closing = True
        self._connections.discard(self)
        self._expect_nothing()
        if self._unread is not None:
            self._unread.cancel()
        for request in self._requests:
            request.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes arrived, of any number of frames."""
        if self._closing:
            return
        self._moved_at = asyncio.get_running_loop().time()
        self._reader.feed(data)
        self._pump()

    def eof_received(self) -> bool:
        """The client sends no more; it may still wait for replies."""
        self._ended = True
        return bool(self._requests) and not has_hung_up(self._transport.get_extra_info("socket"))

    def pause_writing(self) -> None:
        """The client does not read: it gets no more to read, and not for ever."""
        self._unread = asyncio.get_running_loop().call_later(self._bounds.unread_s, self._give_up)
        self._read(wanted=False)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._pump()

    # --- frames

    def _pump(self) -> None:
        """Start what can be started: every whole frame, up to the number in flight."""
        took = False
        try:
            while not self._closing and not self._is_full:
                frame = self._reader.next_frame()
                if frame is None:
                    break
                took = True
                self._take(frame)
        except codec.FrameTooLarge as error:
            self._refuse("too_large", str(error))
        if self._closing:
            return
        self._read(wanted=not self._is_full)
        if took or self._is_full:
            self._expect_nothing()
        # Not begun anew by each byte: a client that trickles is too slow as well.
        if self._patience is None and not self._is_full and (self._reader.is_midway or not self._greeted):
            patience_s = self._bounds.frame_s if self._greeted else self._bounds.hello_s
            self._patience = asyncio.get_running_loop().call_later(patience_s, self._too_slow)

    @property
    def _is_full(self) -> bool:
        return self._unread is not None or len(self._requests) >= self._bounds.in_flight

    def _read(self, *, wanted: bool) -> None:
        # After the end of a stream, libuv must not be told to read it again.
        if wanted != self._reading and not self._closing and not self._ended:
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _take(self, frame: bytes) -> None:
        if not self._greeted:
            self._greet(frame)
            return
        try:
            number, request = codec.decode_request(frame)
        except codec.NotUnderstood as error:
            self._send(error.request_id, Failure(code=error.code, message=error.message))
            return
        except codec.Garbage as error:
            self._refuse("protocol", f"not a memd request: {error}")
            return
        task = asyncio.create_task(self._answer(number, request))
        self._requests.add(task)
        task.add_done_callback(self._answered)

    def _greet(self, frame: bytes) -> None:
        try:
            hello = codec.decode_hello(frame)
        except codec.Garbage as error:
            self._refuse("protocol", f"the first frame must be a hello: {error}")
            return
        self._transport.write(
            codec.encode_frame(
                codec.encode_hello(Hello(protocol=PROTOCOL, version=self._version)), codec.REPLY_LIMIT
            )
        )
        if hello.protocol != PROTOCOL:
            log.info("server.other_protocol", client=hello.protocol, daemon=PROTOCOL)
            self._refuse(
                "protocol",
                f"this daemon speaks protocol {PROTOCOL}, the client {hello.protocol}: update the older of the two",
            )
            return
        self._greeted = True

    async def _answer(self, number: int, request: Request) -> None:
        self._send(number, await self._handle(request))

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        self._moved_at = asyncio.get_running_loop().time()
        if self._closing:
            return
        self._pump()
        if self._ended and not self._requests:
            self.close()

    def _send(self, number: int, reply: Reply) -> None:
        if self._closing:
            return
        try:
            frame = codec.encode_frame(codec.encode_reply(number, reply), codec.REPLY_LIMIT)
        except codec.FrameTooLarge as error:
            failure = Failure(
                code="too_large",
                message=f"the reply would be too large: {error}",
                hint="Ask for fewer results.",
            )
            frame = codec.encode_frame(codec.encode_reply(number, failure), codec.REPLY_LIMIT)
        except codec.Unsendable as error:
            # The name of a file or directory may be no valid Unicode. Without an answer the client would wait for ever.
            failure = Failure(code="internal", message=f"the reply cannot be sent: {error}")
            frame = codec.encode_frame(codec.encode_reply(number, failure), codec.REPLY_LIMIT)
        self._transport.write(frame)

    # --- ends

    @property
    def unsent_bytes(self) -> int:
        """What was written and the kernel has not taken yet."""
        return self._transport.get_write_buffer_size()

    @property
    def silent_since(self) -> float | None:
        """Since when, of the loop's clock, neither side has anything to say; None: one has."""
        return None if self._requests or self._closing else self._moved_at

    def _expect_nothing(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        self._refuse("protocol", "the frame that was begun did not end" if self._greeted else "no hello came")

    def _refuse(self, code: str, message: str) -> None:
        """Say what is wrong, then close."""
        self._send(0, Failure(code=code, message=message))
        self.close()

    def _give_up(self) -> None:
        log.warning("server.unread_client_dropped", after_s=self._bounds.unread_s)
        self._transport.abort()

    def close(self) -> None:
        """Close after what is written has gone out, which is waited for as long as for other replies."""
        self._closing = True
        self._transport.close()
        if self._unread is None and self.unsent_bytes:
            self._unread = asyncio.get_running_loop().call_later(self._bounds.unread_s, self._give_up)


def has_hung_up(connection: socket.socket) -> bool:
    """Whether the peer has closed its end; False where it only says no more, or the system tells no difference."""
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(connection.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
