"""Remarks on a configuration, and what of it is in force."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from memd.config.load import parse
from memd.config.settings import AgentSettings, Config, DaemonSettings, Remote, SessionSettings
from memd.config.toml_lines import Key, lines
from memd.ctl.config.check import (
    Overlap,
    ValuePlace,
    exposed_key_files,
    in_force_text,
    masked,
    origin,
    origins,
    overlaps,
    remarks_on_sources,
)
from memd.ctl.invocation import places
from memd.ctl.output.terminal import uncoloured
from tests.bounds import shipped
from tests.sources.homes import write_homes


def _config(file: Path | None, remote: Remote) -> Config:
    agents = {
        "main": AgentSettings(workspace=Path("/w"), remote=remote),
        "other": AgentSettings(workspace=Path("/o")),
    }
    return Config(daemon=DaemonSettings(), agents=agents, file=file)


@pytest.mark.parametrize("remote", [Remote(api_key="sk-1"), Remote(headers={"x": "y"})])
@pytest.mark.parametrize(("mode", "found"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_a_configuration_with_a_key_is_for_its_owner(
    tmp_path: Path, remote: Remote, mode: int, *, found: bool
) -> None:
    """Group and others are others."""
    file = tmp_path / "config.toml"
    file.touch()
    file.chmod(mode)
    assert list(exposed_key_files(_config(file, remote))) == ([(file, mode)] if found else [])


def test_a_configuration_without_a_key_may_be_read(tmp_path: Path) -> None:
    """There is nothing in it to hide; nor is there without a file."""
    file = tmp_path / "config.toml"
    file.touch(0o644)
    assert list(exposed_key_files(_config(file, Remote(api_key_env="A_KEY")))) == []
    assert list(exposed_key_files(_config(None, Remote(api_key="sk-1")))) == []


def test_the_file_of_a_key_is_for_its_owner(tmp_path: Path) -> None:
    """One that is missing is another's business to tell."""
    key = tmp_path / "key"
    key.touch()
    key.chmod(0o604)
    assert list(exposed_key_files(_config(None, Remote(api_key_file=str(key))))) == [(key, 0o604)]
    assert list(exposed_key_files(_config(None, Remote(api_key_file=str(tmp_path / "none"))))) == []


def agent(workspace: Path, *extra: Path, exclude: tuple[str, ...] = ()) -> AgentSettings:
    return AgentSettings(workspace=workspace, extra_paths=extra, exclude=exclude)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("w",), ("w",), [("a", "b", "w", True)]),
        (("w",), ("v",), []),
        (("w",), ("w/memory",), [("a", "b", "w/memory", False)]),
        (("w",), ("w/memory/deep",), [("a", "b", "w/memory/deep", False)]),
        (("w",), ("w/projects",), []),
        (("w",), ("w/.hidden",), []),
        (("v", "w"), ("w",), [("a", "b", "w", False)]),
        (("v", "w"), ("w/x",), [("a", "b", "w/x", False)]),
        (("v", "w/memory"), ("w",), [("a", "b", "w/memory", True)]),
        (("v", "x"), ("w", "x/y"), [("a", "b", "x/y", False)]),
        (("v", "w/memory/one.md"), ("w",), []),
        (("v", "link"), ("w",), [("a", "b", "w", False)]),
    ],
)
def test_an_agent_that_searches_the_notes_of_another_is_found(
    tmp_path: Path, a: tuple[str, ...], b: tuple[str, ...], expected: list[tuple[str, str, str, bool]]
) -> None:
    """Where its workspace or one of its extra paths leads into another agent's, through a symlink too."""
    (tmp_path / "w").mkdir()
    (tmp_path / "link").symlink_to("w")
    agents = {"b": agent(*(tmp_path / path for path in b)), "a": agent(*(tmp_path / path for path in a))}
    assert list(overlaps(agents)) == [
        Overlap(reader, owner, tmp_path / path, is_mutual) for reader, owner, path, is_mutual in expected
    ]


def test_what_is_excluded_is_not_searched(tmp_path: Path) -> None:
    """A glob takes another agent's directory out."""
    agents = {"a": agent(tmp_path, exclude=("memory/b/**",)), "b": agent(tmp_path / "memory/b")}
    assert list(overlaps(agents)) == []


def test_agents_that_index_the_same_transcripts(tmp_path: Path) -> None:
    """It is told of transcripts apart from notes."""
    base = tmp_path.resolve()
    sessions = SessionSettings(paths=(base / "chats",))
    agents = {
        name: AgentSettings(workspace=base / name, sources=("memory", "sessions"), sessions=sessions)
        for name in ("a", "b")
    }
    assert list(overlaps(agents)) == [Overlap("a", "b", base / "chats", is_mutual=True, is_of_notes=False)]


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
            'extra_paths = ["~/none", "~/.claude/CLAUDE.md", "~/plain.txt", "/dev/null"]',
            [
                "main: ~/plain.txt is no directory and no Markdown: name its directory, or a file that ends in .md",
                "main: /dev/null is no directory and no Markdown: name its directory, or a file that ends in .md",
            ],
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
    (home / "plain.txt").write_text("no Markdown", "utf-8")
    assert _remarks(home, text) == remarks


def test_agents_that_are_not_there(home: Path) -> None:
    """They may come later."""
    text = BOTH + 'sessions.presets = ["claude-code", "codex"]\nmemory_presets = ["codex"]'
    assert _remarks(home, text) == [
        "main: there are no notes of Codex here (yet)",
        "main: there are no transcripts of Claude Code yet: ~/.claude/projects does not exist",
        "main: there are no transcripts of Codex yet: ~/.codex/sessions does not exist",
    ]


_LINES = lines("""\
[daemon]
log_level = "info"
[defaults]
query = { max_results = 3 }
extra_paths = []
exclude = []
[agents.main]
query.min_score = 0.1
extra_paths = ["x"]
exclude = ["y"]
""")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("daemon", "log_level"), "line 2"),
        (("agents", "main", "query", "max_results"), "line 4, [defaults]"),
        (("agents", "main", "query", "min_score"), "line 8"),
        (("agents", "main", "extra_paths"), "lines 9 and 5, [defaults]"),
        (("agents", "main", "exclude"), "line 10"),
        (("agents", "work", "exclude"), "line 6, [defaults]"),
        (("agents", "main", "model"), "default"),
    ],
)
def test_a_value_comes_from_the_nearest_place_that_says_it(key: Key, expected: str) -> None:
    """The agent, then [defaults], then memd itself."""
    assert origin(key, _LINES) == expected


_MAIN: dict[str, Any] = {
    "workspace": "/笔记",
    "weight": 0.37499999999999994,
    "rules": [{"action": "allow", "match": {"chat_type": "direct"}}],
    "a b": ['"', "\n"],
    "empty": {},
    "query": {"n": 3},
}
_TABLES = {"daemon": {"log_level": "info"}, "agents": {"main": _MAIN}}


def test_what_is_printed_is_a_configuration() -> None:
    """Tables, lists of tables, quotes and odd keys; a share without its rounding."""
    printed = in_force_text(_TABLES, {("daemon", "log_level"): 7}, {}, uncoloured)
    again = tomllib.loads(printed)
    main = again["agents"]["main"]
    assert main.pop("weight") == 0.375
    assert again["daemon"] == {"log_level": "info"}
    assert main == {name: value for name, value in _MAIN.items() if name not in {"weight", "empty"}}
    assert 'log_level = "info"  # line 7\n' in printed
    assert '\nworkspace = "/笔记"  ' in printed


def test_places_come_first() -> None:
    """As remarks, one below the other."""
    places = {"config": ValuePlace("~/c", "usual place"), "state": ValuePlace("/s", "--state-dir")}
    assert (
        in_force_text({}, {}, places, uncoloured)
        == "# config  ~/c  (usual place)\n# state   /s  (--state-dir)"
    )


def test_each_value_has_an_origin() -> None:
    """By its dotted key."""
    assert origins({"agents": {"a": {"x": 1, "t": {"y": []}}}}, {("agents", "a", "t", "y"): 3}) == {
        "agents.a.x": "default",
        "agents.a.t.y": "line 3",
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"api_key": "sk-1"}, {"api_key": "********"}),
        ({"api_key": ""}, {"api_key": ""}),
        ({"api_key_env": "NAME", "api_key_file": "/f"}, {"api_key_env": "NAME", "api_key_file": "/f"}),
        ({"headers": {"x-org": "sk-1"}}, {"headers": {"x-org": "********"}}),
        ({"remote": {"base_url": "https://ann:pw@host/v1"}}, {"remote": {"base_url": "https://********@host/v1"}}),
        ({"rules": [{"match": {"channel": None, "x": "y"}}]}, {"rules": [{"match": {"x": "y"}}]}),
        ({"workspace": "/home/a@b"}, {"workspace": "/home/a@b"}),
    ],
)  # fmt: skip
def test_secrets_are_masked(value: object, shown: object) -> None:
    """Keys, all headers, and who is named in a URL; what is not there stays away."""
    assert masked(value) == shown


def test_remarks_are_aligned_as_far_as_settings_are_not_too_long() -> None:
    """One long setting moves no remark but its own."""
    furthest = shipped("memd.ctl.config.check._FURTHEST")
    around = len('long = ""')
    for width, column in ((furthest, furthest), (furthest + 1, len("short = 1"))):
        values = {"short": 1, "long": "x" * (width - around)}
        lines = in_force_text({"t": values}, {}, {}, uncoloured).splitlines()
        assert lines[-2].index("  #") == column
        assert len(lines[-1].split("  #")[0]) == width
