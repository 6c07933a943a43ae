"""Whatever the embedding worker is at, the daemon answers; whatever becomes of it, vectors go on."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from memd_client import Client
from tests.daemon.fresh import PATIENT
from tests.daemon.process import Daemon
from tests.daemon.trouble import BLUE, RED
from tests.wait import until


def worker_of(daemon: Daemon) -> int:
    """The pid of the worker, once there is one."""

    def found() -> int:
        pids = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return next((int(pid) for pid in pids if _is_worker(int(pid), daemon.process.pid)), 0)

    return until(found, 30)


def _is_worker(pid: int, parent: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return (
            int(status[1]) == parent
            and b"memd.providers.local.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    except OSError:
        return False


def waiting(client: Client) -> int:
    return client.status().agents["main"].vectors.waiting


@pytest.mark.long
def test_a_wedged_worker_is_waited_for_by_nobody(home: Path) -> None:
    """While it is stopped, what is new is found by its words at once; another one gives it its vector."""
    daemon = Daemon(home, settings=PATIENT, real_model=True)
    daemon.write("memory/a.md", RED)
    with daemon.start(), daemon.client(timeout=60) as client:
        assert client.sync().vectors == "complete"
        worker = worker_of(daemon)
        os.kill(worker, signal.SIGSTOP)
        for number in range(5):
            daemon.write(f"memory/{number}.md", f"{BLUE} Chapel number{number}.")
            found = client.search(f"number{number}")
            assert f"memory/{number}.md" in [hit.path for hit in found.results]
            assert not found.stale
        assert client.sync(vectors=False).files == 6
        assert waiting(client) > 0
        os.kill(worker, signal.SIGKILL)
        until(lambda: waiting(client) == 0, 60)
        assert worker_of(daemon) != worker
        assert client.search("which colour has the chapel?").mode == "hybrid"


def test_a_crash_is_one_line_that_quotes_nothing(home: Path) -> None:
    """What nobody has thought of ends the process with 70, for the manager to start it again, and a line says where."""
    daemon = Daemon(home, entry="tests.daemon.crashing")
    daemon.write("memory/a.md", "The quetzalcoatlus is called Quentin.\n")
    daemon.start(wait=False)
    try:
        assert daemon.process.wait(60) == 70
    except subprocess.TimeoutExpired:
        daemon.kill()
        raise
    lines = [line for line in daemon.printed().splitlines() if '"level":"critical"' in line]
    assert len(lines) == 1
    assert "daemon.failed" in lines[0]
    assert "ZeroDivisionError" in lines[0]
    assert not any(word in daemon.printed() for word in ("quetzalcoatlus", "Quentin"))
