"""Where the key to an account never gets to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from tests.daemon.process import Daemon
from tests.wait import until

KEY, HEADER = "sk-mellon-0123456789abcdef", "team-mellon-secret"


class _Blabber(BaseHTTPRequestHandler):
    """Refuses every request, and repeats the key in the answer, as OpenAI does in part."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        said = (
            f"Incorrect API key provided: {self.headers.get('authorization')}, {self.headers.get('x-team')}."
        )
        body = msgspec.json.encode({"error": {"message": said, "code": "invalid_api_key"}})
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _blabbing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Blabber)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.rows(1)
@pytest.mark.parametrize("place", ["api_key", "api_key_file"])
def test_a_key_stays_between_memd_and_the_provider(home: Path, place: str) -> None:
    """It is in no log, status, reply or file of the daemon, not even where the server repeats it."""
    (home / "key").write_text(KEY)
    value = KEY if place == "api_key" else str(home / "key")
    with _blabbing() as base_url:
        settings = (
            'provider = "openai"\n[agents.main.remote]\n'
            f'base_url = "{base_url}"\n{place} = "{value}"\nheaders = {{ X-Team = "{HEADER}" }}\n'
        )
        daemon = Daemon(home, settings=settings, real_model=True)
        daemon.config.write_text(daemon.config.read_text() + '[daemon]\nlog_level = "debug"\n')
        daemon.write("MEMORY.md", "We chose PostgreSQL for the billing service.\n")
        with daemon.start(environ={"HOME": str(home)}), daemon.client() as client:
            until(lambda: not client.status().agents["main"].provider_health.ok, 20)
            replies = [client.sync(vectors=False), client.search("which database?"), client.status()]
            assert daemon.stop() == 0
    told = [msgspec.json.encode(reply) for reply in replies] + [daemon.log.read_bytes()]
    kept = [file.read_bytes() for file in daemon.state.rglob("*") if file.is_file()]
    assert kept
    assert not [text for text in told + kept if b"mellon" in text]
