"""From a command line to an exit status."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from memd.ctl.__main__ import main
from memd_client.messages import Note, Reply, Request, Status
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import FOUND, agent, answering, status
from tests.ctl.conftest import Run
from tests.modules import existing

# Each of them takes longer to import than the daemon takes to answer.
_HEAVY = existing(
    "rich",
    "numpy",
    "httpx",
    "structlog",
    "asyncio",
    "tomlkit",
    "apsw",
    "watchfiles",
    "uvloop",
    "typing_extensions",
    "memd.config.settings",
    "memd.config.load",
    "memd.config.check",
)

_ASK = f"""
import sys
from memd.ctl.__main__ import main
code = main(sys.argv[1:])
print(*sorted(set({_HEAVY!r}) & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


_LOOK = "Look at where standard output goes: this concerns no file of memd.\n"


def _ask(argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", _ASK, *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=os.environ)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("argv", "reply"),
    [
        (["search", "x"], FOUND),
        (["search", "x", "--json"], FOUND),
        (["get", "a.md"], Note(path="a.md", text="x", end_line=1)),
        (["status", "--json"], status(agent())),
        (["status"], status(agent())),
    ],
)
def test_what_a_hook_calls_imports_nothing_heavy(address: Path, argv: list[str], reply: Reply) -> None:
    """An agent may ask before every prompt: the time to start is the time to answer."""
    with serving(address, answering(reply)):
        asked = _ask([*argv, "--socket", str(address)])
    assert asked.returncode == 0
    assert asked.stdout
    assert asked.stderr == "\n"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_has_seen_enough_is_no_error(address: Path, flags: list[str]) -> None:
    """As of `memd-ctl search x | head -1`: not a word, not even from Python at its end."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "memd.ctl", "search", "x", "--socket", str(address), *flags]
    with serving(address, answering(FOUND)):
        ended = subprocess.run(
            command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60, env=os.environ
        )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.usefixtures("home")
def test_output_that_cannot_be_written_is_told_in_a_line(address: Path, tmp_path: Path) -> None:
    """As on a full disk, where the output goes to a file."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    run = f"{limit}; from memd.ctl.__main__ import main; raise SystemExit(main(['search', 'x', '--socket', {str(address)!r}]))"
    command = [sys.executable, "-B", "-c", run]
    with serving(address, answering(FOUND)), (tmp_path / "out").open("wb") as out:
        ended = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, check=False, timeout=60, env=os.environ
        )
    assert ended.returncode == 1
    said = f"memd-ctl: The output could not be written: {os.strerror(errno.EFBIG)}.\n"
    assert ended.stderr.decode() == f"{said}{_LOOK}"


@pytest.mark.usefixtures("home")
def test_ctrl_c_ends_a_wait(address: Path) -> None:
    """At once, although the daemon owes an answer, and with the terminal as it was."""
    terminal, theirs = os.openpty()
    command = [sys.executable, "-m", "memd.ctl", "sync", "--socket", str(address)]

    def busy(peer: Peer) -> None:
        peer.greet()
        with suppress(EOFError, OSError):
            while isinstance((asked := peer.hear())[1], Status):
                peer.answer(asked[0], status(agent()))
            peer.wait_for_end()

    with serving(address, busy, busy, busy):
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ)
        os.close(theirs)
        told = b""
        while b"214 files searchable" not in told:
            told += os.read(terminal, 4096)
        waiting.send_signal(signal.SIGINT)
        with suppress(OSError):  # Linux says that the other end is closed with an error
            while data := os.read(terminal, 4096):
                told += data
        out, _ = waiting.communicate(timeout=60)
    os.close(terminal)
    assert (waiting.returncode, out) == (130, b"")
    assert b"Traceback" not in told
    assert told.rindex(b"\x1b[?25h") > told.rindex(b"\x1b[?25l")  # the cursor is back


def test_the_version_is_that_of_the_distribution(run: Run) -> None:
    """It is looked up when it is asked for."""
    with pytest.raises(SystemExit) as ended:
        run("--version")
    assert ended.value.code == 0


def test_the_console_script_is_there() -> None:
    """It is what everybody calls."""
    script = Path(sys.executable).with_name("memd-ctl")
    ended = subprocess.run([script, "--version"], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, f"memd-ctl {version('memd-daemon')}\n")


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">&-", 1, "memd-ctl: The output could not be written: standard output is closed.\n"),
        ("<&- >&- 2>&-", 1, ""),
        ("2>&- >/dev/null", 0, ""),
    ],
)
def test_what_is_printed_to_a_closed_stream_goes_nowhere(
    address: Path, redirection: str, code: int, said: str
) -> None:
    """Least of all to the daemon; that an answer is lost is told, as far as anything can be told."""
    heard: list[Request] = []
    with serving(address, answering(FOUND, heard=heard)):
        ran = subprocess.run(
            [
                "/bin/sh",
                "-c",
                f'exec "$0" -m memd.ctl search x --socket "$1" {redirection}',
                sys.executable,
                address,
            ],
            capture_output=True,
            check=False,
        )
    assert (ran.returncode, ran.stdout) == (code, b"")
    assert ran.stderr.decode() == (f"{said}{_LOOK}" if said else "")
    assert len(heard) == 1


def test_a_closed_stdin_is_an_empty_one(tmp_path: Path) -> None:
    """For what reads it, and for what asks a person only if there is one."""
    here = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    for words in ("redact -", "config init"):
        ran = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" -m memd.ctl {words} <&-', sys.executable],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | here,
        )
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr


def test_without_a_home_nothing_is_written(tmp_path: Path) -> None:
    """To a directory called `~` least of all; it is said once."""
    code = (
        "import os, pwd, sys\n"
        "for name in list(os.environ):\n"
        "    if name == 'HOME' or name.startswith(('MEMD_', 'XDG_')): del os.environ[name]\n"
        "def unknown(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = unknown\n"
        "from memd.ctl.__main__ import main\n"
        "for words in (['mcp', 'install', '--client', 'cursor'], ['config', 'init'], ['config', 'check']): print(main(words))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["78"] * 3
    assert ran.stderr.count("The home directory of this user is not known") == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "words", [["config", "show"], ["config", "show", "--json"], ["--help"], ["--version"]]
)
def test_an_output_that_cannot_be_written_is_told_in_a_sentence(words: list[str]) -> None:
    """No traceback, and no complaint of Python's at the end."""
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "memd.ctl", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
    said = "memd-ctl: The output could not be written: No space left on device.\n"
    assert (ran.returncode, ran.stderr) == (1, f"{said}{_LOOK}")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_cannot_be_found_is_told_where_the_output_cannot_be_written(options: list[str]) -> None:
    """A failure is not hidden by that of the output."""
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "memd.ctl", "eval", "/none.toml", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (ran.returncode, "none.toml does not exist." in ran.stderr) == (1 if options else 3, True)


@pytest.mark.parametrize("words", [["up", "."], ["--config", "x.toml", "config", "check"]])
def test_a_working_directory_that_is_gone_is_told(tmp_path: Path, words: list[str]) -> None:
    """Nothing in it can be named any more."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from memd.ctl.__main__ import main; raise SystemExit(main({words!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "memd-ctl: The directory in which memd-ctl was called does not exist any more.\n"
        "Go to another one (cd), or name files and directories by paths that begin with /.\n"
    )


@pytest.mark.parametrize(("words", "status"), [("search x", 130), ("hook user-prompt", 0), ("hook", 0)])
def test_an_interruption_while_it_loads_is_no_failure_of_a_hook(
    monkeypatch: pytest.MonkeyPatch, words: str, status: int
) -> None:
    """The program that has started it goes on without it."""
    statuses = list[int]()

    @contextmanager
    def quiet(ends_with: int) -> Iterator[None]:
        statuses.append(ends_with)
        yield

    monkeypatch.setattr("memd.ctl.__main__.quiet", quiet)
    monkeypatch.setattr("memd.ctl.program.main", lambda _: 0)
    monkeypatch.setattr(sys, "argv", ["memd-ctl", *words.split()])
    assert main() == 0
    assert statuses == [status]
