"""Who is refused: other sites, other users of the machine, and whoever has an old address. Each line of the table in web.md."""

import os
import re
import signal
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from memd_client.web.gate import OneTimeToken
from tests.bounds import shipped
from tests.client.web.conftest import Page, end, start
from tests.clock import Clock
from tests.daemon.process import Daemon
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until

BODY = shipped("memd_client.web.gate.MAX_BODY_BYTES")
LIFE_S = shipped("memd_client.web.gate.TOKEN_S")
STATUS = {"type": "status"}


def test_the_page_itself_is_answered(page: Page) -> None:
    """By either name of this machine."""
    assert page.ask("status")["agents"].keys() == {"main"}
    by_name = f"localhost:{page.port}"
    answer = page.send("/api/ask", STATUS, head={"Host": by_name, "Origin": f"http://{by_name}"})
    assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/ask", "/nowhere", "/x/../api/ask", "//api/ask"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1:{port}@evil.example",
        "0.0.0.0:{port}",
        "2130706433:{port}",
        "localhost.:{port}",
        "LOCALHOST:{port}",
        "",
    ],
)
def test_rebinding(page: Page, host: str, path: str) -> None:
    """A name that another site has pointed at this machine is refused, on every path, with the secret or without."""
    answer = page.send(path, STATUS, head={"Host": host.format(port=page.port)})
    assert answer.status in {400, 403}
    assert b"main" not in answer.body


def test_no_or_several_hosts(page: Page) -> None:
    """One is named, or nothing is answered."""
    assert page.raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status == 400
    assert page.raw(b"GET / HTTP/1.0\r\n\r\n").status == 403
    ours = f"Host: 127.0.0.1:{page.port}\r\n"
    assert page.raw(
        f"GET / HTTP/1.1\r\n{ours}Host: evil.example\r\nConnection: close\r\n\r\n".encode()
    ).status in {400, 403}


@pytest.mark.parametrize(
    "path",
    [
        "/x/../api/ask",
        "//api/ask",
        "/api//ask",
        "/./api/ask",
        "/api/ask/",
        "/api%2fask",
        "/%61pi/ask",
        "/api/ask;x",
        "/API/ask",
        "/static/../../server.py",
        "/..%2f..%2fserver.py",
        "/%2e%2e/server.py",
        "/server.py",
        "/main.js/../server.py",
        "http://evil.example/api/ask",
        "/api/ask%00",
        "/\\api\\ask",
    ],
)
def test_tricks_with_paths(page: Page, path: str) -> None:
    """Only a path that is spelt as the table has it is one, without the secret and with it."""
    for head in ({}, {"X-Memd-Secret": None}):
        assert page.send(path, STATUS, head=head).status in {400, 404}
    assert page.send(path, head={}).status in {400, 404}


@pytest.mark.parametrize(
    "head",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin, cross-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
    ],
)
@pytest.mark.parametrize("path", ["/api/ask", "/api/open", "/api/events"])
def test_another_site_asks(page: Page, head: dict[str, str], path: str) -> None:
    """Whatever else it sends; another port of this machine is another site."""
    filled = {name: value.format(port=page.port) for name, value in head.items()}
    assert page.send(path, STATUS, head=filled).status == 403


def test_forms_of_another_site(page: Page) -> None:
    """What a form can send is no JSON, and no answer tells a browser that another site may read or ask."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None):
        head = {"Content-Type": kind, "Origin": None, "Sec-Fetch-Site": None}
        assert page.send("/api/ask", STATUS, head=head).status == 415
    asked = page.send("/api/ask", method="OPTIONS", head={"Origin": f"http://127.0.0.1:{page.port}"})
    assert asked.status == 405
    assert not [name for name in asked.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH"])
def test_other_methods(page: Page, method: str) -> None:
    """Each path has one."""
    assert page.send("/api/ask", STATUS, method=method).status in {400, 405}
    if method not in {"GET", "HEAD"}:
        assert page.send("/", method=method).status in {400, 405}


@pytest.mark.parametrize("path", ["/api/ask", "/api/note", "/api/events", "/api/doctor"])
@pytest.mark.parametrize("secret", [None, "", "x", "0" * 43])
def test_another_user_of_the_machine(page: Page, path: str, secret: str | None) -> None:
    """Who connects without the secret gets the empty page, and nothing of memory."""
    answer = page.send(path, {**STATUS, "path": "MEMORY.md"}, head={"X-Memd-Secret": secret})
    assert answer.status == 401
    assert b"PostgreSQL" not in answer.body
    assert (
        page.send(path, STATUS, head={"X-Memd-Secret": None, "Cookie": f"x-memd-secret={page.secret}"}).status
        == 401
    )
    assert page.send(path, STATUS, head={"X-Memd-Secret": f"{page.secret}\r\nX-Memd-Secret: x"}).status == 401
    assert b"PostgreSQL" not in page.send("/").body


def theft(port: str, opener: str, socket_path: str) -> dict[str, object]:
    """What somebody gets who is another user of this machine, by the port, the file that opens the page and the socket."""
    told: dict[str, object] = {"uid": os.getuid()}
    for name, path in (("opener", opener), ("listing", str(Path(opener).parent)), ("socket", socket_path)):
        try:
            if name == "socket":
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(20)
                    connection.connect(path)
                    told[name] = connection.recv(1).decode("latin-1")
            else:
                told[name] = Path(path).read_text() if name == "opener" else os.listdir(path)  # noqa: PTH208 - as an attacker
        except OSError as refused:
            told[name] = type(refused).__name__
    answers = []
    for path in ("/", "/api/ask"):
        body = b'{"type": "status"}'
        with socket.socket() as connection:
            connection.settimeout(20)
            connection.connect(("127.0.0.1", int(port)))
            method = "GET" if path == "/" else "POST"
            connection.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            said = b""
            while piece := connection.recv(65_536):
                said += piece
        answers.append([int(said.split()[1]), b"PostgreSQL" in said or b"workspace" in said])
    told["answers"] = answers
    return told


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_real_other_user_gets_nothing(remembering: Daemon) -> None:
    """Neither by the file that opens the page, though its directory be for all, nor by the port, nor by the daemon's socket."""
    with shared_directory() as shared:
        shared.chmod(0o1777)  # as /tmp
        page = start(remembering, shared)
        try:
            [file] = shared.iterdir()
            told = as_other_user(__name__, "theft", str(page.port), str(file), str(remembering.socket))
        finally:
            assert end(page) == 0
    assert told["uid"] != os.getuid()
    assert (told["opener"], told["listing"]) == ("PermissionError", [file.name])
    assert told["socket"] in {"PermissionError", ""}
    assert told["answers"] == [[200, False], [401, False]]


def test_a_token_opens_once(page: Page) -> None:
    """Whoever finds the address afterwards, in a history or on a screen, gets nothing."""
    again = page.send("/api/open", {"token": page.token})
    assert (again.status, page.secret.encode() in again.body) == (401, False)
    for wrong in (
        {"token": ""},
        {"token": "é\ud800"},
        {"token": page.token[:-1]},
        {"token": page.token + "x"},
    ):
        assert page.send("/api/open", wrong).status in {400, 401}
    wrong_kinds: list[object] = [{}, [], {"token": 1}, {"token": None}]
    for no_token in wrong_kinds:
        assert page.send("/api/open", no_token).status == 400


def test_a_token_is_for_a_minute() -> None:
    """It opens until then, and not from then on; a wrong one does not use it up."""
    clock = Clock()
    early, late = OneTimeToken(clock), OneTimeToken(clock)
    clock.now += LIFE_S - 0.01
    assert early.exchange("wrong") is None
    secret = early.exchange(early.token)
    assert secret is not None
    assert early.opens(secret.encode())
    clock.now += 0.02
    assert late.exchange(late.token) is None
    assert not late.opens(b"")
    assert early.opens(secret.encode())
    assert len({early.token, secret, late.token}) == 3


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_file_that_opens_it(remembering: Daemon, by: signal.Signals) -> None:
    """Only this user reads it, its name tells nothing, and it goes with the server, whatever ends that."""
    with tempfile.TemporaryDirectory() as scratch:
        page = start(remembering, Path(scratch))
        [file] = Path(scratch).iterdir()
        mode = stat.S_IMODE(file.stat().st_mode)
        assert (mode, file.stat().st_uid, page.token in file.name) == (0o600, os.getuid(), False)
        assert f'content="0; url=http://127.0.0.1:{page.port}/#{page.token}"' in file.read_text()
        assert page.token not in Path(f"/proc/{page.process.pid}/cmdline").read_text()
        assert page.send("/").status == 200
        assert file.exists()
        if by is signal.SIGINT:
            # Once the page is open it leads nowhere, and is gone before the server.
            assert page.send("/api/open", {"token": page.token}).status == 200
            until(lambda: not file.exists(), 20)
        assert end(page, by) == 0
        assert not list(Path(scratch).iterdir())


def test_it_listens_on_the_loopback_alone(page: Page) -> None:
    """Nobody else on the network can connect."""
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if " 0A " in line]
    ours = [place for place in listening if place.endswith(f":{page.port:04X}")]
    assert ours == [f"0100007F:{page.port:04X}"]


@pytest.mark.parametrize("path", ["/", "/main.js", "/style.css", "/nowhere", "/api/ask"])
def test_what_every_answer_forbids(page: Page, path: str) -> None:
    """Frames, scripts of others, guesses about types, and caches; also where it is a refusal."""
    answer = page.send(path, STATUS if path == "/api/ask" else None)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    expected = {
        "x-frame-options": "deny",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
    }
    assert {name: answer.headers.get(name) for name in expected} == expected
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("path", "site", "mode", "dest", "status"),
    [
        ("/", "cross-site", "navigate", "document", 200),
        ("/", "none", "navigate", "document", 200),
        ("/", "cross-site", "navigate", "iframe", 403),
        ("/", "cross-site", "no-cors", "image", 403),
        ("/main.js", "cross-site", "no-cors", "script", 403),
        ("/main.js", "same-site", "no-cors", "script", 403),
        ("/main.js", "same-origin", "no-cors", "script", 200),
    ],
)
def test_what_of_the_empty_page_another_site_gets(
    page: Page, path: str, site: str, mode: str, dest: str, status: int
) -> None:
    """A link may lead to it, as the file does that opens it; it is no frame, no picture and no script of another page."""
    head = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert page.send(path, head=head).status == status


def test_nothing_can_be_changed(page: Page) -> None:
    """Of the protocol only what reads is passed on."""
    for kind in ("stop", "reload", "reindex", "sync", "embed", "warm", "redact", "hello", "failure", "x"):
        answer = page.send("/api/ask", {"type": kind, "session_key": "main", "action": "pause", "text": "x"})
        assert answer.status == 400, kind
    assert page.ask("status")["agents"]["main"]["files"] == 15


def test_bodies_are_bounded(page: Page) -> None:
    """By what is announced and by what comes."""
    longest = {"type": "search", "query": "x" * (BODY - 100)}
    assert page.send("/api/ask", longest).status == 200
    assert page.send("/api/ask", {"type": "search", "query": "x" * BODY}).status == 413
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    lines = "".join(
        f"{name}: {value}\r\n"
        for name, value in {
            "Host": f"127.0.0.1:{page.port}",
            "Content-Type": "application/json",
            "X-Memd-Secret": page.secret,
            "Transfer-Encoding": "chunked",
        }.items()
    )
    assert (
        page.raw(f"POST /api/ask HTTP/1.1\r\n{lines}\r\n".encode() + piece * 2 + b"0\r\n\r\n").status == 413
    )


def test_the_table_names_tests_that_there_are() -> None:
    """Each attack has one."""
    table = (Path(__file__).parents[3] / "memd/docs/web.md").read_text(encoding="utf-8")
    rows = [line for line in table.partition("| attack ")[2].splitlines()[1:] if line.startswith("| ")]
    tests = [*Path(__file__).parent.glob("test_*.py"), Path(__file__).parents[2] / "web/test_page.py"]
    sources = "".join(file.read_text(encoding="utf-8") for file in tests)
    assert len(rows) == 17
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert all(f"def {name}(" in sources for name in named), row
