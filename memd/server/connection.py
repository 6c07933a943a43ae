"""The server's side of one client connection: requests and replies in any order, with a limit on everything."""

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
    """Limits on what one client may use."""

    in_flight: int = 64  # concurrent requests; at the limit nothing more is read from the client
    hello_s: float = 10.0  # time for the client's first frame
    frame_s: float = 30.0  # time from the first byte of a frame to its last
    unread_s: float = 30.0  # time for which replies may stay unread


_USUAL = ConnectionLimits()

Handle = Callable[[Request], Awaitable[Reply]]


class Connection(asyncio.Protocol):
    """The server's side of one connection; the event loop creates one for each client."""

    def __init__(
        self,
        handle: Handle,
        uid: int,
        version: str,
        connections: "set[Connection]",
        bounds: ConnectionLimits = _USUAL,
    ) -> None:
        """Create the protocol object of a connection that is about to be made.

        Args:
            handle: Answers a request; a failure is a reply, too.
            uid: The only user who may connect.
            version: The daemon's version, sent in its hello.
            connections: Contains this connection while it is open.
            bounds: The limits of this connection.
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
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._closing = False
        # loop time of the last byte received or reply sent
        self._moved_at = asyncio.get_running_loop().time()

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the client if it runs as the daemon's user; otherwise abort the connection."""
        # uvloop's class does not inherit from asyncio.Transport
        self._transport = cast("asyncio.Transport", transport)
        uid = peer_uid(self._transport.get_extra_info("socket"))
        if uid is not None and uid != self._uid:
            log.warning("server.stranger_refused", uid=uid)
            self._closing = True  # data that has arrived is not read
            self._transport.abort()
            return
        self._connections.add(self)
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Cancel the client's requests: nobody will read the replies."""
        self._closing = True
        self._connections.discard(self)
        self._expect_nothing()
        if self._unread is not None:
            self._unread.cancel()
        for request in self._requests:
            request.cancel()

    def data_received(self, data: bytes) -> None:
        """Process received bytes: any part of any number of frames."""
        if self._closing:
            return
        self._moved_at = asyncio.get_running_loop().time()
        self._reader.feed(data)
        self._pump()

    def eof_received(self) -> bool:
        """The client has sent everything; return whether to keep the connection open for its replies."""
        self._ended = True
        return bool(self._requests) and not has_hung_up(self._transport.get_extra_info("socket"))

    def pause_writing(self) -> None:
        """The client does not read its replies: stop reading from it, and drop it after `unread_s`."""
        self._unread = asyncio.get_running_loop().call_later(self._bounds.unread_s, self._give_up)
        self._read(wanted=False)

    def resume_writing(self) -> None:
        """The client reads again: continue reading from it."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._pump()

    # --- frames

    def _pump(self) -> None:
        """Process complete frames until the limit of concurrent requests is reached."""
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
        # Not restarted by each byte, so that a client that trickles bytes runs into the timeout, too.
        if self._deadline is None and not self._is_full and (self._reader.is_midway or not self._greeted):
            timeout_s = self._bounds.frame_s if self._greeted else self._bounds.hello_s
            self._deadline = asyncio.get_running_loop().call_later(timeout_s, self._too_slow)

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
        except codec.InvalidMessage as error:
            self._send(error.request_id, Failure(code=error.code, message=error.message))
            return
        except codec.InvalidPayload as error:
            self._refuse("protocol", f"not a memd request: {error}")
            return
        task = asyncio.create_task(self._answer(number, request))
        self._requests.add(task)
        task.add_done_callback(self._answered)

    def _greet(self, frame: bytes) -> None:
        try:
            hello = codec.decode_hello(frame)
        except codec.InvalidPayload as error:
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
        except codec.Unencodable as error:
            # A file name may not be valid Unicode. Without a reply the client would wait forever.
            failure = Failure(code="internal", message=f"the reply cannot be sent: {error}")
            frame = codec.encode_frame(codec.encode_reply(number, failure), codec.REPLY_LIMIT)
        self._transport.write(frame)

    # --- closing

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes written that the kernel has not accepted yet."""
        return self._transport.get_write_buffer_size()

    @property
    def silent_since(self) -> float | None:
        """Loop time since when the connection is idle; None if a request is open or the connection closes."""
        return None if self._requests or self._closing else self._moved_at

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._refuse("protocol", "the frame that was begun did not end" if self._greeted else "no hello came")

    def _refuse(self, code: str, message: str) -> None:
        """Send an error, then close."""
        self._send(0, Failure(code=code, message=message))
        self.close()

    def _give_up(self) -> None:
        log.warning("server.unread_client_dropped", after_s=self._bounds.unread_s)
        self._transport.abort()

    def close(self) -> None:
        """Close once the written replies are sent, which may take up to `unread_s`."""
        self._closing = True
        self._transport.close()
        if self._unread is None and self.unsent_bytes:
            self._unread = asyncio.get_running_loop().call_later(self._bounds.unread_s, self._give_up)


def has_hung_up(connection: socket.socket) -> bool:
    """Return whether the peer has closed its socket; False if it only shut down writing, or the system cannot say."""
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(connection.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
