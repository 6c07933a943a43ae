"""What the page is told."""

import asyncio
import importlib.resources
import json
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from memd_client import AsyncClient
from memd_client.web import server
from memd_client.web.gate import OneTimeToken
from memd_client.web.server import WebServer
from tests.bounds import shipped
from tests.client.web.conftest import TOKEN, Page
from tests.clock import hastily, now_s
from tests.daemon.process import Daemon
from tests.wait import until

NOTE_CHARS = shipped("memd_client.web.server.MAX_NOTE_CHARS")
CONNECTIONS = shipped("memd_client.web.server.MAX_CONNECTIONS")
STREAMS = shipped("memd_client.web.server.MAX_STREAMS")
IDLE_S = shipped("memd_client.web.server.IDLE_S")


def test_search_and_explain(page: Page) -> None:
    """Hits with all that the page shows of them, with filters."""
    found = page.ask("search", query="which database did we pick?", max_results=20, max_chars=0)
    assert {hit["path"] for hit in found["results"]} >= {"MEMORY.md"}
    filtered = page.ask(
        "search", query="lighthouse", only=["tag:work"], since="2026-02-01", until="2026-02-28"
    )
    assert [hit["path"] for hit in filtered["results"]] == ["memory/2026-02-09.md"]
    told = page.ask("explain", query="which database did we pick?")
    assert told["candidates"][0]["by_words"] > 0


def test_browsing(page: Page) -> None:
    """Files, and a transcript without the token that was pasted into it."""
    assert page.ask("files", folder="")["folders"] == {"memory/": 13, "sessions/": 1}
    [session] = page.ask("files", source="sessions")["files"]
    said = page.ask("turns", path=session["path"])
    assert [turn["role"] for turn in said["turns"]] == ["user", "user", "assistant"]
    assert "[REDACTED:" in said["turns"][1]["text"]
    assert TOKEN not in json.dumps(said) + json.dumps(page.ask("chunks", path=session["path"]))


def test_duplicates(page: Page) -> None:
    """What is superseded, and what says the same."""
    told = page.ask("duplicates")["pairs"]
    assert [(pair["why"], pair["one"]["path"], pair["other"]["path"]) for pair in told] == [
        ("superseded", "memory/ops/2026-02-08.md", "memory/ops/2026-02-10.md"),
        ("copy", "memory/ops/2026-02-12.md", "memory/ops/2026-02-14.md"),
    ]


def test_a_note_of_several_answers_is_one(page: Page) -> None:
    """With all its lines, in their order; of a line too long for one answer all of it, and of a note that is too long the beginning."""
    long = page.send("/api/note", {"path": "memory/long.md"}).json
    assert long["lines"] == ["# Long", "", *(f"Line {n} of many." for n in range(4, 400))]
    assert (long["missing"], long["more"]) == (False, False)
    wide = page.send("/api/note", {"path": "memory/wide.md"}).json
    assert wide["more"]
    [line] = wide["lines"]
    assert NOTE_CHARS <= len(line) < 300_000
    assert set(line) == {"w"}
    gone = page.send("/api/note", {"path": "../config.toml"}).json
    assert (gone["missing"], gone["lines"], gone["tree"]) == (True, [""], [])


def test_what_the_daemon_refuses(page: Page) -> None:
    """Its reason reaches the page; what is no request is none."""
    refused = page.send("/api/ask", {"type": "search", "query": "x", "since": "lst week"})
    assert (refused.status, refused.json["code"], "lst week" in refused.json["message"]) == (
        422,
        "bad_request",
        True,
    )
    unknown = page.send("/api/note", {"path": "a.md", "agent": "nobody"})
    assert (unknown.status, unknown.json["code"]) == (422, "unknown_agent")
    for path, wrong in (
        ("/api/ask", {"query": "x"}),
        ("/api/ask", []),
        ("/api/note", {}),
        ("/api/ask", {"type": "search"}),
    ):
        assert page.send(path, wrong).status == 400


def test_the_state_comes_again_and_again(page: Page) -> None:
    """As events, to some pages at a time; who goes away makes room."""
    lines = (
        f"POST /api/events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Type: application/json\r\n"
        f"X-Memd-Secret: {page.secret}\r\nContent-Length: 2\r\n\r\n{{}}"
    ).encode()
    streams = []
    for _ in range(STREAMS):
        connection = socket.create_connection(("127.0.0.1", page.port), 20)
        connection.sendall(lines)
        streams.append(connection)
    with streams[0].makefile("rb") as stream:
        told: list[Any] = []
        while len(told) < 2:
            line = stream.readline()
            if line.startswith(b"data: "):
                told.append(json.loads(line[6:]))
    assert [each["agents"]["main"]["files"] for each in told] == [15, 15]
    for connection in streams[1:]:
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert page.send("/api/events", {}).status == 429
    for connection in streams:
        connection.close()

    def is_taken() -> bool:
        with socket.create_connection(("127.0.0.1", page.port), 20) as connection:
            connection.sendall(lines)
            return connection.recv(12) == b"HTTP/1.1 200"

    until(is_taken, 20)


def test_a_checkup(page: Page) -> None:
    """Each finding with its remedy, where one is needed."""
    found = page.send("/api/doctor", {}).json
    assert {"daemon.version", "state.directory"} <= {one["name"] for one in found}
    assert all(one["ok"] or one["fix"] for one in found)


@pytest.mark.parametrize(
    "program", ["import time; time.sleep(60)", "print('no list')", "raise SystemExit(3)"]
)
def test_a_checkup_without_an_end(tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, and the page says where to look."""
    monkeypatch.setattr(server, "DOCTOR_S", 0.5)
    command = [sys.executable, "-c", program]
    answering = server.Page(AsyncClient(tmp_path / "nowhere.sock"), OneTimeToken(), command)
    with TestClient(Starlette(routes=[Route("/doctor", answering.doctor, methods=["POST"])])) as client:
        answer = client.post("/doctor")
    assert (answer.status_code, answer.json()["hint"]) == (503, "memd-ctl doctor")


def test_connections_are_bounded(page: Page) -> None:
    """Whoever holds all of them keeps the page from answering, and nothing else; it answers when they are gone."""
    held = [socket.create_connection(("127.0.0.1", page.port), 20) for _ in range(CONNECTIONS)]
    until(lambda: page.send("/").status == 503, 20)
    with page.daemon.client() as client:
        assert client.status().agents
    for connection in held:
        connection.close()
    until(lambda: page.send("/").status == 200, 20)


def test_a_daemon_that_is_away(tmp_path: Path) -> None:
    """The page is told, and what to do."""
    answering = server.Page(AsyncClient(tmp_path / "nowhere.sock"), OneTimeToken())
    routes = [
        Route("/ask", answering.ask, methods=["POST"]),
        Route("/note", answering.note, methods=["POST"]),
    ]
    with TestClient(Starlette(routes=routes)) as client:
        for path, body in (("/ask", {"type": "status"}), ("/note", {"path": "a.md"})):
            answer = client.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert "memd" in answer.json()["message"]


def test_the_file_that_opens_it_goes_with_its_token(
    remembering: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads nowhere once the token is too old."""
    monkeypatch.setattr(server, "TOKEN_S", 0.1)
    serving = WebServer(remembering.socket, idle_s=2.0)
    with serving.opener() as file:
        assert file.exists()
        serving.run()
        assert not file.exists()


def test_an_unused_server_ends(remembering: Daemon) -> None:
    """By itself, after half an hour; here sooner."""
    WebServer(remembering.socket, idle_s=0.2).run()


def test_a_server_goes_on_for_half_an_hour_without_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may come back to the page."""
    ended_after_s: list[float] = []
    began = time.monotonic()

    async def serve(uvicorn: Any, **_: object) -> None:
        while not uvicorn.should_exit:  # noqa: ASYNC110 - as uvicorn does
            await asyncio.sleep(1)
        ended_after_s.append(now_s())

    monkeypatch.setattr("uvicorn.Server.serve", serve)
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: began + now_s()))
    monkeypatch.setattr(asyncio, "run", hastily)
    WebServer(tmp_path / "no-socket").run()
    assert ended_after_s == [pytest.approx(IDLE_S, abs=300)]


def test_the_page_is_small_and_asks_nobody_else() -> None:
    """All of its files are in the package, below 150 kB, name no other host, and make no HTML of strings."""
    static = importlib.resources.files("memd_client.web").joinpath("static")
    texts = {file.name: file.read_text(encoding="utf-8") for file in static.iterdir()}
    assert {name.split(".")[1] for name in texts} == {"html", "css", "js"}
    assert sum(len(text.encode()) for text in texts.values()) < 150_000
    everything = "".join(texts.values())
    for forbidden in (
        "http://",
        "https://",
        "//cdn",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "document.cookie",
        "localStorage",
        "style=",
    ):
        assert forbidden not in everything, forbidden
