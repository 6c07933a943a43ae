"""memd-ctl web: what it says where it cannot serve. What it serves is tried in tests/client/web."""

import sys
from pathlib import Path

import pytest

from memd.ctl.commands.web import installed_editor
from memd.ctl.failures import BAD_CONFIG, NOT_RUNNING, USAGE
from tests.ctl.conftest import Run


def test_without_a_daemon_there_is_no_page(run: Run) -> None:
    """It ends at once, and says what to do."""
    ran = run("web", "--no-browser")
    assert (ran.code, ran.out) == (NOT_RUNNING, "")
    assert "memd-ctl up" in ran.err
    assert "http" not in ran.err


def test_without_its_packages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the one that is missing, and the command that installs all."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "memd_client.web.server", raising=False)
    ran = run("web", "--no-browser")
    assert ran.code == BAD_CONFIG
    assert "uvicorn" in ran.err
    assert "client[web]" in ran.err


@pytest.mark.parametrize(
    "options", [["--json"], ["--editor", "vim"], ["--host", "0.0.0.0"], ["--port", "80"], ["--agent", "main"]]
)
def test_what_it_does_not_take(run: Run, options: list[str]) -> None:
    """There is no other address than the loopback's."""
    ran = run("web", *options)
    assert ran.code == USAGE
    assert options[0] in (ran.err + ran.out)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [([], "vscode"), (["cursor"], "cursor"), (["zed", "code"], "vscode"), (["idea", "zed"], "zed")],
)
def test_which_editor_opens_notes(tmp_path: Path, installed: list[str], expected: str) -> None:
    """One that is there, the most frequent first."""
    for name in installed:
        (tmp_path / name).touch(0o755)
    assert installed_editor({"PATH": str(tmp_path)}) == expected
