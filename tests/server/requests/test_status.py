"""What the status of the daemon says of its memory, and what the service manager hears."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from memd.agent.agents import Agents
from memd.memory_limit.enforce import MB, MemoryLimit, MemoryStatus
from memd.runtime.sd_notify import Notifier
from memd.server.requests.status import ProcessFacts, notify_manager
from memd_client import messages as wire
from tests.clock import for_s, hastily, now_s
from tests.unchanging import unchanging


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (None, None),
        (
            MemoryStatus(150 * MB, 30 * MB, 200 * MB, None),
            wire.Memory(daemon_mb=150.0, worker_mb=30.0, limit_mb=200),
        ),
        (
            MemoryStatus(210 * MB, 0, 200 * MB, "too many"),
            wire.Memory(daemon_mb=210.0, worker_mb=0.0, limit_mb=200, trouble="too many"),
        ),
    ],
)
def test_what_is_held_is_told_where_it_is_known(held: MemoryStatus | None, told: wire.Memory | None) -> None:
    """In megabytes."""
    memory = cast("MemoryLimit", SimpleNamespace(status=lambda: held))
    facts = ProcessFacts("1.2.3", Path("/run/memd.sock"), unchanging(), memory=memory)
    assert facts.report({}).memory == told


class Manager:
    """A service manager that notes what it hears, and when."""

    is_heard = True

    def __init__(self) -> None:
        self.beats: list[float] = []
        self.said: list[tuple[float, str]] = []

    def status(self, status: str) -> None:
        self.said.append((now_s(), status))

    def watchdog(self) -> None:
        self.beats.append(now_s())


def heard(watchdog_s: float | None, progress: Callable[[float], tuple[int, int] | None]) -> Manager:
    """What a manager hears in ten seconds of a daemon with two agents, one of which makes progress."""
    manager = Manager()

    def agents() -> dict[str, SimpleNamespace]:
        both = {"main": progress(now_s()), "idle": None}
        return {
            name: SimpleNamespace(id=name, index_service=SimpleNamespace(progress=at))
            for name, at in both.items()
        }

    told = notify_manager(cast("Notifier", manager), cast("Agents", SimpleNamespace(all=agents)), watchdog_s)
    hastily(for_s(9.9, told))
    return manager


@pytest.mark.parametrize(("watchdog_s", "beats"), [(None, 0), (0.5, 20), (30.0, 5)])
def test_the_watchdog_is_fed_as_often_as_it_asks(watchdog_s: float | None, beats: int) -> None:
    """And every two seconds at least, as what the daemon does is told so often; not where there is none."""
    assert len(heard(watchdog_s, lambda _: None).beats) == beats


def test_the_manager_is_told_what_the_daemon_does_when_that_changes() -> None:
    """Each agent that indexes, with how far it is."""
    manager = heard(None, lambda now: (120, 900) if 3 < now < 7 else None)
    assert manager.said == [
        (0.0, "ready"),
        (pytest.approx(4.0), "indexing main 120/900"),
        (pytest.approx(8.0), "ready"),
    ]
