"""memd-ctl openclaw."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from memd.ctl.commands import openclaw
from memd.ctl.integrations import json_edit
from memd.ctl.integrations.openclaw import OLDEST, plugin_files
from tests.ctl.conftest import Run
from tests.daemon.process import ROOT, Daemon

CONFIG = "{\n  // mine\n  agents: {defaults: {workspace: '~/notes'}},\n}\n"


@pytest.fixture(autouse=True)
def _usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENCLAW_CONFIG_PATH", "OPENCLAW_PROFILE", "OPENCLAW_WORKSPACE_DIR", "CLAWDBOT_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and directory below one, with its mode."""
    return {
        str(one.relative_to(directory)): (one.stat().st_mode, one.read_bytes() if one.is_file() else b"")
        for one in sorted(directory.rglob("*"))
    }


@pytest.fixture
def config(home: Path) -> Path:
    """OpenClaw's configuration."""
    file = home / ".openclaw" / "openclaw.json"
    file.parent.mkdir()
    file.write_text(CONFIG)
    file.chmod(0o640)
    return file


def test_what_is_installed_is_undone_wholly(run: Run, home: Path, config: Path) -> None:
    """Twice installed as once; what is there afterwards is what was there before."""
    before = snapshot(home)
    assert run("openclaw", "install").code == 0
    plugin = config.parent / "extensions" / "memd"
    assert {str(file.relative_to(plugin)) for file in plugin.rglob("*") if file.is_file()} == {
        *plugin_files(),
        "undo.json",
    }
    code, out, err = run("openclaw", "install")
    assert (code, out) == (
        0,
        "OpenClaw's memory is memd's already; ~/.openclaw/openclaw.json needed no change.\n",
    )
    assert "memd-ctl up" in err
    assert "// mine" in config.read_text()
    assert run("openclaw", "uninstall").code == 0
    assert snapshot(home) == before
    assert run("openclaw", "uninstall").out.startswith("OpenClaw has its own memory again")
    assert snapshot(home) == before


@pytest.mark.rows(1)
@pytest.mark.parametrize("of", ["_write_plugin", "change_file"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_installation_that_was_killed_is_made_again_and_undone(
    run: Run, home: Path, config: Path, monkeypatch: pytest.MonkeyPatch, of: str, when: str
) -> None:
    """Wherever it ended, and with what it left beside."""
    before = snapshot(home)
    real = getattr(openclaw, of)

    def killed(*given: Any, **named: Any) -> None:
        if when == "after":
            real(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(openclaw, of, killed)
        assert run("openclaw", "install").code == 130
    (config.parent / ".memd-left" / "new").mkdir(parents=True)
    assert run("openclaw", "install").code == 0
    assert run("openclaw", "uninstall").code == 0
    assert snapshot(home) == before


@pytest.mark.long
def test_several_at_once_are_one_after_the_other(home: Path, config: Path) -> None:
    """None takes what another has written for what was there before."""
    before = snapshot(home)
    command = [sys.executable, "-P", "-m", "memd.ctl", "openclaw"]
    environ = {"HOME": str(home), "PATH": "/nowhere"}
    installs = [
        subprocess.Popen([*command, "install"], env=environ, stderr=subprocess.PIPE) for _ in range(4)
    ]
    for one in installs:
        _, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
    assert subprocess.run([*command, "uninstall"], env=environ, check=False).returncode == 0
    assert snapshot(home) == before


def test_a_configuration_that_was_not_there_is_gone_again(run: Run, home: Path) -> None:
    """Where OpenClaw was not set up yet, and where it is not at all."""
    code, _, err = run("openclaw", "install")
    assert (code, list(home.iterdir())) == (3, [])
    assert "OpenClaw is not here" in err
    (home / ".openclaw").mkdir()
    before = snapshot(home)
    assert run("openclaw", "install").code == 0
    assert run("openclaw", "uninstall").code == 0
    assert snapshot(home) == before


def test_writing_is_turned_on_by_choice(run: Run, config: Path) -> None:
    """It is named in the configuration of the plugin, and stays until that is gone."""
    run("openclaw", "install")
    assert "appendCommand" not in config.read_text()
    for flags in (["--write"], []):
        assert run("openclaw", "install", *flags).code == 0
        entry = json_edit.document(config.read_text(), comments=True)["plugins"]["entries"]["memd"]
        assert entry["config"]["appendCommand"][-2:] == ["--socket", entry["config"]["socket"]]
    run("openclaw", "uninstall")
    assert config.read_text() == CONFIG


def test_what_openclaw_wrote_since_stays(run: Run, config: Path) -> None:
    """It writes its configuration anew, without comments."""
    run("openclaw", "install")
    undo = (config.parent / "extensions" / "memd" / "undo.json").read_bytes()
    assert b"notes" not in undo
    said = {
        "agents": {},
        "plugins": {"slots": {"memory": "memd"}, "entries": {"memd": {"enabled": True}, "x": {}}},
    }
    config.write_text(json.dumps(said, indent=2))
    assert run("openclaw", "uninstall").code == 0
    assert json.loads(config.read_text()) == {"agents": {}, "plugins": {"entries": {"x": {}}}}
    assert not (config.parent / "extensions").exists()


def test_what_was_chosen_between_two_installations_comes_back(run: Run, config: Path) -> None:
    """Also where the files of the plugin are there already."""
    run("openclaw", "install")
    between = '{"plugins": {"slots": {"memory": "other"}}}'
    config.write_text(between)
    assert run("openclaw", "install").code == 0
    assert json.loads(config.read_text())["plugins"]["slots"]["memory"] == "memd"
    assert run("openclaw", "uninstall").code == 0
    assert json.loads(config.read_text()) == json.loads(between)


def test_a_program_that_tells_no_version_is_no_trouble(
    run: Run, home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be broken just now."""
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    program = home / "openclaw"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    assert run("openclaw", "install").code == 0
    assert '"memory": "memd"' in config.read_text()


def test_files_of_an_older_memd_are_replaced(run: Run, config: Path) -> None:
    """And the status says that they are old."""
    run("openclaw", "install")
    plugin = config.parent / "extensions" / "memd"
    (plugin / "old.js").write_text("")
    (plugin / "index.js").write_text("")
    assert json.loads(run("openclaw", "status", "--json").out)["data"]["files"] == "outdated"
    assert run("openclaw", "install").code == 0
    assert not (plugin / "old.js").exists()
    assert json.loads(run("openclaw", "status", "--json").out)["data"]["files"] == "current"
    assert run("openclaw", "uninstall").code == 0
    assert config.read_text() == CONFIG


def test_the_plugin_of_somebody_else_is_left_alone(run: Run, config: Path) -> None:
    """By install and uninstall."""
    plugin = config.parent / "extensions" / "memd"
    plugin.mkdir(parents=True)
    (plugin / "package.json").write_text('{"name": "other"}')
    before = snapshot(config.parent)
    code, _, err = run("openclaw", "install")
    assert code == 1
    assert "is not memd's plugin" in err
    assert "left alone" in run("openclaw", "uninstall").err
    assert snapshot(config.parent) == before


@pytest.mark.parametrize(
    "text", ['{"plugins": {"enabled": false}}', "{plugins", '{"plugins": {"$include": "x"}}']
)
def test_a_configuration_that_cannot_be_changed_is_left_alone(run: Run, config: Path, text: str) -> None:
    """And no file of the plugin is left behind."""
    config.write_text(text)
    before = snapshot(config.parent)
    code, _, err = run("openclaw", "install")
    assert code == 1
    assert '"memory": "memd"' in err  # to be pasted
    assert snapshot(config.parent) == before


def test_the_status_is_the_truth(
    run: Run, home: Path, short: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each part: OpenClaw, the plugin, the slot, the daemon, the agents."""
    monkeypatch.setenv("PATH", str(home))
    program = home / "openclaw"
    program.write_text(f"#!{sys.executable}\nprint('OpenClaw 2026.9.6 (x)')\n")
    program.chmod(0o755)
    code, out, _ = run("openclaw", "status")
    assert code == 1
    assert "Plugin: is not there" in out
    assert "Memory slot: memory-core, not memd" in out
    assert "Daemon: does not answer" in out
    with Daemon(short) as daemon:
        config.write_text(
            f'{{"agents": {{"defaults": {{"workspace": "{daemon.workspace}"}}, "list": [{{"id": "main"}}, {{"id": "b"}}]}}}}'
        )
        assert "b: memd has no agent of that name" in run("openclaw", "install").err
        code, out, err = run("openclaw", "status", "--json")
        data = json.loads(out)["data"]
        assert (code, err, data["works"], data["slot"], data["version"]) == (
            0,
            "",
            True,
            "memd",
            "OpenClaw 2026.9.6 (x)",
        )
        assert [(one["agent"], one["served"]) for one in data["agents"]] == [("main", True), ("b", False)]
        config.write_text(config.read_text().replace(str(daemon.workspace), "/elsewhere"))
        code, out, _ = run("openclaw", "status")
        assert code == 1
        assert f"another workspace, {daemon.workspace}" in out
        config.write_text(
            config.read_text()
            .replace("/elsewhere", str(daemon.workspace))
            .replace('"enabled": true', '"enabled": false')
        )
        assert run("openclaw", "status").out.endswith("OpenClaw's memory is not memd's.\n")


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("program", "meta", "is_refused"),
    [
        ("OpenClaw 2026.8.1 (x)", None, True),
        ("2026.3.28-2", "2026.9.6", True),
        ("OpenClaw 2026.8.2 (x)", "2026.1.5", False),
        (None, "2026.5.28-beta.1", True),
        (None, "2026.9.6", False),
        (None, None, False),
        ("OpenClaw dev", None, False),
    ],
)
def test_an_openclaw_that_would_not_start_with_the_plugin_is_left_alone(
    run: Run,
    home: Path,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str | None,
    meta: str | None,
    is_refused: bool,
) -> None:
    """What the program says counts, then which version wrote the configuration; what is not known is no reason."""
    monkeypatch.setenv("PATH", str(home))
    if program is not None:
        file = home / "openclaw"
        file.write_text(f"#!{sys.executable}\nprint({program!r})\n")
        file.chmod(0o755)
    if meta is not None:
        config.write_text(json.dumps({"meta": {"lastTouchedVersion": meta}}))
    before = snapshot(home)
    code, _, err = run("openclaw", "install")
    if is_refused:
        assert (code, snapshot(home)) == (1, before)
        assert "2026.8.2 and later" in err
        assert "mcp install --client openclaw" in err
        if program is not None:
            assert "does not load the plugin" in run("openclaw", "status").out
    else:
        assert code == 0


def test_the_oldest_version_is_the_one_that_the_package_names() -> None:
    """OpenClaw decides by its package.json, memd before it writes there."""
    package = json.loads(plugin_files()["package.json"])
    oldest = ".".join(map(str, OLDEST))
    assert (
        package["openclaw"]["compat"]["pluginApi"] == package["peerDependencies"]["openclaw"] == f">={oldest}"
    )


def test_a_program_that_does_not_say_its_version_is_not_waited_for(
    run: Run, home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is said all the same."""
    monkeypatch.setattr(openclaw, "_VERSION_S", 0.2)
    monkeypatch.setenv("PATH", str(home))
    program = home / "openclaw"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    program.chmod(0o755)
    data = json.loads(run("openclaw", "status", "--json").out)["data"]
    assert (data["version"], data["files"]) == (None, "missing")


def test_a_wheel_brings_the_plugin(tmp_path: Path) -> None:
    """The files that a clone has, and no others."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        shipped = {
            name.removeprefix("memd/javascript/")
            .replace("javascript/", "node_modules/memd-client/")
            .removeprefix("openclaw/")
            for name in packed.namelist()
            if name.startswith("memd/javascript/")
        }
    assert shipped == plugin_files().keys()
