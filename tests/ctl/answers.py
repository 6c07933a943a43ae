"""Replies a daemon may give, and a daemon that gives them."""

from collections.abc import Callable
from typing import Any

from memd import VERSION
from memd_client.messages import (
    AgentStatus,
    Found,
    Health,
    Hit,
    Pass,
    Reply,
    Request,
    StatusReport,
    VectorHealth,
    Vectors,
)
from tests.client.scripted_server import Peer

HIT = Hit(
    path="memory/2026-02-09.md",
    start_line=3,
    end_line=5,
    score=0.71549,
    snippet="# Retries\n\nthree, with jitter",
)
FOUND = Found(results=[HIT], provider="local", model="e5")


def answering(*replies: Reply, heard: list[Request] | None = None) -> Callable[[Peer], None]:
    """A script that gives these replies to the requests of one connection, and keeps what it heard."""

    def script(peer: Peer) -> None:
        peer.greet()
        for reply in replies:
            request = peer.answer_next(reply)
            if heard is not None:
                heard.append(request)
        peer.wait_for_end()

    return script


def agent(**changed: Any) -> AgentStatus:
    """An agent that is well, but for what is changed."""
    settings: dict[str, Any] = {
        "workspace": "/home/ann/notes",
        "backend": "builtin",
        "provider": "local",
        "model": "e5",
        "files": 214,
        "chunks": 1830,
        "vectors": Vectors(done=1830),
        "dirty": 0,
        "skipped": {},
        "keyword": Health(),
        "vector": VectorHealth(),
        "watcher": Health(),
        "provider_health": Health(),
        "store_bytes": 12_400_000,
        "last_pass": Pass(at=1_000_000.0, took_s=0.42),
    }
    return AgentStatus(**(settings | changed))


def status(*agents: AgentStatus, **changed: Any) -> StatusReport:
    """A daemon with these agents: main, and others after it."""
    settings: dict[str, Any] = {
        "version": VERSION,
        "protocol": 1,
        "pid": 4711,
        "uptime_s": 11_520.0,
        "socket": "/run/user/1000/memd/memd.sock",
        "config": "/home/ann/.config/memd/config.toml",
        "agents": {"main" if n == 0 else f"other{n}": one for n, one in enumerate(agents)},
    }
    return StatusReport(**(settings | changed))
