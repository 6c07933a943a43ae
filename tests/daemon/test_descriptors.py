"""A daemon that runs out of descriptors goes on answering, rests, says so once, and catches up."""

import errno
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from memd.server.acceptor import LOOK_S, Acceptor, keep_listening
from memd.server.listening_socket import ListeningSocket
from memd_client import Client, RequestFailed
from tests.clock import for_s, hastily
from tests.daemon.chats import begun, directory, holding, say, settings
from tests.daemon.fresh import PATIENT
from tests.daemon.observed import open_files, rests, warnings
from tests.daemon.process import Daemon
from tests.daemon.trouble import BLUE, RED
from tests.wait import until


class Few(Daemon):
    """A daemon that may have few files open."""

    def __init__(self, home: Path, *, limit: int = 64) -> None:
        super().__init__(home)
        self._limit = limit

    @property
    def command(self) -> list[str]:
        return ["prlimit", f"--nofile={self._limit}:{self._limit}", *super().command]


@contextmanager
def without_descriptors(daemon: Daemon) -> Iterator[None]:
    """It has what it has open, and can open nothing more."""
    pid, there = daemon.process.pid, open_files(daemon)
    lowest = min(set(range(max(there) + 2)) - there)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_more_clients_than_descriptors_harm_nobody(home: Path) -> None:
    """Those who are connected are served, edits are indexed, newcomers wait, and are served when others leave."""
    daemon = Few(home)
    daemon.configure(PATIENT)
    daemon.write("memory/a.md", RED)
    with daemon.start(), daemon.client() as client:
        client.sync()
        before = len(open_files(daemon))
        with ExitStack() as stack:
            for _ in range(100):
                one = stack.enter_context(socket.socket(socket.AF_UNIX))
                one.connect(str(daemon.socket))
            until(lambda: "server.full" in daemon.printed(), 10)
            for number in range(10):
                daemon.write(f"memory/{number}.md", f"{BLUE} Chapel number{number}.")
                found = client.search(f"number{number}")
                assert (f"memory/{number}.md" in [hit.path for hit in found.results], found.stale) == (
                    True,
                    False,
                )
            client.reindex()
            assert client.sync().vectors == "complete"
            assert rests(daemon)
            assert len(warnings(daemon)) == 1
        with daemon.client() as newcomer:
            assert newcomer.search("lighthouse").results[0].path == "memory/a.md"
        until(lambda: len(open_files(daemon)) <= before, 20)


def test_agents_without_descriptors_are_left_out_by_name(home: Path) -> None:
    """The others run as ever, main before all; who is left out is told how to fix it, once."""
    daemon = Few(home, limit=120)
    agents = [*(f"a{number}" for number in range(8)), "main"]
    for agent in agents:
        (home / agent / "memory").mkdir(parents=True)
        (home / agent / "memory" / "a.md").write_text(RED)
    daemon.config.write_text(
        "".join(f'[agents.{agent}]\nworkspace = "{home / agent}"\nprovider = "none"\n' for agent in agents)
    )
    with daemon.start(), daemon.client() as client:
        reasons = {agent: told.store.reason for agent, told in client.status().agents.items()}
        running = [agent for agent, reason in reasons.items() if reason is None]
        assert sorted(running) == ["a0", "a1", "main"]
        assert len(reasons) == len(agents)
        for agent in agents:
            if agent in running:
                client.sync(agent=agent)
                assert client.search("lighthouse", agent=agent).results
            else:
                with pytest.raises(RequestFailed, match=f"{agent} cannot run: .*ulimit -n"):
                    client.search("lighthouse", agent=agent)
        assert daemon.printed().count("agent.left_out") == len(agents) - len(running)


@pytest.mark.long
def test_a_daemon_without_descriptors_rests_and_catches_up(home: Path) -> None:
    """Searches go on, newcomers wait, the worker and the passes come back by themselves, and nothing is left open."""
    daemon = Daemon(home, settings=settings(home, provider="auto"), real_model=True)
    directory(home).mkdir(parents=True)
    daemon.write("memory/a.md", RED)
    with daemon.start(), daemon.client() as client:
        session = begun(home, "the walrus is called Wanda")
        client.sync()
        before = len(open_files(daemon))
        with without_descriptors(daemon), socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(str(daemon.socket))
            daemon.write("memory/b.md", BLUE)
            say(session, "and who feeds the flamingos?")
            said = len(warnings(daemon))
            for _ in range(20):
                found = client.search("lighthouse")
                assert (found.results[0].path, found.stale) == ("memory/a.md", True)
            with pytest.raises(RequestFailed, match="Too many open files"):  # it has to open the note
                client.get("memory/a.md")
            assert rests(daemon)
            assert len(warnings(daemon)) - said < 10
        until(lambda: _is_well(client), 60)
        assert client.search("chapel novelty").results[0].path == "memory/b.md"
        client.sync()
        assert holding(client, "flamingos")
        with daemon.client() as newcomer:
            assert newcomer.status().agents["main"].vectors.waiting == 0
        until(lambda: len(open_files(daemon)) <= before + 3, 20)  # the worker's pipes


def _is_well(client: Client) -> bool:
    status = client.status().agents["main"]
    return not status.dirty and status.watcher.ok and status.store.ok


def test_a_socket_that_cannot_be_bound_just_now_is_bound_a_moment_later(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is deleted while there are no descriptors: clients find it again once there are some."""
    make, attempts = socket.socket, 0

    def refused_at_first(*args: Any, **kwargs: Any) -> socket.socket:
        nonlocal attempts
        attempts += 1
        if attempts <= 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return make(*args, **kwargs)

    async def main() -> bool:
        listening = ListeningSocket(home / "s", None)
        acceptor = Acceptor(listening.socket, lambda: pytest.fail("nobody connects"), set(), lambda: 8)
        (home / "s").unlink()
        monkeypatch.setattr("memd.server.listening_socket.sock_diag.is_listened_on", lambda _: False)
        monkeypatch.setattr("socket.socket", refused_at_first)
        await for_s(10 * LOOK_S, keep_listening(listening, acceptor))
        await acceptor.close()
        return not listening.is_gone()

    with structlog.testing.capture_logs() as logs:
        assert hastily(main())
    assert [event["event"] for event in logs] == ["server.socket_gone", "server.socket_bound_again"]
