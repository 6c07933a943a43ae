"""memd-ctl doctor, in processes of its own, beside real daemons in every condition."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import memd.ctl.commands.doctor  # noqa: F401 - another user may not be able to import it
from memd.ctl.__main__ import main
from tests.ctl.conftest import Ran
from tests.ctl.real import House, house
from tests.fakes.qmd_standin import Standin, says
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until

_SECRET = "the-vault-opens-with-mellon"


@pytest.fixture
def home() -> Iterator[House]:
    """A home with a workspace of two notes, and no daemon yet."""
    with house() as made:
        made.write_config('[agents.main]\nworkspace = "~/ws"\n')
        made.make("ws/MEMORY.md", f"# Memory\n\n{_SECRET}\n")
        made.make("ws/memory/2026-02-09.md", "# Tuesday\n\n我们选了数据库。\n")
        yield made


def _findings(ran: Ran) -> dict[str, dict[str, Any]]:
    answer = json.loads(ran.out)
    assert answer["ok"] is True
    assert all(set(one) == {"name", "ok", "detail", "fix"} for one in answer["data"])
    assert all(bool(one["fix"]) is not one["ok"] for one in answer["data"])
    found = {one["name"]: one for one in answer["data"]}
    assert len(found) == len(answer["data"])
    assert ran.code == (0 if all(one["ok"] for one in answer["data"]) else 1)
    assert _SECRET not in ran.out + ran.err
    assert "数据库" not in ran.out
    return found


def _doctor(home: House, *argv: str, timeout_s: float = 40) -> dict[str, dict[str, Any]]:
    """What doctor finds, however busy the machine is."""
    return _findings(home.run("doctor", "--json", "--timeout", str(timeout_s), *argv))


def _wrong(found: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, one in found.items() if not one["ok"]}


def _contents(state: Path) -> dict[str, tuple[int, str]]:
    """Every file with the time of its last change, and what is in it."""
    return {
        str(file.relative_to(state)): (
            file.stat().st_mtime_ns,
            hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in state.rglob("*")
        if file.is_file()
    }


def test_all_is_well_while_a_daemon_runs(home: House) -> None:
    """Every group is there, the exit status is 0, and the state directory is as it was before."""
    home.data("up")
    before = _contents(home.state)
    found = _doctor(home)
    # Whoever works on the code just now has newer code than the daemon.
    assert _wrong(found) <= {"daemon.version"}
    assert {name.rpartition(".")[0] for name in found} == {
        "installation",
        "config",
        "state",
        "socket",
        "daemon",
        "service",
        "limits",
        "agents.main",
    }
    assert "2 files, 2 chunks" in found["agents.main.index"]["detail"]
    assert found["agents.main.fit"]["detail"] == "the index was built for the configuration as it is"
    assert _contents(home.state) == before


def test_without_a_daemon_only_that_is_wrong(home: House) -> None:
    """What the daemon left is looked at all the same, and nothing is left beside it.

    A person reads a line a check in 80 columns, without colours off a terminal, what to do below, a summary at the end.
    """
    home.begin()
    home.data("down")
    before = _contents(home.state)
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process"}
    assert found["daemon.process"]["fix"] == "Start it: memd-ctl up"
    assert "2 files, 2 chunks" in found["agents.main.index"]["detail"]
    ran = home.run("doctor", "--timeout", "40")
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "  WRONG  process      does not run\n         -> Start it: memd-ctl up\n" in ran.out
    *_, summary = ran.out.splitlines()
    assert summary.startswith("1 of ")
    assert " checks is wrong, " in summary
    assert _contents(home.state) == before


def test_qmd_is_looked_for_where_it_is_chosen(home: House) -> None:
    """From here without a daemon, as the daemon has it with one: found or not, its version, and whether it answers."""
    standin = Standin(home.home / "bin")

    def choose(command: object) -> None:
        qmd = f'backend = "qmd"\nqmd = {{ command = "{command}", timeout_ms = 20000 }}'
        home.write_config(f'[agents.main]\nworkspace = "~/ws"\n{qmd}\n')

    choose("/no/such/qmd")
    found = _doctor(home)["agents.main.qmd"]
    assert not found["ok"]
    assert "/no/such/qmd" in found["detail"]
    assert "npm install" in found["fix"]
    choose(standin.program)
    home.begin()

    until(lambda: (home.data("status")["agents"]["main"]["qmd"] or {}).get("collections"), 20)
    found = _doctor(home)["agents.main.qmd"]
    assert found["ok"]
    assert "2.8.3 at ~/bin/qmd answers from 2" in found["detail"]
    standin.play("search", says("", stderr="Error: no", status=1))
    assert home.run("search", "vault").code == 0
    found = _doctor(home)["agents.main.qmd"]
    assert not found["ok"]
    assert "the built-in engine answers" in found["detail"]


def test_a_killed_daemon_leaves_a_log_that_is_read_but_not_taken_over(home: House) -> None:
    """The next daemon finds everything as the last one left it."""
    pid = home.begin()
    os.kill(pid, signal.SIGKILL)
    until(lambda: home.daemon is None, 10)
    assert (home.state / "agents" / "main.sqlite-wal").stat().st_size > 0
    before = _contents(home.state)
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process", "socket.listener"}
    assert "dead socket" in found["socket.listener"]["detail"]
    assert "2 files, 2 chunks" in found["agents.main.index"]["detail"]
    assert _contents(home.state) == before


def test_a_daemon_that_hangs_is_told_in_time(home: House) -> None:
    """It holds its locks and its socket, and answers nothing."""
    pid = home.begin()
    os.kill(pid, signal.SIGSTOP)
    try:
        found = _doctor(home, timeout_s=2)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert {"daemon.process", "socket.listener"} <= _wrong(found)
    assert f"pid {pid}" in found["daemon.process"]["detail"]
    assert f"kill -9 {pid}" in found["daemon.process"]["fix"]
    assert f"pid {pid}" in found["socket.listener"]["detail"]
    index = found["agents.main.index"]
    assert (
        index["ok"] or "gave no answer" in index["detail"]
    )  # which a busy machine may not give in two seconds


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("says", "told"),
    [
        (None, "accepts connections and never answers"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the protocol"),
    ],
)
def test_another_program_at_the_socket_is_named(home: House, says: bytes | None, told: str) -> None:
    """One that never answers, or one that answers something else."""
    home.state.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home.state / "memd.sock"))
        listening.listen(8)
        doctor = home.start("doctor", "--json", "--timeout", "2")
        heard = []
        listening.settimeout(30)
        for _ in range(2):  # one connection to see who it is, one to ask
            heard.append(listening.accept()[0])
            if says is not None:
                with suppress(BrokenPipeError):
                    heard[-1].sendall(says)
        found = _findings(home.ended(doctor))
        for connection in heard:
            connection.close()
    assert {"socket.listener", "daemon.process"} <= _wrong(found)
    assert told in found["socket.listener"]["detail"]
    assert f"pid {os.getpid()}" in found["socket.listener"]["detail"]


def test_damage_is_found_and_the_fix_mends_it(home: House) -> None:
    """Although nobody has met it yet: pages in the middle of the file are overwritten."""
    home.begin()
    home.data("down")
    file = home.state / "agents" / "main.sqlite"
    with file.open("r+b") as stream:
        stream.seek(3 * 4096)
        stream.write(b"\xa5" * 4096 * 4)
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process", "agents.main.index"}
    assert "damaged" in found["agents.main.index"]["detail"]
    _, remove, _ = found["agents.main.index"]["fix"].partition(": ")[2].split("; ")
    subprocess.run(remove, shell=True, check=True)
    home.begin()
    assert "sound: 2 files" in _doctor(home)["agents.main.index"]["detail"]


def test_files_that_were_set_aside_are_told(home: House) -> None:
    """Those of an index and those of the cache; the fix removes them."""
    for name in (
        "agents/main.sqlite.damaged-1",
        "agents/main.sqlite.damaged-1-wal",
        "embeddings.sqlite.damaged-3",
    ):
        file = home.state / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch()
    home.state.chmod(0o700)
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process", "agents.main.damaged", "state.damaged"}
    for name in ("agents.main.damaged", "state.damaged"):
        subprocess.run(found[name]["fix"].partition(": ")[2], shell=True, check=True)
    assert _wrong(_doctor(home)) == {"daemon.process"}
    assert list(home.state.rglob("*damaged*")) == []


def test_files_of_a_newer_memd_are_left_alone(home: House) -> None:
    """They are named, with both numbers, and not looked into."""
    home.begin()
    home.data("down")
    for file in ("agents/main.sqlite", "embeddings.sqlite"):
        script = f"import apsw; apsw.Connection({str(home.state / file)!r}).pragma('user_version', 99)"
        subprocess.run([sys.executable, "-c", script], check=True)
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process", "agents.main.index", "state.embeddings"}
    for name in ("agents.main.index", "state.embeddings"):
        assert "schema 99" in found[name]["detail"]
        assert "Upgrade" in found[name]["fix"]


def test_every_fault_of_the_configuration_is_told(home: House) -> None:
    """With line and key; the rest is looked at as far as it can be without it."""
    home.begin()
    home.config.write_text(
        '[agents.main]\nworkspce = "~/ws"\nmax_file_mb = -1\n[agents.main.redact]\nmode = "all"\n[extra]\n',
        encoding="utf-8",
    )
    pid = home.daemon
    found = _doctor(home)
    assert "config.file" in _wrong(found)
    detail = found["config.file"]["detail"]
    assert "config.toml:2: " in detail
    assert "workspce" in detail
    assert "max_file_mb" in detail
    assert "extra" in detail
    assert found["daemon.process"]["detail"].startswith(f"pid {pid}")
    assert found["agents.main.health"]["ok"]
    assert found["agents.notes"]["detail"].startswith("not checked")
    assert "left over" not in found["agents.main.index"]["detail"]


def test_a_refused_reload_and_a_change_that_was_not_read_are_told(home: House) -> None:
    """First the file is newer than what the daemon follows, then it is wrong."""
    home.begin()
    home.make("more/a.md")
    home.write_config('[agents.main]\nworkspace = "~/ws"\nextra_paths = ["~/more"]\n')
    found = _doctor(home)
    assert "daemon.config" in _wrong(found)
    assert found["daemon.config"]["fix"].endswith("memd-ctl reload")
    home.write_config("nonsense = 1\n")
    pid = home.daemon
    assert pid is not None
    os.kill(pid, signal.SIGHUP)
    until(lambda: "refused" in _doctor(home)["daemon.config"]["detail"], 30)


def test_a_home_with_nothing_in_it(home: House) -> None:
    """A fresh user: there is no configuration, no notes, no state, and nothing is made."""
    shutil.rmtree(home.home)
    home.home.mkdir()
    found = _doctor(home)
    assert _wrong(found) == {"daemon.process", "agents.main.notes"}
    assert "does not exist yet" in found["state.directory"]["detail"]
    assert list(home.home.iterdir()) == []


@pytest.mark.parametrize("value", ["", None])
def test_a_process_without_a_home(home: House, value: str | None) -> None:
    """As in a container or a cron job: HOME is empty, or not there."""
    environ = {name: text for name, text in home.environ.items() if name != "HOME"}
    environ |= {"MEMD_STATE_DIR": str(home.state), "MEMD_CONFIG": str(home.config)}
    if value is not None:
        environ["HOME"] = value
    command = [sys.executable, "-m", "memd.ctl", "doctor", "--json", "--timeout", "40"]
    ended = subprocess.run(
        command, env=environ, cwd="/", capture_output=True, text=True, check=False, timeout=60
    )
    assert "daemon.process" in _wrong(_findings(Ran(ended.returncode, ended.stdout, ended.stderr)))
    assert ended.stderr == ""


def test_two_daemons_across_each_other_are_told(home: House) -> None:
    """One keeps the state directory, the other answers at the socket."""
    other = home.home / "other"
    mine = home.begin()
    home.data("--state-dir", str(other), "--socket", str(other / "s"), "up")
    try:
        found = _doctor(home, "--socket", str(other / "s"))
        assert "daemon.sole" in _wrong(found)
        assert f"pid {mine} keeps the state directory" in found["daemon.sole"]["detail"]
        assert "elsewhere" in _doctor(home)["daemon.sole"]["detail"]
    finally:
        home.data("--state-dir", str(other), "--socket", str(other / "s"), "down")


def test_an_agent_may_be_named(home: House) -> None:
    """Then what concerns others alone is left out; a name that nobody has is a mistake of the line."""
    home.make("work/MEMORY.md")
    home.write_config('[agents.main]\nworkspace = "~/ws"\n[agents.work]\nworkspace = "~/work"\n')
    assert not any(name.startswith("agents.work") for name in _doctor(home, "--agent", "main"))
    ran = home.run("doctor", "--agent", "nobody")
    assert ran.code == 2
    assert "main, work" in ran.err


def test_a_dead_network_mount_is_told_in_time(home: House) -> None:
    """An extra path lies on a file system that never answers; everything else is looked at."""
    dead = home.home / "dead"
    dead.mkdir()
    home.write_config(f'[agents.main]\nworkspace = "~/ws"\nextra_paths = ["{dead}/notes"]\n')
    command = [sys.executable, "-m", "tests.ctl.deadmount", str(dead)]
    command += [sys.executable, "-m", "memd.ctl", "doctor", "--json", "--timeout", "4"]
    ended = subprocess.run(
        command,
        env=home.environ,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    found = _findings(Ran(ended.returncode, ended.stdout, ended.stderr))
    assert _wrong(found) >= {"daemon.process", "agents.main.notes"}
    # A busy machine may not even have begun to look.
    assert "gave no answer" in found["agents.main.notes"]["detail"]
    assert found["state.directory"]["ok"]


def examined(home: str) -> list[dict[str, Any]]:
    """What doctor finds for whoever calls this, of places that are below a directory."""
    out = TextIOWrapper(BytesIO())
    with redirect_stdout(out):
        main(
            [
                "doctor",
                "--json",
                "--timeout",
                "40",
                "--state-dir",
                f"{home}/state",
                "--config",
                f"{home}/config.toml",
            ]
        )
    out.seek(0)
    data: list[dict[str, Any]] = json.loads(out.read())["data"]
    return data


def test_another_user_is_told_what_is_not_theirs() -> None:
    """The state directory is root's, and the interpreter may be out of reach as well: nothing breaks."""
    with shared_directory() as directory:
        (directory / "state").mkdir(mode=0o700)
        (directory / "config.toml").write_text(
            f'[agents.main]\nworkspace = "{directory}"\nprovider = "none"\n'
        )
        found = as_other_user("tests.ctl.test_doctor", "examined", str(directory))
    wrong = {one["name"]: one for one in found if not one["ok"]}
    assert {"state.directory", "socket.listener", "daemon.process"} <= set(wrong)
    assert "belongs to user 0" in wrong["state.directory"]["detail"]
    assert "Permission denied" in wrong["socket.listener"]["detail"]
    [embeddings] = [one["detail"] for one in found if one["name"] == "state.embeddings"]
    assert "the state directory is another user's" in embeddings
