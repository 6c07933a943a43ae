"""What memd makes is its user's alone from the first moment on, whatever the umask and wherever it is made."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.runtime.log_file import LIMIT_BYTES, rotated
from tests.daemon.process import Daemon
from tests.fakes.qmd_standin import Standin
from tests.security.onlooker import Onlooker
from tests.wait import until

_TWO_AGENTS = """
[agents.copied]
workspace = "{workspace}"
backend = "qmd"
qmd = {{ command = "{home}/bin/qmd", debounce_seconds = 0, timeout_ms = 20000 }}
redact = {{ mode = "all" }}
"""


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """With this umask, for child processes too."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def live_a_day(daemon: Daemon) -> None:
    """Let it write every kind of file that it writes."""
    with daemon.start(), daemon.client(60) as client:
        client.sync()
        until(lambda: client.search("lighthouse", agent="copied").backend == "qmd", 30)
        for number in range(5):
            daemon.write(f"memory/{number}.md", f"The lighthouse was painted {number} times.\n")
            client.sync()
        client.reindex(force=True)
        until(lambda: all(agent.rebuild is None for agent in client.status().agents.values()), 30)
        client.sync(force=True)
    assert daemon.stop() == 0
    # One index comes to harm, and the log fills up.
    index = daemon.state / "agents" / "main.sqlite"
    index.write_bytes(b"no database" * 1000)
    with daemon.log.open("ab") as log:
        log.write(b"x" * LIMIT_BYTES + b"\n")
    with daemon.start(), daemon.client(60) as client:
        client.sync()
        until(lambda: len(client.search("lighthouse", agent="main").results) > 4, 30)
        daemon.kill()
    with daemon.start(), daemon.client(60) as client:
        client.sync()


def test_nothing_that_is_made_is_open_to_others_for_a_moment(home: Path) -> None:
    """Not databases and their logs, an index beside another, a damaged one, copies for qmd, the socket, locks or the log.

    Somebody who waits in those directories, which were opened on purpose, looks at each file as soon as it is there.
    """
    daemon = Daemon(home.resolve())
    Standin(daemon.home / "bin")
    daemon.configure(_TWO_AGENTS.format(workspace=daemon.workspace, home=daemon.home))
    daemon.write("MEMORY.md", "The lighthouse is red.\n")
    daemon.state.mkdir(mode=0o755)
    run = daemon.home / "run"
    run.mkdir()
    run.chmod(0o777)
    daemon.socket = run / "s"
    daemon.log = daemon.state / "memd.log"
    daemon.log.touch(mode=0o600)
    with umask(0), Onlooker(daemon.state, run) as onlooker:
        live_a_day(daemon)
    seen = onlooker.widest
    wide = {str(path.relative_to(daemon.home)): oct(mode) for path, mode in seen.items() if mode & 0o077}
    assert wide == {}
    names = {path.name for path in seen}
    assert {
        "embeddings.sqlite",
        "main.sqlite",
        "main.sqlite-wal",
        "main.sqlite.next",
        "memd.lock",
        "s",
    } <= names
    assert {rotated(daemon.log, 1).name, "main.sqlite.damaged-1", "copied.qmd", "MEMORY.md"} <= names
    assert [path for path in seen if stat.S_IMODE(seen[path]) & 0o7000] == []
    assert onlooker.looks > 50
