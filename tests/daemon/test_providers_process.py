"""Remote embedding providers and the process: how it ends while a provider hangs, and what a kill leaves behind."""

from pathlib import Path

import pytest

from tests.daemon.process import Daemon
from tests.daemon.remote import leaks
from tests.fakes.embedding_server import KEY, EmbeddingServer
from tests.fakes.http import Response
from tests.wait import until


def settings(server: EmbeddingServer, provider: str) -> str:
    """TOML of an agent that is embedded by the local server."""
    return (
        f'provider = "{provider}"\nmodel = "some-model"\n'
        f'remote = {{ base_url = "{server.base_url(provider)}", api_key = "{KEY}", concurrency = 1 }}'
    )


def test_a_daemon_stops_in_time_while_a_request_hangs(home: Path) -> None:
    """A provider that does not answer keeps nobody from stopping; its connection is closed."""
    with EmbeddingServer() as server:
        server.plan = lambda _: Response(delay_s=3600)
        with Daemon(home, settings=settings(server, "openai"), real_model=True) as daemon:
            daemon.write("memory/a.md", "The lighthouse was painted red.\n")
            until(lambda: server.requests("embed"), 20)
            assert daemon.stop() == 0
            assert KEY not in daemon.printed()


@pytest.mark.long
def test_a_killed_switch_goes_on_from_the_cache(home: Path) -> None:
    """What the new provider had embedded before the kill is not asked for again; the old vectors answer meanwhile."""
    with (
        EmbeddingServer() as old,
        EmbeddingServer() as new,
        Daemon(home, settings=settings(old, "openai"), real_model=True) as daemon,
    ):
        for number in range(40):
            daemon.write(
                f"memory/{number}.md", f"# Matter {number}\n\n" + f"word{number} lighthouse red. " * 180
            )
        with daemon.client() as client:
            until(
                lambda: client.sync().vectors == "complete" and client.search("lighthouse").mode == "hybrid",
                20,
            )
        daemon.stop()
        new.delay_s = 0.3
        daemon.configure(settings(new, "voyage"))
        daemon.start()
        until(lambda: len(notes(new)) >= 3, 20)
        daemon.kill()
        new.delay_s = 0.0
        daemon.start()
        with daemon.client() as client:
            until(lambda: client.search("lighthouse").provider == "voyage", 20)
            assert client.sync().vectors == "complete"
            found = client.search("lighthouse word3")
            assert (found.mode, found.degraded) == ("hybrid", [])
        daemon.stop()
        # When the third request was put, the answer to the first one had been kept.
        first, *later = notes(new)
        assert set(first).isdisjoint(text for texts in later for text in texts)
        assert leaks(home, KEY) == []


def notes(server: EmbeddingServer) -> list[tuple[str, ...]]:
    """The texts of each request for the vectors of notes."""
    return [
        one.texts for one in server.requests("embed") if any("lighthouse red" in text for text in one.texts)
    ]
