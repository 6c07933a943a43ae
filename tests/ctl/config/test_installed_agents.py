"""Which agents have files here."""

from pathlib import Path

from memd.ctl.config.installed_agents import InstalledAgent, installed
from tests.sources.homes import write_homes


def test_nothing_is_installed(home: Path) -> None:
    """An empty home, and one with empty directories."""
    assert installed({}) == ()
    (home / ".codex" / "sessions" / "2026").mkdir(parents=True)
    assert installed({}) == ()


def test_all_four_are(home: Path) -> None:
    """With how much they keep: each session once, and notes apart."""
    write_homes(home)
    assert installed({}) == (
        InstalledAgent("openclaw", 3, 8),
        InstalledAgent("claude-code", 2, 1),
        InstalledAgent("codex", 2, 2),
        InstalledAgent("gemini", 2, 1),
    )
    assert installed({"CODEX_HOME": str(home / "elsewhere")})[2].preset == "gemini"
