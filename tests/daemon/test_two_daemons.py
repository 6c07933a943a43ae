"""Who may start, where, and what whoever may not is told."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.__main__ import main
from memd_client import Client
from tests.daemon.forked import Files, ForkedProcess
from tests.daemon.process import ROOT, Daemon
from tests.otheruser import NOBODY, shared_directory
from tests.wait import until


def run(
    daemon: Daemon, *, state_dir: Path | None = None, socket: Path | None = None, config: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What comes of `memd run` that ends by itself, at the places of a daemon or at others."""
    flags = {
        "--config": config or daemon.config,
        "--state-dir": state_dir or daemon.state,
        "--socket": socket or daemon.socket,
    }
    arguments = [str(part) for flag in flags.items() for part in flag]
    with tempfile.TemporaryDirectory() as printed:
        out, err = Path(printed, "out"), Path(printed, "err")
        program = ForkedProcess(main, ["memd", "run", *arguments], os.environ, Files(out, err))
        return subprocess.CompletedProcess(program.args, program.wait(60), out.read_text(), err.read_text())


def assert_refused(ended: subprocess.CompletedProcess[str], status: int, *says: str) -> None:
    """It ended with a status and one message for a person."""
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    message = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert message[0].startswith("memd: ")
    for text in says:
        assert text in ended.stderr


@pytest.fixture(scope="module")
def first() -> Iterator[Daemon]:
    """A daemon that runs."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home, Daemon(Path(home)) as daemon:
        yield daemon


# --- two of them


def test_a_second_on_the_same_state_is_refused(first: Daemon) -> None:
    """It ends with 75, names the state directory and the pid of the first, and makes no socket."""
    other = first.home / "other"
    ended = run(first, socket=other)
    assert_refused(ended, 75, str(first.state), f"pid {first.process.pid}", "memd-ctl down")
    assert not other.exists()


def test_a_second_on_the_same_socket_is_refused(first: Daemon) -> None:
    """Another state directory does not help: one socket has one daemon, which goes on answering."""
    ended = run(first, state_dir=first.home / "state2")
    assert_refused(ended, 75, str(first.socket), f"pid {first.process.pid}", "MEMD_SOCKET")
    with first.client() as client:
        assert client.status().pid == first.process.pid


def test_two_side_by_side(first: Daemon, home: Path) -> None:
    """With places of their own, two daemons serve the same workspace, each by itself."""
    second = Daemon(home)
    second.workspace = first.workspace
    second.configure("")
    first.write("memory/a.md", "The lighthouse is red.\n")
    with second, first.client() as one, second.client() as other:
        for client in (one, other):
            client.sync()
            assert client.search("lighthouse").results
        assert one.status().pid != other.status().pid


def test_a_second_cannot_take_the_socket_by_another_name(first: Daemon, home: Path) -> None:
    """A symlink to the socket is something that is not a socket: it is told, and left as it is."""
    link = home / "link"
    link.symlink_to(first.socket)
    ended = run(first, state_dir=home / "state", socket=link)
    assert_refused(ended, 78, str(link), "not a socket")
    assert link.is_symlink()


# --- places


def test_a_stale_socket_is_taken_over(daemon: Daemon) -> None:
    """A socket that nobody listens on is no obstacle."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(daemon.socket))
    daemon.start()
    with daemon.client() as client:
        assert client.status().pid == daemon.process.pid


@pytest.mark.parametrize("make", ["file", "directory"])
def test_what_is_no_socket_is_left_alone(daemon: Daemon, make: str) -> None:
    """Something else at the path of the socket is told, and stays."""
    if make == "file":
        daemon.socket.write_text("precious")
    else:
        daemon.socket.mkdir()
    assert_refused(run(daemon), 78, str(daemon.socket), "not a socket", "MEMD_SOCKET")
    assert daemon.socket.read_text() == "precious" if make == "file" else daemon.socket.is_dir()


def test_a_socket_path_that_is_too_long_is_told(daemon: Daemon) -> None:
    """The message says how long it is and how long it may be, before anything is made."""
    ended = run(daemon, socket=daemon.home / ("x" * 120))
    assert_refused(ended, 78, "bytes", "MEMD_SOCKET")
    assert not daemon.state.exists()


def test_a_place_below_a_file_is_told(daemon: Daemon) -> None:
    """A directory that cannot be made is named in the message, with what to set."""
    file = daemon.home / "file"
    file.write_text("")
    assert_refused(run(daemon, state_dir=file / "x"), 78, str(file), "Set MEMD_STATE_DIR")
    assert_refused(run(daemon, socket=file / "x"), 78, str(file), "Set MEMD_SOCKET")


@pytest.mark.parametrize("name", ["embeddings.sqlite", "agents/main.sqlite"])
def test_a_directory_in_the_place_of_a_store_is_told(daemon: Daemon, name: str) -> None:
    """It is no reason not to start: status names what was moved out of the way."""
    (daemon.state / name).mkdir(parents=True)
    with daemon.start(), daemon.client() as client:
        status = client.status()
        assert [*status.damaged, *status.agents["main"].damaged] == [f"{daemon.state / name}.damaged-1"]


def test_a_state_directory_that_is_a_file_is_told(daemon: Daemon) -> None:
    """So is a file in its place."""
    daemon.state.write_text("")
    assert_refused(run(daemon), 78, str(daemon.state), "MEMD_STATE_DIR")


@pytest.mark.parametrize("where", ["state_dir", "socket"])
def test_a_place_that_may_not_be_written_is_told(where: str) -> None:
    """Another user's directory is named in the message, whether it is to hold the state or the socket."""
    assert os.getuid() == 0, "only root can become another user"
    with shared_directory() as directory:
        closed = directory / "closed"
        closed.mkdir(mode=0o755)
        os.chown(closed, 0, 0)
        places = {"state_dir": directory / "state", "socket": directory / "s"}
        places[where] = closed if where == "state_dir" else closed / "s"
        flags = [part for name, path in places.items() for part in (f"--{name.replace('_', '-')}", str(path))]
        # Everything is imported before the change of user, who may not be able to read the interpreter's files.
        program = (
            "import os, sys, encodings.idna; from memd import daemon, __main__; os.setgroups([]);"
            f"os.setgid({NOBODY}); os.setuid({NOBODY}); sys.exit(__main__.main(sys.argv[1:]))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program, "run", *flags],
            cwd=ROOT,
            env=os.environ | {"HOME": str(directory)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert_refused(ended, 78, str(closed), "MEMD_")


def test_what_is_made_is_private(daemon: Daemon) -> None:
    """Directories have mode 0700 and files 0600, whatever the umask; a directory that was there stays as it was."""
    daemon.state.mkdir(mode=0o755)
    daemon.socket = daemon.home / "run" / "memd" / "s"
    daemon.write("memory/a.md", "The lighthouse is red.\n")
    mask = os.umask(0)
    try:
        daemon.start()
    finally:
        os.umask(mask)
    with daemon.client() as client:
        client.sync()
    assert daemon.state.stat().st_mode & 0o777 == 0o755
    made = [*daemon.state.rglob("*"), *daemon.socket.parents[1].rglob("*"), daemon.socket.parents[1]]
    assert len(made) > 6
    for path in made:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


# --- the configuration


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[agents.main\n", ["config.toml", "not valid TOML"]),
        ('[agents.main]\nworkspace = "w"\nmax_result = 3\n', ["config.toml:3", "max_result"]),
        (
            '[agents.main]\nworkspace = "w"\n[agents.main.query]\nmax_result = 3\n',
            ["agents.main.query.max_result", "max_results"],
        ),
        (
            '[agents.main]\nworkspace = "w"\n[agents.main.query]\nmax_results = 51\n',
            ["agents.main.query.max_results", "50"],
        ),
        ('[agents.main]\nworkspace = "w"\nbackend = "postgres"\n', ["agents.main.backend"]),
        ('[agents.work]\nprovider = "none"\n', ["agents.work", "workspace"]),
        ("[agent.main]\n", ["agent", "agents"]),
        ("[agents.main]\nworkspace = 7\n", ["agents.main.workspace"]),
        ("\xff", ["config.toml"]),
    ],
    ids=["toml", "key", "nested", "range", "choice", "no workspace", "table", "type", "latin"],
)
def test_a_wrong_configuration_is_told(daemon: Daemon, text: str, says: list[str]) -> None:
    """Exit 78, with the place, the dotted key and the nearest known one; nothing is made."""
    daemon.config.write_text(text, encoding="latin-1")
    assert_refused(run(daemon), 78, *says)
    assert not daemon.state.exists()


def test_a_configuration_that_is_named_must_be_there(daemon: Daemon) -> None:
    """By the flag or by MEMD_CONFIG: a file that is missing is an error, not a reason for defaults."""
    missing = daemon.home / "none.toml"
    assert_refused(run(daemon, config=missing), 78, str(missing), "does not exist")
    command = [
        sys.executable,
        "-m",
        "memd",
        "run",
        "--state-dir",
        str(daemon.state),
        "--socket",
        str(daemon.socket),
    ]
    environ = os.environ | {"MEMD_CONFIG": str(missing)}
    ended = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert_refused(ended, 78, str(missing), "does not exist")


def test_without_a_configuration_it_serves_the_usual_workspace(home: Path) -> None:
    """No file at all: agent main on the default workspace, state and socket at their usual places, the model included."""
    note = home / ".openclaw" / "workspace" / "MEMORY.md"
    note.parent.mkdir(parents=True)
    note.write_text("- The cat is called Mochi.\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MEMD_"))}
    environ["HOME"] = str(home)
    state = home / ".local" / "state" / "memd"
    address = state / "memd.sock"
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "memd", "run"], cwd=ROOT, env=environ, stdout=log, stderr=log
        ) as daemon,
    ):
        try:
            until(lambda: address.exists() or daemon.poll() is not None, 20)
            assert daemon.poll() is None, (home / "log").read_text()
            with Client(socket=address, timeout=60) as client:
                status = client.status()
                assert status.config is None
                assert list(status.agents) == ["main"]
                assert status.agents["main"].workspace == str(note.parent)
                client.sync(vectors=False)
                assert client.search("cat called").results[0].path == "MEMORY.md"
        finally:
            daemon.terminate()
        assert daemon.wait(60) == 0
    assert not (home / ".config").exists()
