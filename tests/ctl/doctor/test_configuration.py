"""Whether the configuration can be read and says what memd knows."""

from pathlib import Path

import msgspec
import pytest

from memd.config.load import ConfigError
from memd.ctl.doctor import configuration
from memd.ctl.doctor.finding import Finding
from memd.inspection.probe import ProbeResult
from tests.ctl.doctor.scenes import SCENE, sound


def _found(home: Path, file: Path | None) -> Finding:
    places = msgspec.structs.replace(SCENE.places, home=home, config=file)
    scene = msgspec.structs.replace(SCENE, places=places)
    return configuration.check(ProbeResult((configuration.read(scene),)), scene)


def test_no_file_is_right(tmp_path: Path) -> None:
    """Built-in defaults hold, and it is told where the file would be."""
    finding = _found(tmp_path, None)
    assert sound(finding)
    assert "no ~/.config/memd/config.toml: built-in defaults hold (1 agent: main)" in finding.detail


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[agents.main]\nworkspace = "~/ws"\n', []),
        ("[agents.main]\nworkspce = 1\nbackend = 3\n", ["c.toml:2: ", "workspce", "c.toml:3: ", "backend"]),
        (
            '[agents.main]\nbackend = "qmd"\n[daemon]\nmemory_limit_mb = 5\n',
            ["64 and more", "memory_limit_mb"],
        ),
        ("[agents.main\n", ["not valid TOML"]),
    ],
)
def test_every_fault_is_told_with_its_line(tmp_path: Path, text: str, says: list[str]) -> None:
    """Also of a number that means nothing."""
    file = tmp_path / "c.toml"
    file.write_text(text, encoding="utf-8")
    finding = _found(tmp_path, file)
    assert sound(finding) is (not says)
    assert all(part in finding.detail for part in says)
    assert not says or "config check" in finding.fix


def test_a_file_that_was_named_and_is_missing_is_told(tmp_path: Path) -> None:
    """With the command that writes one."""
    finding = _found(tmp_path, tmp_path / "none.toml")
    assert not sound(finding)
    assert finding.fix.endswith("config init")


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (ProbeResult((), "gave no answer within 5 s", timed_out=True), "the disk gave no answer within 5 s"),
        (ProbeResult((), "failed with RuntimeError"), "failed with RuntimeError"),
        (ProbeResult((ConfigError("x"),)), "x"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(result: ProbeResult, says: str) -> None:
    """With why, as far as that is known."""
    finding = configuration.check(result, SCENE)
    assert not sound(finding)
    assert says in finding.detail


@pytest.mark.parametrize(
    "text",
    ['[agents.main.remote]\napi_key = "{key}"\n', '[agents.main]\nworkspace = "~/ws"\napi_key = "{key}"\n'],
)
def test_a_key_in_the_file_is_never_told(tmp_path: Path, text: str) -> None:
    """Wherever it stands, and whether it may stand there or not."""
    file = tmp_path / "c.toml"
    file.write_text(text.format(key="sk-mellon-42"), encoding="utf-8")
    finding = _found(tmp_path, file)
    assert sound(finding) in {True, False}
    assert "mellon" not in finding.detail + finding.fix
