"""The page's server as a program of its own, over a daemon with notes and a transcript; and raw requests to it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memd_client.web.server import DOCTOR_S
from tests.daemon import chats
from tests.daemon.process import Daemon

# Made up; the rules know its form.
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
HOSTILE = """# Hostile <img src=x onerror=alert(1)>

<script>document.title = "owned"</script>
<svg onload="document.title = 'owned'"><a xlink:href="javascript:alert(1)">x</a></svg>
<iframe srcdoc="<script>parent.document.title = 'owned'</script>"></iframe><base href="https://elsewhere.example/">
<meta http-equiv="refresh" content="0; url=https://elsewhere.example/"><style>* { display: none }</style>

[a link](javascript:alert(1)) and ![a picture](https://elsewhere.example/x.png) and <https://elsewhere.example/>
[data](data:text/html,<script>alert(1)</script>) [tab](java\tscript:alert(1)) [vb](VBSCRIPT:x) [ref]

[ref]: javascript:alert(2) "onmouseover=alert(1)"

Right to left: \u202egnp.exe\u202c, isolated \u2066x\u2069, NUL \x00, hidden \u200b, and **bold** text. 我们选了数据库。

- one

  > two

```html
<b>three</b>
```

| a | b |
|---|---|
| 1 | <script>alert(1)</script> |
"""
# Names of files are text of strangers, too.
HOSTILE_NAMES = (
    "memory/odd/<img src=x onerror=alert(1)>.md",
    "memory/odd/\u202edm.exe.md",
    "memory/odd/javascript:alert(1).md",
    "memory/odd/%2e%2e%2f\"'&#.md",
)


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Page:
    """A server that runs, with its secret."""

    def __init__(self, daemon: Daemon, process: "subprocess.Popen[str]") -> None:
        self.daemon = daemon
        self.process = process
        assert process.stderr is not None
        printed = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", printed)
        assert found, printed
        self.port, self.token = int(found[1]), found[2]
        self.secret = ""

    def raw(self, data: bytes) -> Answer:
        """What the server answers to these bytes, on a connection of their own."""
        with socket.create_connection(("127.0.0.1", self.port), DOCTOR_S + 30.0) as connection:
            connection.sendall(data)
            said = b""
            # A server that has heard enough closes while there is more to hear: the system then tells of a reset.
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(1 << 16):
                    said += piece
        head, _, body = said.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        return Answer(int(first.split()[1]) if first else 0, headers, body)

    def send(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        head: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """The answer to a request as the page makes it, but for these headers; None leaves one out."""
        payload = b"" if body is None else json.dumps(body).encode()
        headers: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if body is not None:
            headers |= {
                "Content-Type": "application/json",
                "Content-Length": str(len(payload)),
                "Origin": f"http://127.0.0.1:{self.port}",
                "Sec-Fetch-Site": "same-origin",
                "X-Memd-Secret": self.secret,
            }
        headers |= head or {}
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        method = method or ("GET" if body is None else "POST")
        return self.raw(
            "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + payload
        )

    def ask(self, kind: str, **fields: Any) -> Any:
        """The daemon's answer."""
        answer = self.send("/api/ask", {"type": kind, **fields})
        assert answer.status == 200, answer
        return answer.json


def start(daemon: Daemon, scratch: Path) -> Page:
    """memd-ctl web, whose temporary files are in a directory of its own."""
    places = ["--socket", daemon.socket, "--config", daemon.config, "--state-dir", daemon.state]
    command = [sys.executable, "-m", "memd.ctl", *map(str, places), "web", "--no-browser"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}
    )
    return Page(daemon, process)


def end(page: Page, by: signal.Signals = signal.SIGINT) -> int:
    """End it, as Ctrl-C does or by another signal; its status."""
    page.process.send_signal(by)
    with page.process:
        return page.process.wait(60)


@contextlib.contextmanager
def page_daemon() -> Iterator[Daemon]:
    """A daemon with notes, of which one is hostile, and a transcript in which a token was pasted."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        daemon = Daemon(home, settings=chats.settings(home, provider="local"))
        daemon.write("MEMORY.md", "# Memory\n\nWe picked **PostgreSQL** as the database.\n")
        daemon.write("memory/2026-02-09.md", "# Monday\n\nThe lighthouse was painted red. #work/paint\n")
        daemon.write("memory/ops/2026-02-10.md", "# Tuesday\n\nThe database server moved.\n")
        daemon.write("memory/hostile.md", HOSTILE)
        for name in HOSTILE_NAMES:
            daemon.write(name, f"# {name}\n\nThe submarine is yellow.\n")
        daemon.write(
            "memory/deep.md", "> " * 5_000 + "deep\n\n" + "- " * 5_000 + "deep\n" + "[" * 5_000 + "\n"
        )
        daemon.write("memory/long.md", "# Long\n\n" + "".join(f"Line {n} of many.\n" for n in range(4, 400)))
        daemon.write("memory/wide.md", "w" * 300_000 + "\n")
        for number, day in ((12, "Ann"), (14, "Ann and Bob")):
            said = f"The crane was repaired on the second pier after the storm, by {day}."
            daemon.write(f"memory/ops/2026-02-{number}.md", f"# Pier\n\n{said}\n")
        daemon.write(
            "memory/ops/2026-02-08.md",
            "---\nstatus: superseded\nsuperseded-by: '[[2026-02-10]]'\n---\n# Before\n\nThe server is in Lyon.\n",
        )
        session = chats.begun(home, "Which database did we pick?", f"My token is {TOKEN}, keep it.")
        session.assistant("PostgreSQL, as we\nwrote down.", at=chats.AT + 300)
        with daemon:
            with daemon.client() as client:
                client.sync()
            yield daemon


@pytest.fixture(scope="session")
def remembering() -> Iterator[Daemon]:
    """A daemon with things to see."""
    with page_daemon() as daemon:
        yield daemon


@pytest.fixture(scope="module")
def page(remembering: Daemon) -> Iterator[Page]:
    """A server whose page is open."""
    with tempfile.TemporaryDirectory() as scratch:
        one = start(remembering, Path(scratch))
        try:
            answer = one.send("/api/open", {"token": one.token})
            assert answer.status == 200, answer
            one.secret = answer.json["secret"]
            yield one
        finally:
            status = end(one)
        assert status == 0
