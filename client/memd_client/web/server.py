"""The server of the page: static files, and requests that only read, passed on to the daemon."""

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

IDLE_S = 1800.0  # without a question of the page, after which the server ends
MAX_NOTE_CHARS = 200_000  # of a note that is shown; a longer one is read with `get`
MAX_STREAMS = 8  # of events at a time
MAX_CONNECTIONS = 64
DOCTOR_S = 60.0  # for which a checkup may take
_STATUS_S = 2.0  # between two looks at the status
_STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    **{
        f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("main", "ask", "dom", "search", "browse", "state", "words")
    },
}

# All that the page may ask: nothing of this changes anything.
_REQUESTS: msgspec.json.Decoder[
    Search | Explain | Get | Files | Chunks | Turns | Duplicates | Tags | Status
] = msgspec.json.Decoder(Search | Explain | Get | Files | Chunks | Turns | Duplicates | Tags | Status)


EditorName = Literal["vscode", "cursor", "zed", "idea", "obsidian", "none"]


class _Opening(msgspec.Struct, frozen=True):
    token: str


class _Checkup(msgspec.Struct, frozen=True):
    data: list[dict[str, Any]]  # of each check its name, whether it is ok, a detail and how to mend it


class _NoteWanted(msgspec.Struct, frozen=True):
    path: str
    agent: str | None = None


class Page:
    """Answers what the page asks."""

    def __init__(
        self,
        client: AsyncClient,
        token: OneTimeToken,
        doctor: Sequence[str] = (),
        editor: EditorName = "none",
    ) -> None:
        """Answer from a daemon.

        Args:
            client: Of the daemon.
            token: That opens the page.
            doctor: The command that prints what is wrong, as memd-ctl prints JSON; none: nothing is.
            editor: That the page opens notes in, until its person chooses another.
        """
        self._editor = editor
        self._client = client
        self._token = token
        self._doctor = doctor
        self._checking = asyncio.Lock()
        self._streams = 0

    def routes(self) -> dict[str, tuple[str, Callable[[HttpRequest], Awaitable[Response]]]]:
        """Each path, with its method and what answers."""
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
        """The secret of the page, for the token."""
        try:
            opening = msgspec.json.decode(await request.body(), type=_Opening)
        except msgspec.DecodeError:
            return _failed(400, "bad_request", "This is no token.")
        secret = self._token.exchange(opening.token)
        if secret is None:
            return _failed(401, "denied", "The address was used, or is older than a minute.", "memd-ctl web")
        return _json({"secret": secret, "editor": self._editor})

    async def ask(self, request: HttpRequest) -> Response:
        """The daemon's answer to a request that only reads."""
        try:
            asked = _REQUESTS.decode(await request.body())
        except msgspec.DecodeError as error:
            return _failed(400, "bad_request", str(error))
        return await _answered(lambda: self._client.ask(asked))

    async def note(self, request: HttpRequest) -> Response:
        """The lines of a note as they are on the disk, and as Markdown."""
        try:
            wanted = msgspec.json.decode(await request.body(), type=_NoteWanted)
        except msgspec.DecodeError as error:
            return _failed(400, "bad_request", str(error))
        return await _answered(lambda: self._read(wanted))

    async def _read(self, wanted: _NoteWanted) -> dict[str, Any]:
        """All pages of a note, up to what is shown at once."""
        text, place = "", 1
        more = True
        missing = False
        while more and len(text) < MAX_NOTE_CHARS:
            note = await self._client.get(wanted.path, agent=wanted.agent, start_line=place)
            missing = note.missing
            # A place within a line goes on where the text before it ended.
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
        """What is wrong, and how it is mended; one checkup at a time."""
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
                return _failed(503, "unavailable", "The checkup came to no end.", "memd-ctl doctor")
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    async def events(self, request: HttpRequest) -> Response:
        """The status of the daemon, again and again, as server-sent events."""
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
    """A server on a port of the loopback that the system chooses."""

    def __init__(
        self,
        daemon_socket: Path,
        *,
        doctor: Sequence[str] = (),
        editor: EditorName = "none",
        idle_s: float = IDLE_S,
    ) -> None:
        """Take a port; nothing is answered before run.

        Args:
            daemon_socket: Of the daemon.
            doctor: As of Page.
            editor: As of Page.
            idle_s: Seconds without a question of the page, after which the server ends.
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
        """Opens the page, once and for a minute; the token is behind the #, which no browser sends."""
        return f"http://127.0.0.1:{self.port}/#{self.token.token}"

    @contextlib.contextmanager
    def opener(self) -> Iterator[Path]:
        """A file that only this user may read, and that leads a browser to the address.

        It is there until the token in it opens nothing any more, at the latest until the end of the block.

        What a program is started with can be read by all users of a machine; the name of this file tells nothing.
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
        """Serve until a signal, or until the page has not been used for long.

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
