"""memd-ctl logs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bounds import shipped
from tests.ctl.conftest import Run
from tests.wait import until

_LINES = [f'{{"event":"sync.finished","changed":{n}}}' for n in range(30)]


@pytest.fixture
def log(home: Path) -> Path:
    """The log of a daemon that `up` once started."""
    file = home / ".local" / "state" / "memd" / "memd.log"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(_LINES) + "\n", encoding="utf-8")
    return file


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("flags", "first"), [([], 0), (["-n", "3"], 27), (["--lines", "99"], 0), (["-n", "0"], 30)]
)
def test_the_log_is_printed(run: Run, flags: list[str], first: int) -> None:
    """All of it, or its last lines; a pipe gets them as they are."""
    assert run("logs", *flags) == (0, "".join(f"{line}\n" for line in _LINES[first:]), "")


@pytest.mark.parametrize(
    ("flags", "first"), [([], -8), (["-n", "3"], 27), (["-n", "33"], -3), (["-n", "99"], -8)]
)
def test_full_files_that_are_kept_come_before(run: Run, log: Path, flags: list[str], first: int) -> None:
    """The log is what all of them say, and so are its last lines."""
    log.with_name("memd.log.1").write_text("".join(f"{number}\n" for number in range(-5, 0)))
    log.with_name("memd.log.2").write_text("".join(f"{number}\n" for number in range(-8, -5)))
    everything = {number: f"{number}" for number in range(-8, 0)} | dict(enumerate(_LINES))
    assert run("logs", *flags) == (0, "".join(f"{everything[number]}\n" for number in range(first, 30)), "")


def test_json_gives_the_lines(run: Run, log: Path) -> None:
    """With the file they stand in."""
    code, out, _ = run("logs", "-n", "2", "--json")
    assert code == 0
    assert json.loads(out)["data"] == {"file": str(log), "lines": _LINES[-2:]}


def test_without_a_log_it_is_told_where_others_are(run: Run, home: Path) -> None:
    """A daemon that was started otherwise writes elsewhere."""
    code, out, err = run("logs")
    assert (code, out) == (3, "")
    assert f"There is no log at {home}/.local/state/memd/memd.log." in err


@pytest.mark.usefixtures("log")
def test_what_has_no_end_is_no_document(run: Run) -> None:
    """Following and JSON exclude each other."""
    assert run("logs", "--json", "-f").code == 2


def test_following_ends_with_ctrl_c(log: Path) -> None:
    """It begins with the last lines; the status is that of an interrupted program, without a traceback."""
    lines = shipped("memd.ctl.commands.logs._BEFORE_FOLLOWING")
    command = [sys.executable, "-m", "memd.ctl", "logs", "-f"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        got = [following.stdout.readline().decode().strip() for _ in range(lines)]
        with log.open("a", encoding="utf-8") as file:
            file.write("more\n")
        added = until(following.stdout.readline)
        following.send_signal(2)
        assert following.wait(60) == 130
        assert (got, added, following.stderr.read()) == (_LINES[-lines:], b"more\n", b"")
