"""Sends HTTP requests; no other module of memd does."""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from importlib.util import find_spec

import httpx

from memd import VERSION
from memd.config import check_embedding
from memd.errors import MemdError
from memd.providers.api_keys import Account
from memd.providers.remote.dialect import BadReply, HttpAnswer, HttpRequest, NoReply, Refused, RequestTimedOut
from memd.runtime.threads import beside

CONNECT_S = 10.0
# Bytes; 256 vectors of 3,072 numbers take 17 MB, and files of batches are read by lines.
LARGEST_ANSWER = 128 << 20
LONGEST_LINE = 4 << 20  # bytes; a vector of 16,384 numbers takes a tenth of that
LARGEST_REFUSAL = 64 << 10  # bytes that are read of an error reply

BROKEN_OFF = 16  # cancelled or timed-out requests after which a client is replaced by a new one

# At each step of a request httpcore imports sniffio, to know which library runs the event loop. Where it is not installed, Python
# looks for it on the disk each time, a third of the CPU of a short request. Without it, httpcore takes asyncio, which is so.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # an import fails at once

# Errors that httpx passes through beside its own: ssl.SSLError is an OSError, idna.IDNAError a ValueError.
_BROKEN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError)


class _Pool:
    """A client with its connections, and the number of its running requests."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.under_way = 0
        self.broken_off = 0  # requests that were cancelled or timed out


class HttpConnections:
    """Keep-alive connections to one provider.

    No request waits inside the client's own pool: httpcore 1.0.9 loses a slot of a bounded pool when a request is cancelled before
    its connection is used, and blocks once all are lost. So slots are counted here, the pool is unbounded, and lost connections
    are closed with the client, which is replaced after some cancelled requests.
    """

    def __init__(self, provider: str, account: Account, key_header: str | None, connections: int) -> None:
        """Create the pool; requests open connections.

        Args:
            provider: The provider's name, for messages.
            account: Address and key.
            key_header: The header for the key; None: Authorization with a bearer token.
            connections: The most concurrent requests.
        """
        self._provider = provider
        self._account = account
        self._key_header = key_header
        self._connections = connections
        self._places = asyncio.Semaphore(connections)
        self._tls: ssl.SSLContext | None = None
        self._pool: _Pool | None = None
        self._is_closed = False
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()  # tasks that close replaced clients

    async def send(self, call: HttpRequest, timeout_s: float) -> HttpAnswer:
        """Send a request, and return the whole answer, whatever its status.

        Cancellation closes the connection, so that the provider does not continue unnoticed.

        Args:
            call: The request.
            timeout_s: For the whole request and answer.

        Raises:
            RequestTimedOut, NoReply: there was no complete answer.
            BadReply: the answer is too large.
            Refused: the environment names an unusable proxy or certificate file.
        """
        try:
            async with asyncio.timeout(timeout_s), self._connected() as client:
                return await self._exchange(client, call)
        except TimeoutError as late:
            raise RequestTimedOut(f"{self._provider}: no answer within {timeout_s:g} s") from late
        except _BROKEN as failure:
            raise NoReply(f"{self._provider}: {_why(failure)}") from failure

    async def lines(
        self, call: HttpRequest, timeout_s: float, failure: Callable[[HttpAnswer], MemdError]
    ) -> AsyncGenerator[bytes]:
        """Yield the lines of an answer that may be larger than memory.

        Empty lines and lines longer than LONGEST_LINE are left out. Use contextlib.aclosing if not all lines are read.

        Args:
            call: The request.
            timeout_s: For each line, not for the whole answer, which may be a large file.
            failure: Creates the error to raise for an answer without success, of which at least the beginning was read.

        Raises:
            RequestTimedOut, NoReply: the answer is incomplete.
            Refused: the environment names an unusable proxy or certificate file.
            MemdError: created by `failure`.
        """
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(timeout_s):
                    client = await stack.enter_async_context(self._connected())
                    response = await stack.enter_async_context(
                        client.stream(call.method, self._url(call), headers=dict(call.headers))
                    )
                    pieces = response.aiter_bytes()
                    if not response.is_success:
                        body = await _beginning(pieces)
                        raise failure(HttpAnswer(response.status_code, _names(response.headers), body))
                lines = await stack.enter_async_context(contextlib.aclosing(_lines(pieces)))
                while True:
                    async with asyncio.timeout(timeout_s):
                        line = await anext(lines, None)
                    if line is None:
                        return
                    yield line
        except TimeoutError as late:
            raise RequestTimedOut(f"{self._provider}: no answer within {timeout_s:g} s") from late
        except _BROKEN as broken:
            raise NoReply(f"{self._provider}: {_why(broken)}") from broken

    async def _exchange(self, client: httpx.AsyncClient, call: HttpRequest) -> HttpAnswer:
        headers = dict(call.headers)
        content: bytes | AsyncIterator[bytes] | None = call.body or None
        if call.body:
            headers["content-type"] = call.content_type
        if call.more:
            headers["content-length"] = str(call.size)
            content = _pieces(call)
        async with client.stream(call.method, self._url(call), content=content, headers=headers) as response:
            pieces = response.aiter_bytes()
            body = await (self._all(pieces) if response.is_success else _beginning(pieces))
            return HttpAnswer(response.status_code, _names(response.headers), body)

    async def _all(self, pieces: AsyncIterator[bytes]) -> bytes:
        body = bytearray()
        async for piece in pieces:
            body += piece
            if len(body) > LARGEST_ANSWER:
                raise BadReply(f"{self._provider}: the answer is larger than {LARGEST_ANSWER >> 20} MB")
        return bytes(body)

    def _url(self, call: HttpRequest) -> str:
        """Return the URL of a call: always on the account's own server, whatever its path is."""
        return f"{self._account.origin if call.path.startswith('/') else self._account.base_url + '/'}{call.path}"

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[httpx.AsyncClient]:
        """Wait for a free slot, and return a client in a context.

        Raises:
            NoReply: the session is closed.
            Refused: no client can be created.
        """
        async with self._places:
            pool = await self._opened()
            pool.under_way += 1
            try:
                yield pool.client
            except (asyncio.CancelledError, TimeoutError):
                pool.broken_off += 1
                raise
            finally:
                pool.under_way -= 1
                self._exchange_after(pool)

    def _exchange_after(self, pool: _Pool) -> None:
        """Replace a client with many lost connections, and close it after its last request."""
        if pool.broken_off < BROKEN_OFF:
            return
        if self._pool is pool:
            self._pool = None
        if not pool.under_way:
            closing = asyncio.ensure_future(pool.client.aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _opened(self) -> _Pool:
        async with self._opening:
            if self._is_closed:
                raise NoReply(f"{self._provider}: the connection is closed")
            if self._pool is None:
                self._tls = self._tls or await self._context()
                self._pool = _Pool(self._made(self._tls))
            return self._pool

    def _made(self, context: ssl.SSLContext) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                verify=context,
                headers=self._headers(),
                timeout=httpx.Timeout(None, connect=CONNECT_S),
                limits=httpx.Limits(
                    max_connections=None, max_keepalive_connections=self._connections, keepalive_expiry=30.0
                ),
                follow_redirects=False,  # a redirect would send the key along
                # A proxy serves external addresses: it would see what is sent within the local network.
                trust_env=not check_embedding.is_near(self._account.base_url),
            )
        except ImportError as missing:
            raise Refused(
                f"{self._provider}: the proxy that the environment names speaks SOCKS, which needs the Python package"
                " socksio: run `pip install socksio` where memd is installed, or start memd without ALL_PROXY."
            ) from missing
        except (ValueError, httpx.InvalidURL) as fault:
            raise Refused(
                f"{self._provider}: the proxy that the environment names (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY) has"
                " an address that is none."
            ) from fault

    async def _context(self) -> ssl.SSLContext:
        if self._account.base_url.startswith("http:"):
            # An http address needs no certificates, so none are loaded.
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            # Loading all root certificates takes a while.
            return await beside(ssl.create_default_context)
        except (OSError, ValueError) as fault:
            raise Refused(
                f"{self._provider}: no encrypted connection can be made: a file that the environment names (SSL_CERT_FILE,"
                " SSL_CERT_DIR or SSLKEYLOGFILE) cannot be used."
            ) from fault

    def _headers(self) -> dict[str, str]:
        headers = {"user-agent": f"memd/{VERSION}", "accept": "application/json"}
        if self._account.key is not None:
            if self._key_header is None:
                headers["authorization"] = f"Bearer {self._account.key}"
            else:
                headers[self._key_header] = self._account.key
        return headers | {name.lower(): value for name, value in self._account.headers.items()}

    async def close(self) -> None:
        """Close all connections; running and later requests fail."""
        async with self._opening:
            self._is_closed = True
            if self._pool is not None:
                await self._pool.client.aclose()
        if self._closing:
            await asyncio.wait(self._closing)


def _names(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def _pieces(call: HttpRequest) -> AsyncIterator[bytes]:
    """Yield a large body in pieces: sending it as a whole would block the event loop."""
    yield call.body
    for piece in call.more:
        yield piece


async def _beginning(pieces: AsyncIterator[bytes]) -> bytes:
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) > LARGEST_REFUSAL:
            break
    return body


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    line = bytearray()
    is_whole = True  # False: too much of the line was dropped
    async for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            line += end
            if is_whole and len(line) <= LONGEST_LINE and line.strip():
                yield bytes(line)
            line.clear()
            is_whole = True
        line += rest
        if len(line) > LONGEST_LINE:
            line.clear()
            is_whole = False
    if is_whole and line.strip():
        yield bytes(line)


def _why(failure: Exception) -> str:
    """Return the kind of a failure. The message of httpx is left out, since it may quote a URL with a key."""
    if isinstance(failure, httpx.ConnectError):
        return _why_not_connected(failure)
    if isinstance(failure, httpx.TimeoutException):
        return "the server does not answer"
    if isinstance(failure, httpx.ProxyError):
        return "the proxy refuses"
    if isinstance(failure, httpx.DecodingError):
        return "the answer is broken"
    if isinstance(failure, ssl.SSLError):
        return "the encrypted connection broke off"
    if isinstance(failure, UnicodeError):
        return "remote.base_url names a host that cannot be"
    return f"the connection broke off ({type(failure).__name__})"


def _why_not_connected(failure: httpx.ConnectError) -> str:
    for cause in _causes(failure):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"the server's certificate is not trusted ({cause.verify_message}): correct remote.base_url or the clock of"
                " this machine, or start memd with SSL_CERT_FILE naming a file with the root certificates of your network"
            )
        if isinstance(cause, ssl.SSLError):
            return "no encrypted connection can be made: see whether remote.base_url leads to a server that speaks HTTPS"
        if isinstance(cause, socket.gaierror):
            return (
                "the name of the server, or of the proxy on the way, has no address: correct remote.base_url, or see to"
                " the network and the DNS of this machine"
            )
    return "the server cannot be reached"


def _causes(failure: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an exception."""
    cause = failure.__cause__ or failure.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
