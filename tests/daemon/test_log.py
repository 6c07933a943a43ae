"""The log of a daemon whose stderr is <state>/memd.log, as `up` starts it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from memd.ctl.daemon_log import follow
from memd.runtime.log_file import LIMIT_BYTES, rotated
from tests.daemon.process import ROOT, Daemon
from tests.wait import until


def events(file: Path) -> list[str]:
    """The names of the events in a log."""
    return [json.loads(line)["event"] for line in file.read_text().splitlines() if line.startswith("{")]


def passed_to(blocks: Iterator[bytes], wanted: bytes) -> None:
    """Read on until something is said."""
    got = b""
    while wanted not in got:
        got += next(blocks)


def test_the_daemon_rotates_its_own_log(daemon: Daemon) -> None:
    """The one that holds the lock does; one that is started beside it says why it ends, and renames nothing."""
    daemon.state.mkdir()
    daemon.log = daemon.state / "memd.log"
    daemon.log.write_bytes(b"x" * (LIMIT_BYTES - 1) + b"\n")
    with daemon.start():
        until(lambda: {"daemon.started", "watch.armed"} <= set(events(daemon.log)))
        assert rotated(daemon.log, 1).stat().st_size == LIMIT_BYTES
        # The daemon says nothing more of its start, which would rename the file already here.
        with daemon.log.open("ab") as log:
            log.write(b"x" * LIMIT_BYTES + b"\n")
            second = subprocess.run(daemon.command, cwd=ROOT, stdout=log, stderr=log, timeout=60, check=False)
        assert second.returncode == 75
        assert b"memd is already running" in daemon.log.read_bytes()[-500:]
        assert not rotated(daemon.log, 2).exists()
        daemon.write("memory/a.md", "The lighthouse was painted red.\n")
        with daemon.client() as client:
            client.sync()
        until(lambda: rotated(daemon.log, 2).exists())
        assert b"memd is already running" in rotated(daemon.log, 1).read_bytes()[-500:]
        until(lambda: "sync.finished" in events(daemon.log))


def test_following_goes_on_over_a_restart(daemon: Daemon) -> None:
    """What the next daemon says comes after what the one before said, the file deleted in between or not."""
    daemon.state.mkdir()
    daemon.log = daemon.state / "memd.log"
    with daemon.start():
        pass
    lines = follow(daemon.log, daemon.log.open("rb"))
    passed_to(lines, b"daemon.stopped")
    with daemon.start():
        passed_to(lines, b"daemon.started")
        daemon.log.unlink()
        daemon.write("memory/a.md", "The lighthouse was painted red.\n")
        with daemon.client() as client:
            client.sync()
        passed_to(lines, b'"changed":1')
    lines.close()
