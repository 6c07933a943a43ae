"""Remarks on the sources of an agent."""

from pathlib import Path

import pytest

from memd.config.load import parse
from memd.ctl.config.source_remarks import remarks_on_sources
from memd.ctl.places import places
from tests.sources.homes import write_homes


def _remarks(home: Path, text: str) -> list[str]:
    config = parse(f'[agents.main]\nworkspace = "~/w"\n{text}', home / "memd.toml", home)
    found = places({}, "linux", home, config=None, state_dir=str(home / "state"), socket=None)
    return list(remarks_on_sources(config, {}, found))


BOTH = 'sources = ["memory", "sessions"]\n'


@pytest.mark.parametrize(
    ("text", "remarks"),
    [
        ("", []),
        (
            'sessions.presets = ["codex"]',
            ['main: sessions.presets and sessions.paths do nothing: sources has no "sessions"'],
        ),
        (BOTH, ['main: sources has "sessions", but neither sessions.presets nor sessions.paths names any']),
        (
            'sources = ["sessions"]\nmemory_presets = ["codex"]\nsessions.presets = ["codex"]',
            ['main: memory_presets does nothing: sources has no "memory"'],
        ),
        (BOTH + 'sessions.presets = ["openclaw", "claude-code", "codex", "gemini"]', []),
        ('memory_presets = ["openclaw", "claude-code", "codex", "gemini"]', []),
        (
            BOTH + 'sessions.presets = ["codex"]\nredact.mode = "off"',
            ['main: redact.mode = "off" leaves keys and passwords in what is indexed of transcripts'],
        ),
        (
            'extra_paths = ["~", "~/state/x", "~/docs"]',
            [
                "main: memd's own files, ~/state, lie in ~: they are left out",
                "main: nothing of ~/state/x is indexed, since it is memd's own",
            ],
        ),
        (
            BOTH + 'sessions.paths = ["~/.claude/CLAUDE.md"]',
            ["main: ~/.claude/CLAUDE.md is no transcript: the names of those end in .jsonl or .jsonl.zst"],
        ),
        (
            BOTH + 'sessions.paths = ["~/none", "~/state/x", "~/w/memory", "~"]',
            [
                "main: there is nothing at ~/none yet, which sessions.paths names",
                "main: there is nothing at ~/state/x yet, which sessions.paths names",
                "main: sessions.paths names ~/state/x, which is memd's own: there are no transcripts in it",
                "main: sessions.paths names ~/w/memory, where the notes of its workspace are",
                "main: sessions.paths names ~, which holds much more than transcripts",
            ],
        ),
    ],
)
def test_remarks(home: Path, text: str, remarks: list[str]) -> None:
    """What is allowed, and yet perhaps not meant."""
    write_homes(home)
    (home / "w" / "memory").mkdir(parents=True)
    assert _remarks(home, text) == remarks


def test_agents_that_are_not_there(home: Path) -> None:
    """They may come later."""
    text = BOTH + 'sessions.presets = ["claude-code", "codex"]\nmemory_presets = ["codex"]'
    assert _remarks(home, text) == [
        "main: there are no notes of Codex here (yet)",
        "main: there are no transcripts of Claude Code yet: ~/.claude/projects does not exist",
        "main: there are no transcripts of Codex yet: ~/.codex/sessions does not exist",
    ]
