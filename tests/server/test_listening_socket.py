import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from memd.server import listening_socket
from memd.server.connection import has_hung_up
from memd.server.listening_socket import BACKLOG, ListeningSocket, SocketUnusable
from tests.bounds import shipped
from tests.otheruser import as_other_user, shared_directory
from tests.server.given import as_manager, listening
from tests.wait import until


def connected(path: Path) -> socket.socket:
    """A connection to a socket."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(60)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        raise
    return client


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return [path.name for path in directory.iterdir()]


def knock(path: str) -> str:
    """What comes of connecting to a socket: what was heard, or the error."""
    try:
        with connected(Path(path)) as client:
            return client.recv(100).decode()
    except OSError as error:
        return type(error).__name__


def test_whoever_sees_the_socket_can_connect(address: Path) -> None:
    """The path appears only when somebody listens there: no client that finds it is refused."""
    refused: list[OSError] = []
    answered = threading.Event()

    def watch() -> None:
        while not answered.is_set():
            try:
                connected(address).close()
                answered.set()
            except FileNotFoundError:
                pass
            except OSError as error:
                refused.append(error)
                answered.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    listening = listening_socket.bind(address)
    watcher.join(60)
    listening.close()
    assert answered.is_set()
    assert refused == []


def test_the_socket_is_private_and_alone(address: Path) -> None:
    """It has mode 0600, whatever the umask, and no other name is left beside it."""
    mask = os.umask(0)
    try:
        ours = ListeningSocket(address, None)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    assert names(address.parent) == [address.name]
    ours.remove()
    assert names(address.parent) == []
    ours.remove()  # somebody may have tidied up
    ours.socket.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the file takes the umask")
def test_the_umask_is_left_alone(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of the whole process: what another thread makes meanwhile would have the modes of the socket."""
    made = address.with_name("made")
    bind = socket.socket.bind

    def meanwhile(bound: socket.socket, to: str) -> None:
        made.touch(0o666)
        bind(bound, to)

    mask = os.umask(0o022)
    try:
        monkeypatch.setattr(socket.socket, "bind", meanwhile, raising=False)
        listening_socket.bind(address).close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(made.stat().st_mode) == 0o644


@pytest.mark.parametrize("make", ["socket", "file", "directory", "link"])
def test_what_another_has_put_in_the_place_of_the_socket_stays(address: Path, make: str) -> None:
    """When the daemon ends; and meanwhile nothing is bound in its place."""
    ours = ListeningSocket(address, None)
    address.unlink()
    other = socket.socket(socket.AF_UNIX)
    match make:
        case "socket":
            other.bind(str(address))
        case "file":
            address.write_text("precious")
        case "directory":
            address.mkdir()
        case _:
            address.symlink_to("elsewhere")
    with other:
        assert not ours.is_gone()
        ours.remove()
        assert names(address.parent) == [address.name]
    ours.socket.close()


def test_a_socket_whose_file_was_deleted_is_bound_again(address: Path) -> None:
    """In the same place, of which the directory may be gone, too."""
    where = address.parent / "run" / "s"
    where.parent.mkdir()
    ours = ListeningSocket(where, None)
    for _ in range(2):
        assert not ours.is_gone()
        where.unlink()
        where.parent.rmdir()
        assert ours.is_gone()
        old = ours.socket
        with ours.bind_again(), connected(where):
            assert stat.S_IMODE(where.stat().st_mode) == 0o600
        old.close()
    ours.remove()
    assert names(where.parent) == []


def test_a_given_socket_is_neither_removed_nor_bound_again(address: Path) -> None:
    """Its file is the manager's."""
    with socket.socket(socket.AF_UNIX) as given:
        given.bind(str(address))
        listening = ListeningSocket(address, given)
        listening.remove()
        assert names(address.parent) == [address.name]
        address.unlink()
        assert not listening.is_gone()


def test_a_stale_socket_is_taken_over(address: Path) -> None:
    """The socket that a killed daemon left is no obstacle."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(address))
    with listening_socket.bind(address), connected(address):
        pass


@pytest.mark.parametrize("make", ["file", "directory", "symlink", "fifo"])
def test_what_is_no_socket_is_left_alone(address: Path, make: str) -> None:
    """Something else in its place is told, and stays as it is."""
    match make:
        case "file":
            address.write_text("precious")
        case "directory":
            address.mkdir()
        case "symlink":
            address.symlink_to(address.parent / "elsewhere")
        case _:
            os.mkfifo(address)
    before = address.lstat()
    with pytest.raises(
        SocketUnusable, match=rf"{address}: something that is not a socket.*MEMD_SOCKET"
    ) as refused:
        listening_socket.bind(address)
    assert refused.value.exit_code == 78
    assert os.path.samestat(before, address.lstat())
    assert names(address.parent) == [address.name]


@pytest.mark.parametrize("below", ["none/s", "file/s", "x" * 300])
def test_a_path_that_cannot_be_is_told(address: Path, below: str) -> None:
    """A missing directory, a file in place of one, or a name that is too long: the message names the path."""
    (address.parent / "file").write_text("")
    with pytest.raises(SocketUnusable, match="MEMD_SOCKET"):
        listening_socket.bind(address.parent / below)


@pytest.mark.parametrize("step", ["socket.socket", "os.fchmod", "os.open", "pathlib.Path.rename"])
def test_a_step_that_the_system_refuses_is_told_and_leaves_nothing(
    address: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whichever it is, the failure is one that whoever listens for long knows and tries again after."""
    if step in {"os.fchmod", "os.open"} and sys.platform != "linux":
        pytest.skip("it is taken on Linux alone")

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as moment:
        moment.setattr(step, refused)
        with pytest.raises(SocketUnusable, match="Too many open files"):
            listening_socket.bind(address)
    assert names(address.parent) == []
    with listening_socket.bind(address), connected(address):
        pass


@pytest.mark.parametrize("make", ["file", "directory", "symlink"])
def test_a_name_that_was_taken_on_purpose_is_left_alone(
    address: Path, monkeypatch: pytest.MonkeyPatch, make: str
) -> None:
    """Whoever guessed the name under which the socket is made gains nothing: theirs stays, and another one is taken."""
    drawn = iter(["000000", "000000", "111111"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(drawn))
    trap, precious = (
        address.parent / f"{listening_socket.prefix_of(address)}000000",
        address.parent / "precious",
    )
    precious.write_text("keep me")
    precious.chmod(0o644)
    match make:
        case "file":
            trap.write_text("half made")
        case "directory":
            trap.mkdir()
        case _:
            trap.symlink_to(precious)
    before = trap.lstat()
    with listening_socket.bind(address), connected(address):
        assert sorted(names(address.parent)) == sorted([trap.name, "precious", address.name])
    assert os.path.samestat(before, trap.lstat())
    assert (precious.read_text(), precious.stat().st_mode & 0o777) == ("keep me", 0o644)


def test_names_that_are_all_taken_are_told(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not try for ever."""
    drawn: list[int] = []

    def same(size: int) -> str:
        drawn.append(size)
        return "000000"

    monkeypatch.setattr("secrets.token_hex", same)
    taken = address.parent / f"{listening_socket.prefix_of(address)}000000"
    taken.mkdir()
    with pytest.raises(SocketUnusable, match="in use"):
        listening_socket.bind(address)
    assert names(address.parent) == [taken.name]
    assert len(drawn) == shipped("memd.server.listening_socket._NAMES")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a lower limit of their own")
def test_many_clients_may_come_at_once(address: Path) -> None:
    """They wait until the daemon has time for them; only a client beyond those is refused, and told at once."""
    allowed = min(BACKLOG, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening_socket.bind(address))
        for _ in range(allowed + 1):  # the kernel lets in one more
            stack.enter_context(connected(address))
        with pytest.raises(BlockingIOError), connected(address):
            pass


def test_what_a_daemon_left_that_was_killed_while_it_began_to_listen_is_taken_away(address: Path) -> None:
    """Its socket under another name goes; those of other daemons, and whatever is no socket, stay."""
    sign = listening_socket.prefix_of(address)
    stay = {".123456", f"{sign}12345", f"{sign}1234567", f"{sign}abcdeg", f"{sign}aaaaaa", f"{sign}bbbbbb"}
    for name in stay | {f"{sign}012abc"}:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(address.with_name(name)))
    os.chown(address.with_name(f"{sign}bbbbbb"), 12_345, -1)  # another user's
    address.with_name(f"{sign}aaaaaa").unlink()
    address.with_name(f"{sign}aaaaaa").write_text("precious")
    listening_socket.bind(address).close()
    assert set(names(address.parent)) == stay | {address.name}


def bind_here(path: str) -> str:
    """What comes of listening at a path: the mode of the socket, or the error."""
    try:
        listening_socket.bind(Path(path)).close()
    except SocketUnusable as error:
        return str(error)
    return oct(Path(path).stat().st_mode)


def test_a_socket_that_another_user_has_left_in_the_place_is_told() -> None:
    """In a directory like /tmp nobody can take it away, and nobody is fooled: the daemon says so, and makes nothing."""
    assert os.getuid() == 0, "only root can become another user"
    with shared_directory() as directory:
        os.chown(directory, 0, 0)
        directory.chmod(0o1777)
        with socket.socket(socket.AF_UNIX) as theirs:
            theirs.bind(str(directory / "s"))
        told = as_other_user("tests.server.test_listening_socket", "bind_here", str(directory / "s"))
        assert (
            told
            == f"cannot listen on {directory}/s: Operation not permitted. Set MEMD_SOCKET to another path."
        )
        assert names(directory) == ["s"]
        assert (
            as_other_user("tests.server.test_listening_socket", "bind_here", str(directory / "t"))
            == "0o140600"
        )


def test_hanging_up_is_more_than_saying_no_more(address: Path) -> None:
    """A peer that ends its half of the connection may still listen; one that closed it does not."""
    with listening_socket.bind(address) as listening:
        client = connected(address)
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            assert not has_hung_up(accepted)
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(1) == b""
            assert not has_hung_up(accepted)
            client.close()
            assert has_hung_up(accepted)


_SERVING = """
import sys, time
from pathlib import Path
from tests.server.serving import serving
from memd_client.messages import Note
async def handle(request):
    return Note(path="secret")
with serving(Path(sys.argv[1]), handle):
    Path(sys.argv[1]).chmod(0o777)
    print("serving", flush=True)
    sys.stdin.read()
"""


def test_another_user_is_refused_even_where_the_modes_let_them_in() -> None:
    """A socket somebody opened to all still serves its own user alone: a stranger's connection just ends."""
    assert os.getuid() == 0, "only root can become another user"
    with shared_directory() as directory:
        directory.chmod(0o777)
        path = directory / "s"
        with subprocess.Popen(
            [sys.executable, "-c", _SERVING, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"serving\n"
            # Knocking without a word: the daemon's own user would be waited for.
            assert as_other_user("tests.server.test_listening_socket", "knock", str(path)) == ""
            path.chmod(0o600)
            assert (
                as_other_user("tests.server.test_listening_socket", "knock", str(path)) == "PermissionError"
            )
            server.terminate()
    until(lambda: server.poll() is not None)


_TAKING = """
import os, sys
from pathlib import Path
from memd.errors import FatalError
from memd.server import listening_socket
try:
    taken = listening_socket.given(os.environ, Path(sys.argv[1]))
except FatalError as error:
    sys.exit(f"{error.exit_code} {error}")
print([name for name in os.environ if name.startswith("LISTEN_")])
if taken is not None:
    print(taken.getsockname(), taken.gettimeout(), taken.get_inheritable())
"""


def take(path: Path, *passed: socket.socket, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a process says of the sockets that it was given."""
    return subprocess.run(
        as_manager(passed, variables, [sys.executable, "-c", _TAKING, str(path)]),
        pass_fds=[one.fileno() for one in passed],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_given_socket_is_taken_once(address: Path) -> None:
    """It waits for nothing, no child gets it, and no variable speaks of it any more."""
    with listening(address) as manager:
        taken = take(address, manager, LISTEN_FDNAMES="memd.socket")
    assert taken.stdout == f"[]\n{address} 0.0 False\n"


def test_a_given_socket_may_be_named_by_way_of_a_link(address: Path) -> None:
    """The path that the manager was told need not be letter by letter the one that memd was told."""
    (address.parent / "run").symlink_to(address.parent)
    with listening(address.parent / "run" / address.name) as manager:
        assert take(address, manager).returncode == 0


@pytest.mark.parametrize("variables", [{"LISTEN_PID": "1"}, {"LISTEN_FDS": "0"}, {"LISTEN_PID": "x"}])
def test_what_is_given_to_another_process_is_left_alone(address: Path, variables: dict[str, str]) -> None:
    """A shell between the manager and memd is not memd."""
    with listening(address) as manager:
        assert take(address, manager, **variables).stdout == "[]\n"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("elsewhere", "it listens on {directory}/elsewhere"),
        ("abstract", "it listens on @memd-"),
        ("two", "it has passed 2 sockets instead of one"),
        ("none", "what it has passed is no socket"),
        ("datagrams", "no Unix stream socket"),
        ("tcp", "no Unix stream socket"),
        ("connected", "Accept=yes"),
    ],
)
def test_what_is_no_socket_for_it_is_told(address: Path, wrong: str, told: str) -> None:
    """Each says what is wrong with the unit, where memd would listen, and how to fix it."""
    with listening(address) as manager, socket.socket(socket.AF_UNIX) as client:
        match wrong:
            case "elsewhere":
                other = listening(address.parent / "elsewhere")
            case "abstract":
                other = listening(Path(f"\0memd-{os.getpid()}"))
            case "datagrams":
                other = listening(address.parent / "d", socket.SOCK_DGRAM)
            case "tcp":
                other = socket.create_server(("127.0.0.1", 0))
            case "connected":
                client.connect(str(address))
                other, _ = manager.accept()
            case _:
                other = manager.dup()
        with other:
            passed = {"two": (manager, other), "none": ()}.get(wrong, (other,))
            taken = take(address, *passed, LISTEN_FDS=str(max(len(passed), 1)))
    assert taken.stderr.startswith(f"78 the service manager was to listen on {address} for memd, but ")
    assert told.format(directory=address.parent) in taken.stderr
    assert "memd-ctl service install" in taken.stderr


def test_a_socket_that_a_manager_holds_open_is_not_taken_over(address: Path) -> None:
    """Whoever listens at a path under its own name is no daemon that was killed; nobody is woken to find that out."""
    with listening(address) as manager:
        with pytest.raises(SocketUnusable, match="another process listens there"):
            listening_socket.bind(address)
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.accept()
        assert names(address.parent) == [address.name]
    with listening_socket.bind(address):  # the manager has let it go
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="addresses of Linux have 107 bytes")
@pytest.mark.parametrize("name", ["s", "socket", "memd.sock"])
@pytest.mark.parametrize("length", [100, 106, 107])
def test_whatever_path_an_address_can_hold_can_be_listened_at(name: str, length: int) -> None:
    """Though the name that the socket is made under is longer than its own."""
    with tempfile.TemporaryDirectory(prefix="memd", dir="/tmp") as home:
        room = length - len(home) - len(name) - 2
        directory = Path(home) / ("d" * room)
        directory.mkdir()
        path = directory / name
        assert len(os.fsencode(path)) == length
        with listening_socket.bind(path), connected(path):
            assert names(directory) == [name]
