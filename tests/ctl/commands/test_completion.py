"""memd-ctl completion, in the shells that are there; each of them is asked as a person would with the tab key."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memd.ctl.arguments import COMMANDS
from memd.ctl.failures import BAD_CONFIG, ERROR
from tests.ctl.conftest import Run

_FILES = {
    "bash": "bash-completion/completions/memd-ctl",
    "zsh": "zsh/site-functions/_memd-ctl",
    "fish": "fish/vendor_completions.d/memd-ctl.fish",
    "man": "man/man1/memd-ctl.1",
}
_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_shtab_memd_ctl memd-ctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Typed words, and what may follow; of a file, that it is one.
_TYPED = [
    (["memd-ctl", "sea"], "search"),
    (["memd-ctl", "search", "--sor"], "--sort"),
    (["memd-ctl", "search", "--sort", "t"], "time"),
    (["memd-ctl", "mcp", "inst"], "install"),
    (["memd-ctl", "mcp", "install", "--client", "zed"], "zed"),
    (["memd-ctl", "web", "--editor", "obs"], "obsidian"),
    (["memd-ctl", "up", "note"], "notes"),
    (["memd-ctl", "--config", "conf"], "conf.toml"),
]


def _needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program}")


@pytest.fixture
def share(run: Run, home: Path) -> Path:
    """Where all was written."""
    ran = run("completion", "install")
    assert ran.code == 0, ran.err
    assert "~/.local/share/man/man1/memd-ctl.1" in ran.out
    return home / ".local" / "share"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory with a directory and a file."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "conf.toml").touch()
    return tmp_path


@pytest.mark.rows(3)
@_needs("bash")
@pytest.mark.parametrize(("typed", "expected"), _TYPED, ids=" ".join)
def test_bash(share: Path, here: Path, typed: list[str], expected: str) -> None:
    """Commands, options, their values, and files."""
    command = ["bash", "--norc", "-c", _BASH, "bash", str(share / _FILES["bash"]), *typed]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here, timeout=60)
    assert expected in done.stdout.splitlines()


@pytest.mark.rows(3)
@_needs("fish")
@pytest.mark.parametrize(("typed", "expected"), _TYPED, ids=" ".join)
def test_fish(share: Path, here: Path, typed: list[str], expected: str) -> None:
    """It finds the file by itself."""
    environ = {**os.environ, "HOME": str(share.parents[1]), "XDG_DATA_HOME": str(share)}
    command = ["fish", "--private", "-c", f"complete -C '{' '.join(typed)}'"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=here, env=environ, timeout=60
    )
    assert expected in [line.split("\t")[0].rstrip("/") for line in done.stdout.splitlines()]


@_needs("zsh")
def test_zsh(share: Path, here: Path) -> None:
    """With the line that a person adds to .zshrc, by pressing Tab."""
    home = share.parents[1]
    (home / ".zshrc").write_text(
        f"PS1='%%%% '\nfpath=({share}/zsh/site-functions $fpath)\nautoload -U compinit\ncompinit -u -D\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(here)
        os.execvpe("zsh", ["zsh", "-i"], {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"})
    try:
        _until_read(terminal, "%")
        for typed, expected in _TYPED:
            line = " ".join(typed)
            os.write(terminal, f"{line}\t".encode())
            # It is typed to its end, or stands in a list with what it does.
            _until_read(terminal, " ".join([*typed[:-1], expected]), f"{expected}  --")
            os.write(terminal, b"\x15")  # Ctrl-U: an empty line again
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def _until_read(terminal: int, *expected: str) -> None:
    """Read a terminal until it has shown one of some texts."""
    said, ends = "", time.monotonic() + 60
    while not any(one in said for one in expected):
        ready, _, _ = select.select([terminal], [], [], max(0.0, ends - time.monotonic()))
        assert ready, (expected, said)
        said += os.read(terminal, 65_536).decode("utf-8", "replace").replace("\b", "")


@_needs("man")
def test_the_manual_page(share: Path) -> None:
    """It has every command with its options, and those of all once."""
    command = ["man", "-P", "cat", "-l", str(share / _FILES["man"])]
    environ = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, timeout=60)
    for name in COMMANDS:
        assert f"COMMAND 'memd-ctl {name}'" in done.stdout
    assert done.stdout.count("--state-dir") <= 3
    assert "--no-browser" in done.stdout
    assert "MEMD_SOCKET" in done.stdout


def test_all_goes_again(run: Run, share: Path) -> None:
    """And nothing else does: what somebody else wrote is neither replaced nor deleted."""
    there = [share / file for file in _FILES.values()]
    assert all(file.is_file() for file in there)
    assert run("completion", "install").code == 0  # again, as after an upgrade
    there[0].write_text("complete -W mine memd-ctl\n")
    refused = run("completion", "install")
    assert (refused.code, str(there[0]) in refused.err) == (ERROR, True)
    ran = run("completion", "uninstall", "--json")
    assert json.loads(ran.out)["data"]["files"] == [str(file) for file in there[1:]]
    assert [file.exists() for file in there] == [True, False, False, False]
    assert there[0].read_text() == "complete -W mine memd-ctl\n"
    assert "is nothing" in run("completion", "uninstall").out


def test_what_would_be_written(run: Run, home: Path) -> None:
    """Is printed, and not written; XDG_DATA_HOME decides where."""
    ran = run("completion", "install", "--print")
    assert "#compdef memd-ctl" in ran.out
    assert not (home / ".local").exists()


@pytest.mark.parametrize("name", ["shtab", "argparse_manpage.manpage"])
def test_without_its_packages(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It names the one that is missing, and the command that installs both."""
    monkeypatch.setitem(sys.modules, name, None)
    ran = run("completion", "install")
    assert (ran.code, name in ran.err, "[terminal]" in ran.err) == (BAD_CONFIG, True, True)
