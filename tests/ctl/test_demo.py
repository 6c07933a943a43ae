"""memd-ctl demo, for real."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from memd.ctl.daemon.process import find_holder
from tests.ctl.real import TIMEOUT_S, House, house
from tests.wait import until


@pytest.fixture
def ours() -> Iterator[House]:
    """A house without anything."""
    with house() as made:
        yield made


def _find_daemon(ours: House) -> int | None:
    """The pid of the daemon that a demo has started."""
    return next((find_holder(lock) for lock in ours.tmp.glob("*/state/memd.lock")), None)


def _is_group_gone(pid: int) -> bool:
    """Whether the daemon and all it started have ended: it leads a group of its own."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_demo_shows_what_it_says(ours: House) -> None:
    """Every answer is found, the edit and its hit too, a group sees nothing private, and nothing is left behind."""
    began = time.monotonic()
    ran = ours.run("demo", "--json")
    took_s = time.monotonic() - began
    assert ran.code == 0, ran
    data = json.loads(ran.out)["data"]
    assert (data["indexed"]["files"], data["indexed"]["provider"]) == (8, "local")
    assert len(data["questions"]) == 5
    # On a busy machine a question's vector may come too late, which the answer says.
    whole = [one for one in data["questions"] if not one["degraded"]]
    assert [one["about"] for one in whole if not one["as_it_should"]] == []
    assert {one["mode"] for one in whole} <= {"hybrid"}
    assert {each["part"] for one in data["questions"] for each in one["degraded"]} <= {"query_embedding"}
    assert data["questions"][-1]["hits"] == []
    assert 0 < data["edit"]["took_ms"] < 10_000
    assert "9:40" in data["edit"]["hits"][0]["snippet"]
    assert data["group"]["sees_private"] is False
    assert data["group"]["owner_paths"][0] == "MEMORY.md"
    assert data["workspace"] is None
    assert took_s < TIMEOUT_S
    assert list(ours.tmp.iterdir()) == []
    assert list(ours.home.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_demo_leaves_nothing_behind(ours: House, number: signal.Signals, code: int) -> None:
    """Neither a process nor a file, whatever ends it, and while the daemon works."""
    demo = ours.start("demo")
    daemon = until(lambda: _find_daemon(ours), 20)
    assert daemon is not None
    demo.send_signal(number)
    ran = ours.ended(demo)
    assert (ran.code, ran.err) == (code, "")
    assert list(ours.tmp.iterdir()) == []
    until(lambda: _is_group_gone(daemon))


def test_a_demo_that_cannot_write_leaves_nothing_behind(ours: House) -> None:
    """It ends like any command whose reader has gone."""
    demo = ours.start("demo")
    assert demo.stdout is not None
    demo.stdout.close()
    assert demo.wait(TIMEOUT_S) == 0
    assert demo.stderr is not None
    assert demo.stderr.read() == b""
    demo.stderr.close()
    assert list(ours.tmp.iterdir()) == []
