"""Checks each request to the page's server: only the page itself may ask, and only a one-time token opens it.

Any web page may send requests to a port of this machine, and any user of the machine may connect to it. So each request is
checked before it is handled: its host, path and method, the origin that the browser states, and, except for the page's static
files, a secret in a header, which a browser sends for no other page.
"""

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Clock = Callable[[], float]
"""Returns seconds, monotonic."""

TOKEN_S = 60.0  # during which the token opens the page
MAX_BODY_BYTES = 65_536
_SECRET = b"x-memd-secret"
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN_PATH = "/api/open"


class OneTimeToken:
    """A token that can be exchanged for the page's secret, once and within TOKEN_S."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """Create a token and a secret.

        Args:
            clock: Returns seconds, monotonic.
        """
        self.token = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        self._clock = clock
        self._ends = clock() + TOKEN_S
        self.used = asyncio.Event()  # set once it was exchanged

    @property
    def is_over(self) -> bool:
        """Whether the token was used or has expired."""
        return self.used.is_set() or self._clock() >= self._ends

    def exchange(self, token: str) -> str | None:
        """Return the secret for the token; None: the token is wrong, used or expired."""
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()) or self.is_over:
            return None
        self.used.set()
        return self._secret

    def opens(self, secret: bytes) -> bool:
        """Return whether this is the secret, and the token was exchanged for it."""
        return hmac.compare_digest(secret, self._secret.encode()) and self.used.is_set()


class RefusedRequest(msgspec.Struct, frozen=True):
    """The status and reason of a refusal."""

    status: int
    reason: str


class Gate:
    """ASGI middleware that passes on only requests of the page."""

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        methods: Mapping[str, str],
        token: OneTimeToken,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create the middleware of an application.

        Args:
            app: Called with the requests that pass.
            port: The port that it listens on.
            methods: The method of each existing path.
            token: The token that opens the page.
            clock: Returns seconds, monotonic.
        """
        self._app = app
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}
        self._methods = methods
        self._token = token
        self._clock = clock
        self.used_at = (
            clock()
        )  # clock time of the page's last request, without those that it repeats by itself

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _SECURITY.items()]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(refusal)(scope, receive, send_secured)
            return
        path = scope["path"]
        if path.startswith("/api/"):
            body = await _body(receive)
            if body is None:
                await _refuse(RefusedRequest(413, "The request is too long."))(scope, receive, send_secured)
                return
            if path not in {OPEN_PATH, "/api/events"}:
                self.used_at = self._clock()
            receive = _replayed(body, receive)
        await self._app(scope, receive, send_secured)

    def _refusal(self, scope: Scope) -> RefusedRequest | None:
        """Return why a request is refused because of its path or headers; None: it is not."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        [host, *more] = headers.get(b"host", [b""])
        if host not in self._hosts or more:
            return RefusedRequest(403, "This host is not served.")
        # A path must be spelt exactly as in the table, so none has to be decoded or normalised to check it.
        path = scope["path"]
        method = self._methods.get(path)
        if method is None or scope["raw_path"] != path.encode():
            return RefusedRequest(404, "There is no such page.")
        if scope["method"] != method:
            return RefusedRequest(405, "This page is asked in another way.")
        if headers.get(b"origin", [b"http://" + host]) != [b"http://" + host] or not _is_from_here(
            path, headers
        ):
            return RefusedRequest(403, "Another site may not ask.")
        return self._refused_api(path, headers) if path.startswith("/api/") else None

    def _refused_api(self, path: str, headers: Mapping[bytes, list[bytes]]) -> RefusedRequest | None:
        if headers.get(b"content-type") != [b"application/json"]:
            return RefusedRequest(415, "The request must be JSON.")
        [secret, *more] = headers.get(_SECRET, [b""])
        if path != OPEN_PATH and (more or not self._token.opens(secret)):
            return RefusedRequest(401, "The page has to be opened with `memd-ctl web`.")
        return None


def _is_from_here(path: str, headers: Mapping[bytes, list[bytes]]) -> bool:
    """Return whether a request comes from the page itself, or is a navigation of a person to the empty page.

    Browsers state the origin of a request in a header that no page can set; other programs do not send that header.
    """
    site = headers.get(b"sec-fetch-site")
    if site in (None, [b"same-origin"]):
        return True
    if path == "/":
        # To a browser, the file that redirects to the page is another site.
        return headers.get(b"sec-fetch-mode") == [b"navigate"] and headers.get(b"sec-fetch-dest") == [
            b"document"
        ]
    return site == [b"none"] and not path.startswith("/api/")


def _refuse(refusal: RefusedRequest) -> Response:
    return PlainTextResponse(f"{refusal.reason}\n", refusal.status, headers={"connection": "close"})


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None: it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a Receive that yields a body that was read already, and then passes on further messages."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
