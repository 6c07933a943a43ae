"""The web server of the page: static files, and read-only requests that it passes on to the daemon."""

import asyncio
import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from memd_client.asynchronous import AsyncClient
from memd_client.errors import MemdClientError, RequestFailed
from memd_client.messages import (
    PLACES_FROM,
    Chunks,
    Duplicates,
    Explain,
    Files,
    Get,
    Search,
    Status,
    Tags,
    Turns,
)
from memd_client.web.gate import OPEN_PATH, TOKEN_S, Gate, OneTimeToken
from memd_client.web.rendering import tree

IDLE_S = 1800.0  # without requests, after which the server ends
MAX_NOTE_CHARS = 200_000  # longest part of a note that is shown; the rest can be read with `get`
MAX_STREAMS = 8  # concurrent event streams
MAX_CONNECTIONS = 64
DOCTOR_S = 60.0  # timeout of a checkup
_STATUS_S = 2.0  # between two status events
_STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    **{
        f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("main", "ask", "dom", "search", "browse", "state", "words")
    },
}

# The requests that the page may send: all are read-only.
_REQUESTS: msgspec.json.Decoder[
    Search | Explain | Get | Files | Chunks | Turns | Duplicates | Tags | Status
] = msgspec.json.Decoder(Search | Explain | Get | Files | Chunks | Turns | Duplicates | Tags | Status)


EditorName = Literal["vscode", "cursor", "zed", "idea", "obsidian", "none"]


class _Opening(msgspec.Struct, frozen=True):
    token: str


class _Checkup(msgspec.Struct, frozen=True):
    data: list[dict[str, Any]]  # name, result, detail and fix of each check


class _NoteWanted(msgspec.Struct, frozen=True):
    path: str
    agent: str | None = None


class Page:
    """Answers the requests of the page."""

    def __init__(
        self,
        client: AsyncClient,
        token: OneTimeToken,
        doctor: Sequence[str] = (),
        editor: EditorName = "none",
    ) -> None:
        """Create the handlers.

        Args:
            client: The client of the daemon.
            token: The token that opens the page.
            doctor: The command that runs the checks and prints JSON like memd-ctl; empty: there are none.
            editor: The editor in which the page opens notes, until the user chooses another.
        """
        self._editor = editor
        self._client = client
        self._token = token
        self._doctor = doctor
        self._checking = asyncio.Lock()
        self._streams = 0

    def routes(self) -> dict[str, tuple[str, Callable[[HttpRequest], Awaitable[Response]]]]:
        """Return method and handler of each path."""
        files = {path: ("GET", _static(*file)) for path, file in _STATIC.items()}
        return {
            **files,
            OPEN_PATH: ("POST", self.open),
            "/api/ask": ("POST", self.ask),
            "/api/note": ("POST", self.note),
            "/api/events": ("POST", self.events),
            "/api/doctor": ("POST", self.doctor),
        }

    async def open(self, request: HttpRequest) -> Response:
        """Exchange the token for the page's secret."""
        try:
            opening = msgspec.json.decode(await request.body(), type=_Opening)
        except msgspec.DecodeError:
            return _failed(400, "bad_request", "This is no token.")
        secret = self._token.exchange(opening.token)
        if secret is None:
            return _failed(401, "denied", "The address was used, or is older than a minute.", "memd-ctl web")
        return _json({"secret": secret, "editor": self._editor})

    async def ask(self, request: HttpRequest) -> Response:
        """Return the daemon's reply to a read-only request."""
        try:
            asked = _REQUESTS.decode(await request.body())
        except msgspec.DecodeError as error:
            return _failed(400, "bad_request", str(error))
        return await _answered(lambda: self._client.ask(asked))

    async def note(self, request: HttpRequest) -> Response:
        """Return the lines of a note as it is on disk, and its Markdown tree."""
        try:
            wanted = msgspec.json.decode(await request.body(), type=_NoteWanted)
        except msgspec.DecodeError as error:
            return _failed(400, "bad_request", str(error))
        return await _answered(lambda: self._read(wanted))

    async def _read(self, wanted: _NoteWanted) -> dict[str, Any]:
        """Read a note page by page, up to MAX_NOTE_CHARS."""
        text, place = "", 1
        more = True
        missing = False
        while more and len(text) < MAX_NOTE_CHARS:
            note = await self._client.get(wanted.path, agent=wanted.agent, start_line=place)
            missing = note.missing
            # A position within a line continues where the previous text ended.
            text += note.text if place > PLACES_FROM or not text else f"\n{note.text}"
            more = note.next_line is not None
            place = note.next_line or 1
        return {
            "path": wanted.path,
            "missing": missing,
            "lines": text.split("\n"),
            "tree": await asyncio.to_thread(tree, text),
            "more": more,
        }

    async def doctor(self, request: HttpRequest) -> Response:
        """Run the checks and return what is wrong, one checkup at a time."""
        del request
        if not self._doctor:
            return _json([])
        async with self._checking:
            process = await asyncio.create_subprocess_exec(
                *self._doctor,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(DOCTOR_S):
                    printed, _ = await process.communicate()
                return _json(msgspec.json.decode(printed, type=_Checkup).data)
            except (TimeoutError, msgspec.DecodeError):
                return _failed(503, "unavailable", "The checkup did not end.", "memd-ctl doctor")
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    async def events(self, request: HttpRequest) -> Response:
        """Stream the daemon's status as server-sent events."""
        del request
        if self._streams >= MAX_STREAMS:
            return _failed(429, "busy", "Too many pages look at the state.")
        return StreamingResponse(self._states(), media_type="text/event-stream")

    async def _states(self) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            while True:
                try:
                    said = msgspec.json.encode(await self._client.status())
                except MemdClientError as error:
                    said = _failure("unavailable", str(error), error.hint)
                yield b"data: " + said + b"\n\n"
                await asyncio.sleep(_STATUS_S)
        finally:
            self._streams -= 1


def _static(name: str, media_type: str) -> Callable[[HttpRequest], Awaitable[Response]]:
    content = resources.files("memd_client.web").joinpath("static", name).read_bytes()

    async def answer(request: HttpRequest) -> Response:
        del request
        return Response(content, media_type=media_type)

    return answer


async def _answered(ask: Callable[[], Awaitable[Any]]) -> Response:
    try:
        return _json(await ask())
    except RequestFailed as refused:
        return _failed(422, refused.code, str(refused), refused.hint)
    except MemdClientError as error:
        return _failed(503, "unavailable", str(error), error.hint)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _failure(code: str, message: str, hint: str | None) -> bytes:
    return json.dumps({"type": "failure", "code": code, "message": message, "hint": hint}).encode()


def _failed(status: int, code: str, message: str, hint: str | None = None) -> Response:
    return Response(_failure(code, message, hint), status, media_type="application/json")


class WebServer:
    """The web server on a loopback port that the system chooses."""

    def __init__(
        self,
        daemon_socket: Path,
        *,
        doctor: Sequence[str] = (),
        editor: EditorName = "none",
        idle_s: float = IDLE_S,
    ) -> None:
        """Bind a port; requests are answered once `run` was called.

        Args:
            daemon_socket: The path of the daemon's socket.
            doctor: See Page.
            editor: See Page.
            idle_s: Seconds without requests after which the server ends.
        """
        self._daemon_socket = daemon_socket
        self._doctor = doctor
        self._editor: EditorName = editor
        self._idle_s = idle_s
        self._opener: Path | None = None
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS)
        self.port = self._socket.getsockname()[1]
        self.token = OneTimeToken()

    @property
    def address(self) -> str:
        """The address that opens the page once, within a minute; browsers do not send its fragment, the token."""
        return f"http://127.0.0.1:{self.port}/#{self.token.token}"

    @contextlib.contextmanager
    def opener(self) -> Iterator[Path]:
        """Create a file that only this user may read, and that redirects a browser to the address.

        It is deleted when the token becomes invalid, at the latest at the end of the block. The command line
        of a program can be read by all users of a machine, but the name of this file reveals nothing.
        """
        handle, name = tempfile.mkstemp(prefix="memd-web-", suffix=".html")
        file = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(
                    f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                    f'<meta http-equiv="refresh" content="0; url={self.address}"><title>memd</title>\n'
                )
            self._opener = file
            yield file
        finally:
            file.unlink(missing_ok=True)

    def run(self) -> None:
        """Serve until a signal, or until the page was not used for `idle_s`.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        with self._socket:
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with AsyncClient(self._daemon_socket) as client:
            routes = Page(client, self.token, self._doctor, self._editor).routes()
            app = Starlette(
                routes=[Route(path, answer, methods=[method]) for path, (method, answer) in routes.items()]
            )
            gate = Gate(app, self.port, {path: method for path, (method, _) in routes.items()}, self.token)
            server = uvicorn.Server(
                uvicorn.Config(
                    gate,
                    log_config=None,
                    access_log=False,
                    lifespan="off",
                    ws="none",
                    http="h11",
                    loop="asyncio",
                    proxy_headers=False,
                    server_header=False,
                    limit_concurrency=MAX_CONNECTIONS,
                    timeout_graceful_shutdown=1,
                    h11_max_incomplete_event_size=16_384,
                )
            )
            watching = [
                asyncio.create_task(self._end_unused(server, gate)),
                asyncio.create_task(self._remove_opener()),
            ]
            try:
                await server.serve(sockets=[self._socket])
            finally:
                for task in watching:
                    task.cancel()

    async def _remove_opener(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOKEN_S):
                await self.token.used.wait()
        if self._opener is not None:
            self._opener.unlink(missing_ok=True)

    async def _end_unused(self, server: uvicorn.Server, gate: Gate) -> None:
        while (left_s := gate.used_at + self._idle_s - time.monotonic()) > 0:  # noqa: ASYNC110 - no event tells that nothing happens
            await asyncio.sleep(left_s)
        server.should_exit = True
