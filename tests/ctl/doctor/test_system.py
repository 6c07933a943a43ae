"""Processes of a user, and the limits of the system."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ctl.doctor import system
from memd.ctl.doctor.system import SystemLimits, Watching, check_limits
from tests.bounds import shipped
from tests.ctl.doctor.context import by_name

_LIMITS = "Limit                     Soft Limit           Hard Limit           Units\nMax open files            256                  4096                 files\n"


def _process(proc: Path, pid: int, *words: str) -> Path:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "fdinfo").mkdir()
    (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode())
    (folder / "comm").write_text("a name\n", encoding="utf-8")
    (folder / "limits").write_text(_LIMITS, encoding="utf-8")
    return folder


def test_watches_are_counted_by_process(tmp_path: Path) -> None:
    """Of each inotify instance, and of nothing else."""
    folder = _process(tmp_path, 12, "x")
    for number, (leads_to, info) in enumerate(
        [
            ("anon_inode:inotify", "pos: 0\ninotify wd:1 ino:5\ninotify wd:2 ino:6\n"),
            ("anon_inode:inotify", "pos: 0\n"),
            ("/dev/null", "inotify wd:1\n"),
        ]
    ):
        (folder / "fd" / str(number)).symlink_to(leads_to)
        (folder / "fdinfo" / str(number)).write_text(info, encoding="utf-8")
    _process(tmp_path, 13, "y")
    assert system.find_watching(os.getuid(), tmp_path) == {12: Watching(2, 2)}
    assert system.find_watching(os.getuid() + 1, tmp_path) == {}
    assert system.find_watching(os.getuid(), tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("words", "is_daemon"),
    [
        (["/venv/bin/python", "-P", "-m", "memd", "run", "--state-dir", "/s"], True),
        (["/venv/bin/python3", "/venv/bin/memd", "run"], True),
        (["/venv/bin/python", "-m", "memd.ctl", "run"], False),
        (["vim", "memd", "run"], False),
        (["/venv/bin/python", "-m", "memd", "--version"], False),
        ([], False),
    ],
)
def test_daemons_are_known_by_their_command(tmp_path: Path, words: list[str], *, is_daemon: bool) -> None:
    """As `up`, a service or a person starts them."""
    _process(tmp_path, 40, *words)
    assert system.find_daemons(os.getuid(), tmp_path) == ([40] if is_daemon else [])


def test_what_is_told_of_one_process(tmp_path: Path) -> None:
    """Its name, its interpreter and its limit; nothing of one that is gone."""
    _process(tmp_path, 5, "/venv/bin/python", "x")
    assert system.process_name(5, tmp_path) == "a name"
    assert system.interpreter_of(5, tmp_path) == "/venv/bin/python"
    assert system.open_files_limit(5, tmp_path) == 256
    assert system.process_name(6, tmp_path) is None
    assert system.interpreter_of(6, tmp_path) is None
    assert system.open_files_limit(6, tmp_path) is None


def test_settings_of_the_kernel_are_numbers(tmp_path: Path) -> None:
    """None where there is no such setting."""
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys" / "n").write_text("128\n", encoding="utf-8")
    assert system.kernel_setting("n", tmp_path) == 128
    assert system.kernel_setting("m", tmp_path) is None


def test_the_real_one_is_read(tmp_path: Path) -> None:
    """A process that watches a directory is found with its watch."""
    script = (
        "import ctypes, sys; c = ctypes.CDLL(None); n = c.inotify_init();"
        f"c.inotify_add_watch(n, {str(tmp_path).encode()!r}, 2); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        assert system.find_watching(os.getuid())[watching.pid] == Watching(1, 1)
        assert system.interpreter_of(watching.pid) == sys.executable
        watching.communicate()


_MINE, _AGENTS = 7, 2
_FILES = shipped("memd.ctl.doctor.system._FILES_ANYWAY") + _AGENTS * shipped(
    "memd.ctl.doctor.system._FILES_AN_AGENT"
)
_WANTED = {
    "watches": shipped("memd.ctl.doctor.system._WATCHES_WANTED"),
    "instances": shipped("memd.ctl.doctor.system._INSTANCES_WANTED"),
}
_GOOD = SystemLimits(
    open_files=1024, watches=1000, instances=128, used={_MINE: Watching(2, 300), 8: Watching(1, 100)}
)


@pytest.mark.parametrize(
    ("changed", "directories", "bad"),
    [
        ({}, 300, set()),
        ({}, 900, set()),  # what the daemon itself uses is no obstacle to it
        ({}, 901, {"watches"}),
        ({}, None, set()),
        ({"watches": None, "instances": None}, 10**6, set()),
        ({"instances": 3}, 1, {"instances"}),
        ({"instances": 4}, 1, set()),
        ({"open_files": _FILES - 1}, 1, {"open_files"}),
        ({"open_files": _FILES}, 1, set()),
        ({"open_files": None}, 1, set()),
        ({"of_daemons": {_MINE: 100}}, 1, {"open_files"}),
        ({"open_files": 100, "of_daemons": {_MINE: 1024}}, 1, set()),
    ],
)
def test_what_does_not_suffice_is_told(
    changed: dict[str, Any], directories: int | None, bad: set[str]
) -> None:
    """With the command that raises it, to no less than a usual number; what the system does not limit is fine."""
    limits = msgspec.structs.replace(_GOOD, **changed)
    found = by_name(check_limits(limits, agents=_AGENTS, directories=directories, daemon=_MINE))
    assert {name.removeprefix("limits.") for name, one in found.items() if not one.ok} == bad
    for name in bad - {"open_files"}:
        assert f"sysctl fs.inotify.max_user_{name}={_WANTED[name]} " in found[f"limits.{name}"].fix
