"""Another user gets nothing of a daemon and puts nothing in its way, not even where a directory lets everybody in."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from memd_client import Client, codec
from memd_client.messages import PROTOCOL, Get, Hello, Reindex, Request, Search, Status, Sync
from tests.daemon.manager import Given
from tests.daemon.process import ROOT, Daemon
from tests.otheruser import NOBODY, as_other_user, shared_directory
from tests.server.given import listening
from tests.server.stranger import asked, framed
from tests.wait import until

KNOCKS = 20


def knock(path: str) -> str:
    """All that a stranger hears who greets and asks in every way, of so many connections."""
    requests: tuple[Request, ...] = (
        Search(query="lighthouse"),
        Get(path="MEMORY.md"),
        Status(),
        Sync(),
        Reindex(force=True),
    )
    said = framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9"))) + b"".join(
        asked(number, request) for number, request in enumerate(requests, 1)
    )
    heard = b""
    for _ in range(KNOCKS):
        with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionResetError, BrokenPipeError):
            client.settimeout(60)
            client.connect(path)
            client.sendall(said)
            while piece := client.recv(1 << 16):
                heard += piece
    return heard.decode("latin-1")


def opened_to_all(daemon: Daemon) -> None:
    """Let everybody reach the socket, and connect to it."""
    for directory in (daemon.home, daemon.socket.parent):
        directory.chmod(0o777)
    daemon.socket.chmod(0o666)


def is_at_rest(client: Client) -> bool:
    """Whether nothing is marked, and no pass was made for long enough for the watcher to mark what it has seen."""
    agent = client.status().agents["main"]
    assert agent.last_pass is not None
    return agent.dirty == 0 and time.time() - agent.last_pass.at > 0.5


def knocking_changes(daemon: Daemon, client: Client, times: int) -> bool:
    """Whether a pass was made while a stranger asked for everything, for so many times in all."""
    before = client.status().agents["main"]
    assert as_other_user("tests.daemon.test_strangers", "knock", str(daemon.socket)) == ""
    until(lambda: daemon.printed().count("server.stranger_refused") == times * KNOCKS, 20)
    assert [hit.path for hit in client.search("lighthouse").results] == ["MEMORY.md"]
    after = client.status().agents["main"]
    assert after.rebuild is None
    return after.last_pass != before.last_pass


def assert_refuses_strangers(daemon: Daemon) -> None:
    """Strangers hear nothing and change nothing, and the daemon says who it was; its own user is answered meanwhile."""
    assert os.getuid() == 0, "only root can become another user"
    opened_to_all(daemon)
    with daemon.client() as client:
        client.sync()
        # A note that just came is marked once more, a moment later, when it is watched by itself.
        until(lambda: is_at_rest(client), 20)
        # Any of them would make a pass each time; the daemon makes one by itself now and then.
        changed = [knocking_changes(daemon, client, times) for times in (1, 2, 3)]
        assert not all(changed), "a stranger's sync was done"
    assert f"uid={NOBODY}" in daemon.printed() or f'"uid":{NOBODY}' in daemon.printed()


def test_a_stranger_is_refused_before_it_is_read(daemon: Daemon) -> None:
    """A socket of mode 0666 in a directory of mode 0777 still serves its user alone."""
    daemon.write("MEMORY.md", "The lighthouse is red.\n")
    with daemon:
        assert_refuses_strangers(daemon)


def test_a_stranger_is_refused_at_a_socket_of_the_managers(home: Path) -> None:
    """So does one that the service manager has opened, whatever mode it gave it."""
    given = Given(home)
    given.write("MEMORY.md", "The lighthouse is red.\n")
    with listening(given.socket) as manager:
        given.begin(manager)
        with given:
            assert_refuses_strangers(given)


def run_as_nobody(directory: Path, state: Path) -> subprocess.CompletedProcess[str]:
    """What comes of starting a daemon as another user."""
    # Everything is imported before the change of user, who may not be able to read the interpreter's files.
    program = (
        "import os, sys, encodings.idna; from memd import daemon, __main__; os.setgroups([]);"
        f"os.setgid({NOBODY}); os.setuid({NOBODY}); sys.exit(__main__.main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "run", "--state-dir", str(state), "--socket", str(directory / "s")],
        cwd=ROOT,
        env=os.environ | {"HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("which", "owner", "mode", "why"),
    [
        ("state", NOBODY, 0o777, "any user may write there"),
        ("state", 0, 0o1777, "any user may write there"),
        ("state", NOBODY - 1, 0o755, f"it belongs to another user (uid {NOBODY - 1})"),
        ("agents", NOBODY - 1, 0o755, f"it belongs to another user (uid {NOBODY - 1})"),
    ],
)
def test_memory_is_not_kept_where_others_put_things(which: str, owner: int, mode: int, why: str) -> None:
    """A state directory that another user made first, or may write to, is refused, and nothing is made in it."""
    assert os.getuid() == 0, "only root can become another user"
    with shared_directory() as directory:
        state = directory / "state"
        made = state if which == "state" else state / "agents"
        for each in dict.fromkeys((state, made)):
            each.mkdir()
            os.chown(each, NOBODY, NOBODY)
        (state / "agents").mkdir(exist_ok=True)
        os.chown(state / "agents", NOBODY, NOBODY)
        os.chown(made, owner, owner)
        made.chmod(mode)
        ended = run_as_nobody(directory, state)
        assert ended.returncode == 78, ended.stderr
        assert f"memd: memory cannot be kept in {made}: {why}" in ended.stderr
        assert "MEMD_STATE_DIR" in ended.stderr
        assert sorted(path.name for path in directory.rglob("*")) == ["agents", "state"]
