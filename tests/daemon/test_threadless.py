"""A daemon on a system whose threads are used up for a while."""

import asyncio
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memd import daemon
from memd.runtime.process import DaemonEventLoop, SignalAction, Signals
from memd.runtime.threads import NoThread
from memd_client import MemdClientError
from tests.daemon.process import Daemon
from tests.daemon.threadless import REFUSED
from tests.fakes.embedding_server import EmbeddingServer
from tests.wait import until


def test_the_names_of_hosts_are_looked_up_without_libuvs_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the process where it cannot have them."""

    async def look_up() -> list[Any]:
        return await asyncio.get_running_loop().getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with asyncio.Runner(loop_factory=DaemonEventLoop) as runner:
        assert {found[4][0] for found in runner.run(look_up())} <= {"127.0.0.1", "::1"}
        with pytest.raises(socket.gaierror):
            runner.run(_nowhere())
    with asyncio.Runner(loop_factory=DaemonEventLoop) as runner:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(OSError, match="no thread can be started"):
            runner.run(look_up())


async def _nowhere() -> None:
    await asyncio.get_running_loop().getaddrinfo("nowhere.invalid", 80, flags=socket.AI_NUMERICHOST)


async def test_a_reload_that_no_thread_could_read_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wish came as a signal: nobody would hear of an error."""
    monkeypatch.setattr(daemon, "RELOAD_AGAIN_S", 0.01)
    loop, tries = asyncio.get_running_loop(), 0
    signals = Signals(loop)

    async def reload() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise NoThread("no thread can be started")
        loop.call_soon(signals.want, SignalAction.STOP)

    signals.want(SignalAction.RELOAD)
    async with asyncio.timeout(60):
        await daemon.until_stopped(signals, reload)
    assert tries == 3


async def test_a_reload_that_memd_fails_at_is_logged_and_the_next_one_is_made() -> None:
    """It was wished by a signal: its failure ends nothing."""
    signals, tries = Signals(asyncio.get_running_loop()), 0

    async def reload() -> None:
        nonlocal tries
        tries += 1
        signals.want(SignalAction.RELOAD if tries == 1 else SignalAction.STOP)
        if tries == 1:
            raise ValueError("nobody foresaw this")

    signals.want(SignalAction.RELOAD)
    with capture_logs() as logs:
        async with asyncio.timeout(60):
            await daemon.until_stopped(signals, reload)
    assert tries == 2
    assert [one["event"] for one in logs] == ["config.reload_failed"]


def test_a_daemon_whose_threads_are_used_up_goes_on_when_there_are_some(tmp_path: Path) -> None:
    """Requests, a new agent, a reload, a provider that is to be asked: each says so or waits, and nothing ends it."""
    refused = tmp_path / "refused"
    with EmbeddingServer(key=None) as server:
        process = Daemon(
            tmp_path,
            entry="tests.daemon.threadless",
            settings='provider = "openai-compatible"\nmodel = "m"\n[agents.main.remote]\n'
            f'base_url = "{server.base_url("openai-compatible").replace("127.0.0.1", "localhost")}"',
        )
        process.write("memory/a.md", "# A\n\nthe walnut project\n")
        process.start(environ={REFUSED: str(refused)})
        try:
            with process.client() as client:
                client.sync()
                assert client.search("walnut").mode == "hybrid"
                refused.touch()
                _use(process)
                refused.unlink()
                until(lambda: "other" in client.status().agents, 20)
                until(lambda: _finds(process, "hazel") and client.search("hazel").mode == "hybrid", 20)
                assert client.get("memory/a.md").text
                client.sync()
            refused.touch()
        finally:
            process.stop()
        assert not {"critical", "daemon.callback_failed"} & set(process.printed().split('"'))
        assert process.process.returncode == 0


def _use(process: Daemon) -> None:
    process.write("memory/b.md", "# B\n\nthe hazel project\n")
    process.config.write_text(
        process.config.read_text("utf-8") + f'[agents.other]\nworkspace = "{process.home}/other"\n', "utf-8"
    )
    for _ in range(3):
        process.process.send_signal(signal.SIGHUP)
        _finds(process, "walnut")
        _finds(process, "hazel")
    # Which one depends on whether the thread that looks at the configuration has ended.
    until(lambda: {"agent.left_out", "config.reload_put_off"} & set(process.printed().split('"')), 20)
    assert process.process.poll() is None, process.printed()


def _finds(process: Daemon, word: str) -> bool:
    try:
        with process.client() as client:
            return any(word in hit.snippet for hit in client.search(word).results)
    except MemdClientError:
        return False
