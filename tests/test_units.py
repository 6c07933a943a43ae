"""The units as systemd and launchd read them, and that every distribution brings them along."""

import os
import plistlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from memd.ctl.invocation import Places
from memd.ctl.service import launchd, systemd
from memd.ctl.service.supervisor import ServiceUnit, launch, template

ROOT = Path(__file__).parents[1]
FILES = {
    "systemd/memd.service",
    "systemd/memd.socket",
    "systemd/memd.service.d/hardening.conf",
    "launchd/local.memd.plist",
}

_INSTALLED = """
import sys, memd
from memd.ctl.service.supervisor import template
print(memd.__path__[0])
sys.stdout.write("".join(map(template, sys.argv[1:])))
"""


def _units(
    home: Path, *, state: str = "state", socket: str = "run/memd.sock", config: str | None = None
) -> tuple[ServiceUnit, ...]:
    """What is installed on Linux for a daemon that /bin/true stands in for."""
    places = Places(home=home, config=None, state=home / state, socket=home / socket)
    command = ["/bin/true", "run", "--state-dir", str(places.state), "--socket", str(places.socket)]
    command += [] if config is None else ["--config", config]
    started = launch(tuple(command), {"XDG_CONFIG_HOME": str(home / "my 100% $config")}, places)
    return systemd.of_user({}, home).units(started, hardened=True)


def _verify(home: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    # Other units of the machine have sockets in the runtime directory, whose addresses must not be too long.
    with tempfile.TemporaryDirectory(prefix="memd-") as runtime:
        # A key that nobody knows is told on stderr, with an exit status of 0.
        return subprocess.run(
            ["systemd-analyze", "--user", "--man=no", "verify", *map(str, files)],
            env={"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": runtime},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def _written(units: tuple[ServiceUnit, ...]) -> list[Path]:
    for unit in units:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, encoding="utf-8")
    return [unit.path for unit in units if unit.path.suffix in {".service", ".socket"}]


@pytest.mark.parametrize("odd", ["plain", "with a blank", '100% "of" $HOME', "数据库 's", "back\\slash;#x"])
def test_systemd_finds_nothing_to_remark_on_in_what_is_installed(tmp_path: Path, odd: str) -> None:
    """Not even with paths that its syntax has a meaning for."""
    files = _written(_units(tmp_path, state=odd, socket=f"{odd}/s", config=str(tmp_path / odd / "c")))
    assert _verify(tmp_path, *files).stderr == ""


def test_systemd_reads_odd_paths_as_they_are(tmp_path: Path) -> None:
    """Specifiers, variables, quotes and escapes come out as the characters that they were."""
    odd = 'a %h $HOME "b" \\n 数据'
    service, socket, hardening = _units(tmp_path, state=odd, socket=f"{odd}/s")
    _written((service, socket, hardening))
    command = systemd.of_user({}, tmp_path).command_in(service.text)
    assert command[command.index("--state-dir") + 1] == str(tmp_path / odd)
    assert f'ListenStream={tmp_path}/a %%h $HOME "b" \\n 数据/s' in socket.text


def test_systemd_finds_nothing_to_remark_on_in_the_templates(tmp_path: Path) -> None:
    """They can be copied by hand: memd is then looked for where pip install --user puts it."""
    memd = tmp_path / ".local" / "bin" / "memd"
    memd.parent.mkdir(parents=True)
    memd.symlink_to("/bin/true")
    verified = _verify(tmp_path, *(ROOT / "systemd" / name for name in ("memd.service", "memd.socket")))
    assert (verified.returncode, verified.stderr) == (0, "")


def test_what_systemd_does_not_know_would_be_noticed(tmp_path: Path) -> None:
    """The check can fail."""
    service, *others = _units(tmp_path)
    spoilt = ServiceUnit(service.path, service.text.replace("RestartSec=", "RestartSecs="))
    assert "RestartSecs" in _verify(tmp_path, *_written((spoilt, *others))).stderr


def _settings(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^([A-Za-z]+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def test_the_service_says_what_memd_is_held_to(tmp_path: Path) -> None:
    """Readiness, watchdog, limits of restarting, a private umask, keys from a file; and nothing that user units cannot have."""
    service = _settings(_units(tmp_path)[0].text)
    wanted = {
        "Type": ["notify"],
        "NotifyAccess": ["main"],
        "WatchdogSec": ["30"],
        "Restart": ["on-failure"],
        "RestartPreventExitStatus": ["75 78"],
        "StartLimitIntervalSec": ["60"],
        "StartLimitBurst": ["5"],
        "Requires": ["memd.socket"],
        "EnvironmentFile": ["-%E/memd/env"],
        "UMask": ["0077"],
        "NoNewPrivileges": ["yes"],
        "SystemCallFilter": ["@system-service"],
        "WantedBy": ["default.target"],
        "Also": ["memd.socket"],
    }
    assert {name: service[name] for name in wanted} == wanted
    assert service["Environment"] == [f'"XDG_CONFIG_HOME={tmp_path}/my 100%% $config"']
    # These need a file system of its own, and so the drop-in; RuntimeDirectory would take the socket away at each stop.
    for name in (
        "ProtectSystem",
        "ProtectHome",
        "PrivateTmp",
        "PrivateUsers",
        "RuntimeDirectory",
        "StateDirectory",
    ):
        assert name not in service


def test_the_socket_is_its_owners_alone(tmp_path: Path) -> None:
    """As the one that the daemon makes by itself."""
    socket = _settings(_units(tmp_path)[1].text)
    assert socket["ListenStream"] == [f"{tmp_path}/run/memd.sock"]
    assert (socket["SocketMode"], socket["DirectoryMode"]) == (["0600"], ["0700"])
    assert socket["RemoveOnStop"] == ["yes"]


def test_a_hardened_service_writes_where_it_must(tmp_path: Path) -> None:
    """To its state and beside its socket, and it has the user namespace that the rest needs."""
    hardening = _settings(_units(tmp_path)[2].text)
    assert hardening["PrivateUsers"] == ["yes"]
    assert hardening["ProtectSystem"] == ["strict"]
    assert hardening["ReadWritePaths"] == [f"{tmp_path}/state {tmp_path}/run"]


def _job(home: Path, environ: dict[str, str]) -> dict[str, Any]:
    places = Places(home=home, config=None, state=home / "st & <ate>", socket=home / "s")
    started = launch(("/venv/bin/python3", "-P", "-m", "memd", "run", "--config", "/a & b"), environ, places)
    (unit,) = launchd.of_user(home, 501).units(started, hardened=False)
    assert unit.path == home / "Library" / "LaunchAgents" / "local.memd.plist"
    job: dict[str, Any] = plistlib.loads(unit.text.encode())
    return job


def test_the_property_list_says_all_that_launchd_needs(tmp_path: Path) -> None:
    """Key by key: paths are absolute, the umask is a number, a clean end is final, no key and no variable of a shell."""
    log = str(tmp_path / "st & <ate>" / "memd.log")
    assert _job(tmp_path, {"OPENAI_API_KEY": "sk-1", "PATH": "/bin"}) == {
        "Label": "local.memd",
        "ProgramArguments": ["/venv/bin/python3", "-P", "-m", "memd", "run", "--config", "/a & b"],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 10,
        "ProcessType": "Standard",
        "Umask": 0o077,
        "WorkingDirectory": "/",
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }


def test_the_property_list_has_the_places_of_a_users_programs(tmp_path: Path) -> None:
    """What a shell's profile says of them does not reach launchd."""
    job = _job(tmp_path, {"CODEX_HOME": "~/codex", "CLAUDE_CONFIG_DIR": "/c", "GEMINI_API_KEY": "g"})
    assert job["EnvironmentVariables"] == {"CODEX_HOME": f"{tmp_path}/codex", "CLAUDE_CONFIG_DIR": "/c"}


def test_the_property_list_is_named_for_its_label() -> None:
    """As launchd has it; and the template is one itself."""
    job = plistlib.loads((ROOT / "launchd" / "local.memd.plist").read_bytes())
    assert job["Label"] == launchd.LABEL
    assert {path.name for path in (ROOT / "launchd").iterdir()} == {f"{launchd.LABEL}.plist"}


def test_a_wheel_brings_the_units(tmp_path: Path) -> None:
    """Where the code looks for them, byte by byte."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        units = {
            name.removeprefix("memd/units/") for name in packed.namelist() if name.startswith("memd/units/")
        }
        assert units == FILES
        packed.extractall(tmp_path / "installed")
    told = subprocess.run(
        [sys.executable, "-c", _INSTALLED, *sorted(FILES)],
        env={"PYTHONPATH": f"{tmp_path}/installed:{ROOT}/client"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
    )
    where, _, texts = told.stdout.partition("\n")
    assert where == f"{tmp_path}/installed/memd"
    assert texts == "".join(map(template, sorted(FILES)))


def test_a_source_distribution_brings_the_units(tmp_path: Path) -> None:
    """A wheel that is built from it has them too."""
    (source,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert names >= FILES
