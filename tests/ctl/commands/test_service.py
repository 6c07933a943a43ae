"""memd-ctl service, with a real user manager of systemd and with a stand-in for launchd."""

import json
import os
import plistlib
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memd.ctl import arguments
from memd.ctl.commands import service
from memd.ctl.failures import Failed
from memd.ctl.invocation import Invocation, places
from memd.ctl.output.terminal import Outcome, process_screen
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Ran, Run
from tests.ctl.real import House, house
from tests.ctl.usermanager import UserManager, user_manager
from tests.wait import until

_CONFIG = '[defaults]\nprovider = "none"\n[agents.main]\nworkspace = "~/ws"\n'
_WITH_A_KEY = """
[agents.main]
workspace = "~/ws"
provider = "openai"
remote = { base_url = "http://127.0.0.1:9/v1", api_key_env = "MY_KEY" }
"""
_FILES = ["memd.service", "memd.socket"]


@pytest.fixture
def user() -> Iterator[UserManager]:
    """A user who is logged in, with a workspace and a configuration."""
    with TemporaryDirectory(prefix="memd-") as directory, user_manager(Path(directory)) as one:
        (one.home / "ws").mkdir()
        (one.home / "ws" / "MEMORY.md").write_text("# We picked PostgreSQL\n", encoding="utf-8")
        config = one.home / ".config" / "memd" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(_CONFIG, encoding="utf-8")
        yield one


def _installed(user: UserManager) -> list[str]:
    return sorted(str(path.relative_to(user.units)) for path in user.units.rglob("*") if not path.is_dir())


def test_a_life_as_a_service(user: UserManager) -> None:
    """Installed, it runs now and at login; installed again, nothing changes; removed, nothing of it is left."""
    ran = user.ctl("service", "install")
    assert ran.code == 0, ran
    assert ran.out.startswith("systemd runs memd (pid ")
    wants = ["default.target.wants/memd.service", "sockets.target.wants/memd.socket"]
    assert _installed(user) == sorted([*_FILES, *wants])
    for name in _FILES:
        assert stat.S_IMODE((user.units / name).stat().st_mode) & 0o022 == 0
    before = user.data("service", "status")
    assert (before["current"], before["enabled"], before["state"]) == (True, True, "active (running)")
    assert user.ctl("search", "postgresql").out.startswith("MEMORY.md:1-1  ")
    until(lambda: user.shown("memd.service", "StatusText") == "ready", 30)  # once its notes are indexed

    again = user.data("service", "install")
    assert (again["changed"], again["pid"]) == (False, before["pid"])

    removed = user.ctl("service", "uninstall")
    assert removed.code == 0, removed
    assert _installed(user) == []
    assert user.ctl("service", "status").code == 3
    assert user.shown("memd.service", "LoadState") == "not-found"
    assert not user.seen("/run/user/0/memd/memd.sock").exists()
    assert user.ctl("service", "uninstall").out.endswith("there is nothing to remove.\n")
    assert (user.home / "ws" / "MEMORY.md").exists()


@pytest.mark.long
def test_what_kills_it_is_made_good(user: UserManager) -> None:
    """Killed or hanging, it is started again, and clients that connect meanwhile are answered."""
    drop_in = user.units / "memd.service.d" / "quick.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nWatchdogSec=4\nRestartSec=100ms\n", encoding="utf-8")
    pid = user.data("service", "install")["pid"]
    # Once its notes are indexed: of a daemon that starts for the first time, they may be in no search yet.
    until(lambda: user.shown("memd.service", "StatusText") == "ready", 30)
    assert user.run("kill", "-KILL", str(pid)).code == 0
    assert user.ctl("search", "postgresql").out.startswith("MEMORY.md:1-1  ")
    pid = user.data("service", "status")["pid"]
    assert user.run("kill", "-STOP", str(pid)).code == 0
    until(lambda: user.shown("memd.service", "MainPID") not in {"0", str(pid)}, 30)
    assert user.ctl("search", "postgresql").out.startswith("MEMORY.md:1-1  ")
    assert user.data("service", "status")["restarts"] >= 2
    # What is not memd's stays.
    user.ctl("service", "uninstall")
    assert _installed(user) == ["memd.service.d/quick.conf"]


def test_it_stops_starts_and_reads_its_configuration_again(user: UserManager) -> None:
    """Stopped, no client starts it; `up` and `down` are the same as start and stop."""
    old = user.data("service", "install")["pid"]
    assert user.run("systemctl", "--user", "reload", "memd.service").code == 0
    assert user.shown("memd.service", "MainPID") == str(old)
    assert user.data("service", "restart")["pid"] != old
    stopped = user.ctl("service", "stop")
    assert stopped.out == "systemd has stopped memd. It starts it again at the next login.\n"
    assert user.ctl("status").code == user.ctl("service", "status").code == 69
    up = user.data("up")
    assert (up["started"], up["log"], up["files"]) == (True, None, 1)
    down = user.data("down")
    assert (down["was_running"], down["service"], down["pid"]) == (True, "systemd", up["pid"])
    assert user.ctl("status").code == 69
    assert user.ctl("down").out == "memd is not running.\n"


@pytest.mark.long
def test_the_first_client_starts_it(user: UserManager) -> None:
    """Where the service is at rest and its socket is not; `down` ends that too, and starts nothing to do so."""
    user.ctl("service", "install")
    user.run("systemctl", "--user", "stop", "memd.service")
    resting = user.data("service", "status")
    assert (resting["state"], resting["pid"]) == ("waiting for a client", None)
    assert user.ctl("search", "postgresql").out.startswith("MEMORY.md:1-1  ")
    user.run("systemctl", "--user", "stop", "memd.service")
    assert "systemd no longer waits for its clients" in user.ctl("down").out
    assert user.ctl("status").code == 69


def test_a_hardened_service_serves_and_writes_nowhere_else(user: UserManager) -> None:
    """With systemd's walls around it, indexing goes on; the rest of the home is read-only to it, and stays hardened."""
    assert user.ctl("service", "install", "--hardened").code == 0
    pid = user.data("service", "install")["pid"]
    assert _FILES[0] + ".d/hardening.conf" in _installed(user)
    assert user.data("service", "status")["current"]
    (user.home / "ws" / "memory").mkdir()
    (user.home / "ws" / "memory" / "new.md").write_text("# Tea with Anna\n", encoding="utf-8")
    assert user.ctl("search", "anna").out.startswith("memory/new.md:1-1  ")
    mounts = user.seen(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
    modes = {line.split()[4]: line.split()[5].split(",")[0] for line in mounts}
    assert modes["/"] == "ro"
    assert modes[str(user.seen_home / ".local/state/memd")] == "rw"
    user.ctl("service", "uninstall")
    assert _installed(user) == []


@pytest.mark.long
def test_a_key_comes_as_a_credential_or_from_the_environment_file(user: UserManager) -> None:
    """Neither stands in the unit, and the provider that needs it is taken."""
    config = user.home / ".config" / "memd"
    (config / "config.toml").write_text(_WITH_A_KEY, encoding="utf-8")
    drop_in = user.units / "memd.service.d" / "key.conf"
    drop_in.parent.mkdir(parents=True)
    user.ctl("service", "install")
    assert "MY_KEY" in _provider_trouble(user)
    (config / "env").write_text("MY_KEY=sk-from-a-file\n")
    user.ctl("service", "restart")
    assert "MY_KEY" not in _provider_trouble(user)
    (config / "env").unlink()
    (config / "one.key").write_text("sk-from-a-credential\n")
    drop_in.write_text("[Service]\nLoadCredential=MY_KEY:%E/memd/one.key\n")
    user.ctl("service", "restart")
    assert "MY_KEY" not in _provider_trouble(user)


def _provider_trouble(user: UserManager) -> str:
    main = user.data("status")["agents"]["main"]
    return f"{main['provider']} {main['provider_health']} {main['passed_over']}"


def test_a_wrong_configuration_is_told_and_not_tried_for_ever(user: UserManager) -> None:
    """Before anything is written; and where it is broken later, by whoever starts it."""
    config = user.home / ".config" / "memd" / "config.toml"
    config.write_text("wrong = 1\n", encoding="utf-8")
    refused = user.ctl("service", "install")
    assert (refused.code, _installed(user)) == (78, [])
    config.write_text(_CONFIG, encoding="utf-8")
    assert user.ctl("service", "install").code == 0
    config.write_text("wrong = 1\n", encoding="utf-8")
    broken = user.ctl("service", "restart")
    assert broken.code == 78
    assert "it cannot run with its configuration" in broken.err
    until(lambda: user.shown("memd.service", "ActiveState") == "failed", 20)
    assert user.shown("memd.service", "NRestarts") == "0"
    config.write_text(_CONFIG, encoding="utf-8")
    assert user.ctl("service", "start").code == 0


@pytest.mark.long
def test_odd_paths_reach_the_daemon_as_they_are(user: UserManager) -> None:
    """Blanks, percent signs, dollars and quotes in the state directory and the configuration."""
    odd = f'{user.seen_home}/a b %h $HOME "q"'
    (user.home / 'a b %h $HOME "q"').mkdir()
    config = user.home / 'a b %h $HOME "q"' / "c.toml"
    config.write_text(_CONFIG, encoding="utf-8")
    flags = ("--state-dir", f"{odd}/state", "--socket", f"{odd}/s", "--config", f"{odd}/c.toml")
    assert user.ctl("service", "install", *flags).code == 0
    told = user.data("status", *flags)
    assert (told["socket"], told["config"]) == (f"{odd}/s", f"{odd}/c.toml")
    assert user.data("service", "status", *flags)["current"]
    # For other places it is another daemon's.
    assert user.ctl("service", "status").code == 1
    assert user.data("down")["was_running"] is False


@pytest.mark.long
def test_a_second_supervisor_is_refused(user: UserManager) -> None:
    """A daemon that `up` started, and the service of another installation, are in the way; each with what to do."""
    pid = user.data("up")["pid"]
    refused = user.ctl("service", "install")
    assert refused.code == 1
    assert f"memd runs already (pid {pid}), and systemd has not started it." in refused.err
    assert "memd-ctl down" in refused.err
    assert _installed(user) == []
    user.ctl("down")
    user.ctl("service", "install")
    user.ctl("service", "stop")
    unit = user.units / "memd.service"
    unit.write_text(_of_another(unit.read_text(encoding="utf-8")), encoding="utf-8")
    refused = user.ctl("service", "install")
    assert refused.code == 1
    assert "runs memd from another installation: /opt/other/bin/python3." in refused.err
    assert "/opt/other" in unit.read_text(encoding="utf-8")
    assert user.ctl("service", "install", "--force").code == 0
    assert "/opt/other" not in unit.read_text(encoding="utf-8")


def _of_another(text: str) -> str:
    """The unit as another installation would have written it."""
    from memd.ctl.service.supervisor import marked  # noqa: PLC0415 - only this test forges units

    lines = text.splitlines(keepends=True)[1:]
    command = next(line for line in lines if line.startswith("ExecStart="))
    other = f"ExecStart=/opt/other/bin/python3 {command.split(' ', 1)[1]}"
    return marked("".join(other if line == command else line for line in lines))


# --- without a user manager


@pytest.fixture
def ours() -> Iterator[House]:
    """A house whose agent main has a workspace."""
    with house() as made:
        made.make("ws/MEMORY.md", "# We picked PostgreSQL\n")
        made.write_config('[agents.main]\nworkspace = "~/ws"\n')
        yield made


def _printed_units(out: str) -> dict[str, str]:
    """The units in what is printed as `systemctl cat` prints them."""
    pieces = [piece for piece in ("\n" + out).split("\n# /") if piece]
    return {f"/{head}": text for head, _, text in (piece.partition("\n") for piece in pieces)}


def test_print_shows_what_would_be_written(user: UserManager) -> None:
    """To the letter, with the commands that would be run on stderr; and nothing is written or run."""
    printed = user.ctl("service", "install", "--print", "--hardened")
    assert (printed.code, _installed(user)) == (0, [])
    assert "systemctl --user enable memd.socket memd.service\n" in printed.err
    document = user.data("service", "install", "--print", "--hardened")
    assert user.ctl("service", "install", "--hardened").code == 0
    written = {f"{user.seen_home}/.config/systemd/user/{name}": user.units / name for name in _PRINTED}
    assert _printed_units(printed.out) == {
        name: file.read_text(encoding="utf-8") for name, file in written.items()
    }
    assert {one["path"]: one["text"] for one in document["files"]} == {
        name: file.read_text(encoding="utf-8") for name, file in written.items()
    }
    removing = user.ctl("service", "uninstall", "--print").out.splitlines()
    assert removing[0] == "systemctl --user disable --now memd.socket memd.service"
    assert removing[1:4] == [f"rm {name}" for name in written]
    assert user.ctl("service", "stop", "--print").out == "systemctl --user stop memd.socket memd.service\n"
    assert user.data("service", "status")["pid"] is not None


_PRINTED = ("memd.service", "memd.socket", "memd.service.d/hardening.conf")


def test_without_a_user_manager_it_says_what_to_do(ours: House) -> None:
    """As in a container or after su: nothing is written, and there is another way."""
    refused = ours.run("service", "install")
    assert refused.code == 1
    assert "systemd takes no orders from this session" in refused.err
    assert "memd run" in refused.err
    assert not (ours.home / ".config" / "systemd").exists()
    assert ours.run("service", "install", "--print").code == 0
    status = ours.run("service", "status")
    assert (status.code, status.out) == (
        3,
        "memd is not installed as a service. `memd-ctl service install` has systemd start it at login.\n",
    )
    for action in ("start", "stop", "restart"):
        ran = ours.run("service", action)
        assert (ran.code, "systemd has no service of memd." in ran.err) == (3, True)


def test_without_systemd_it_says_so(ours: House) -> None:
    """Its programs are looked for on the PATH."""
    ours.environ = {**ours.environ, "PATH": str(ours.tmp)}
    refused = ours.run("service", "install", "--json")
    error = json.loads(refused.out)["error"]
    assert error["type"] == "no_service_manager"
    assert "There is no systemctl on the PATH" in error["message"]
    logs = ours.run("service", "logs")
    assert (logs.code, "There is no journalctl on the PATH." in logs.err) == (1, True)


def test_up_and_down_do_without_a_manager_that_is_not_there(ours: House) -> None:
    """A home directory that another machine installed the service in: the daemon runs all the same."""
    units = ours.home / ".config" / "systemd" / "user"
    for one in ours.data("service", "install", "--print")["files"]:
        units.mkdir(parents=True, exist_ok=True)
        Path(one["path"]).write_text(one["text"], encoding="utf-8")
    assert ours.run("up").out.startswith("Started memd (pid ")
    told = ours.run("service", "status")
    assert told.code == 1
    assert "memd is installed with systemd, which cannot be asked how it is." in told.out
    down = ours.run("down")
    assert down.out.startswith("Stopped memd (pid ")
    assert down.err == "systemd may start it again: it is installed as a service.\n"


@pytest.mark.long
def test_what_somebody_else_wrote_is_left_alone(user: UserManager) -> None:
    """A unit of their own, one that was changed, one that is masked: told by name, and replaced only by force."""
    user.units.mkdir(parents=True)
    unit = user.units / "memd.service"
    unit.write_text(
        "[Service]\nExecStart=/bin/true\nEnvironment=OPENAI_API_KEY=sk-secret\n", encoding="utf-8"
    )
    for action in ("install", "uninstall"):
        refused = user.ctl("service", action)
        assert refused.code == 1
        assert (
            "~/.config/systemd/user/memd.service was not written by memd; it was left alone." in refused.err
        )
    assert "OPENAI_API_KEY=sk-secret" in unit.read_text(encoding="utf-8")
    assert user.ctl("service", "install", "--force").code == 0
    changed = unit.read_text(encoding="utf-8").replace(
        "RestartSec=2", "RestartSec=9\nEnvironment=K=sk-secret"
    )
    unit.write_text(changed, encoding="utf-8")
    drifted = user.ctl("service", "status")
    assert drifted.code == 1
    assert "~/.config/systemd/user/memd.service differs in Environment and RestartSec" in drifted.err
    assert "sk-secret" not in drifted.out + drifted.err
    doctor = {one["name"]: one for one in user.data("doctor")}
    assert not doctor["service.units"]["ok"]
    assert "was changed since memd wrote it (Environment and RestartSec)" in doctor["service.units"]["detail"]
    assert "service install --force" in doctor["service.units"]["fix"]
    assert "was changed since memd wrote it" in user.ctl("service", "install").err
    assert user.ctl("service", "uninstall", "--force").code == 0
    unit.symlink_to("/dev/null")
    assert "was not written by memd" in user.ctl("service", "install").err


_JOURNALCTL = """#!/bin/sh
echo "$@" > {heard}
echo '{{"timestamp": "2026-02-09T10:00:00Z", "level": "info", "event": "daemon.started"}}'
echo 'Started memd.service.'
"""


def test_logs_are_those_of_the_journal(user: UserManager) -> None:
    """Line by line as they were written, of this unit alone, as many as are wanted."""
    programs = user.home / "bin"
    programs.mkdir()
    (programs / "journalctl").write_text(_JOURNALCTL.format(heard=user.seen_home / "heard"), encoding="utf-8")
    (programs / "journalctl").chmod(0o755)
    user.environ = {**user.environ, "PATH": f"{user.seen_home}/bin:{os.environ['PATH']}"}
    assert user.data("service", "logs", "-n", "7")["lines"][1] == "Started memd.service."
    heard = (user.home / "heard").read_text(encoding="utf-8").split()
    assert heard == ["--user-unit=memd.service", "--output=cat", "--quiet", "--no-pager", "--lines=7"]
    assert user.ctl("service", "logs").out.startswith('{"timestamp": "2026-02-09T10:00:00Z"')
    (programs / "journalctl").write_text("#!/bin/sh\necho 'No journal' >&2\nexit 1\n", encoding="utf-8")
    assert "journalctl failed: No journal" in user.ctl("service", "logs").err
    (programs / "journalctl").write_text("#!/bin/sh\n", encoding="utf-8")
    assert user.ctl("service", "logs") == Ran(0, "", "The journal has no line of memd.service.\n")


# --- launchd


_LAUNCHCTL = """#!{python}
import os, sys
heard, job = "{heard}", "{job}"
with open(heard, "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
loaded = os.path.exists(job)
match sys.argv[1:]:
    case ["print", "gui/{uid}"]:
        sys.exit(125 if os.environ.get("NO_SCREEN") else 0)
    case ["print", _]:
        if not loaded:
            sys.exit("Could not find service")
        print("gui/{uid}/local.memd = {{\\n\\tpath = {plist}\\n\\tstate = running\\n\\n\\tpid = 4711")
        print("\\tlast exit code = (never exited)\\n\\tendpoints = {{\\n\\t\\tstate = active\\n\\t}}\\n}}")
    case ["bootstrap", _, _]:
        if loaded:
            sys.exit("Bootstrap failed: 5: Input/output error")
        open(job, "w").close()
    case ["bootout", _]:
        os.remove(job)
"""


class Mac:
    """A home on a Mac, where a stand-in for launchctl keeps what it heard."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        (self.home / "ws").mkdir()
        self.config = self.home / "Library" / "Application Support" / "memd" / "config.toml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(_CONFIG, encoding="utf-8")
        self.plist = self.home / "Library" / "LaunchAgents" / "local.memd.plist"
        self.address = directory / "s"
        self._heard = directory / "heard"
        programs = directory / "bin"
        programs.mkdir()
        script = _LAUNCHCTL.format(
            python=sys.executable,
            heard=self._heard,
            job=directory / "job",
            uid=os.getuid(),
            plist=self.plist,
        )
        (programs / "launchctl").write_text(script, encoding="utf-8")
        (programs / "launchctl").chmod(0o755)
        self.environ = {"PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, *words: str) -> Outcome:
        """Run memd-ctl service there."""
        options = arguments.parse(["service", *words])
        here = places(
            self.environ, "darwin", self.home, config=None, state_dir=None, socket=str(self.address)
        )
        invocation = Invocation(options, here, process_screen(wants_color=False, json=False), self.environ)
        return service.run_service(invocation, "darwin")

    def answered(self, *words: str) -> Outcome:
        """Likewise, with a daemon that answers as soon as it is started."""
        with serving(self.address, answering(status(agent(), pid=4711))):
            return self.run(*words)

    def heard(self) -> list[str]:
        """What launchctl was told since this was asked before, but for questions."""
        lines = self._heard.read_text(encoding="utf-8").splitlines() if self._heard.exists() else []
        self._heard.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith("print ")]


@pytest.fixture
def mac(short: Path) -> Mac:
    """A Mac with a workspace and a configuration."""
    return Mac(short)


def test_a_job_of_another_file_is_told(mac: Mac) -> None:
    """Such as one that an earlier installation has left: what is installed here is not what runs."""
    mac.answered("install")
    assert not [note for note in mac.run("status").notes if "another file" in note]
    launchctl = Path(mac.environ["PATH"].partition(":")[0], "launchctl")
    script = launchctl.read_text(encoding="utf-8")
    launchctl.write_text(script.replace(f"path = {mac.plist}", "path = /elsewhere.plist"), encoding="utf-8")
    told = [note for note in mac.run("status").notes if "another file" in note]
    assert told == ["launchd goes by another file: /elsewhere.plist"]


def test_a_life_with_launchd(mac: Mac) -> None:
    """Loaded into the session on the screen; a job that has changed is loaded anew; removed, nothing is left."""
    domain = f"gui/{os.getuid()}"
    job = f"{domain}/local.memd"
    load = f"bootstrap {domain} {mac.plist}"
    first = mac.answered("install")
    assert (first.exit_code, mac.heard()) == (0, [f"enable {job}", load])
    assert plistlib.loads(mac.plist.read_bytes())["ProgramArguments"][1:5] == ["-P", "-m", "memd", "run"]
    assert stat.S_IMODE((mac.home / "Library/Application Support/memd").stat().st_mode) & 0o700 == 0o700
    assert "changed" in str(mac.answered("install").data)
    assert mac.heard() == [f"kickstart {job}"]
    told: Any = mac.run("status").data
    assert (told["installed"], told["current"], told["pid"], told["state"]) == (True, True, 4711, "running")
    mac.answered("restart")
    mac.run("stop")
    assert mac.heard() == [f"kickstart -k {job}", f"bootout {job}"]
    stopped = mac.run("status")
    assert (stopped.exit_code, "has not read the file" in " ".join(stopped.notes)) == (69, True)
    mac.answered("start")
    mac.environ["CODEX_HOME"] = "/codex"
    mac.answered("install")
    assert mac.heard() == [load, f"bootout {job}", f"enable {job}", load]
    assert plistlib.loads(mac.plist.read_bytes())["EnvironmentVariables"] == {"CODEX_HOME": "/codex"}
    mac.run("uninstall")
    assert (mac.heard(), mac.plist.exists()) == ([f"bootout {job}"], False)


def test_print_shows_the_property_list(mac: Mac) -> None:
    """On stdout it is nothing else; where it belongs and what follows are remarks."""
    printed = mac.run("install", "--print")
    assert not mac.plist.exists()
    assert printed.notes[0] == "This belongs into ~/Library/LaunchAgents/local.memd.plist. Then:"
    assert mac.heard() == []
    mac.answered("install")
    assert mac.plist.read_text(encoding="utf-8") == printed.text


def test_launchd_without_a_screen_takes_no_agents(mac: Mac) -> None:
    """As over ssh; and there is nothing to harden one with."""
    mac.environ["NO_SCREEN"] = "1"
    with pytest.raises(Failed, match="launchd takes no orders from this session"):
        mac.run("install")
    with pytest.raises(Failed, match="leave --hardened out"):
        mac.run("install", "--hardened")
    assert not mac.plist.exists()


def test_other_systems_have_no_service(run: Run, home: Path, address: Path) -> None:
    """It is said what to do instead."""
    options = arguments.parse(["service", "status"])
    here = places({}, "freebsd14", home, config=None, state_dir=None, socket=str(address))
    with pytest.raises(Failed, match="knows no service manager on freebsd14"):
        service.run_service(
            Invocation(options, here, process_screen(wants_color=False, json=False), {}), "freebsd14"
        )
