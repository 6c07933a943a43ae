"""What a directory becomes in the configuration, and the text with it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config.load import DEFAULT_WORKSPACE, ConfigError, parse
from memd.config.settings import AgentSettings, DaemonSettings, SessionSettings
from memd.ctl.config.edit import (
    AlreadySearched,
    Directory,
    NewExtraPath,
    NewWorkspace,
    agent_of,
    change_for,
    checked_directory,
    example,
    with_extra_path,
    with_workspace,
)
from memd.ctl.failures import UsageError
from tests.otheruser import as_other_user, shared_directory
from tests.table import table


@pytest.fixture
def notes(home: Path) -> Path:
    """A directory of notes that is no workspace."""
    directory = home / "notes"
    directory.mkdir()
    (directory / "a.md").touch()
    return directory


@pytest.mark.parametrize(
    "typed", ["{home}/notes", "{home}/notes/", "~/notes", "notes", "./notes/.", "notes/../notes"]
)
def test_a_directory_is_named_in_many_ways(
    home: Path, notes: Path, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All mean the same absolute path."""
    monkeypatch.chdir(home)
    assert checked_directory(typed.format(home=home), home) == Directory(notes, is_workspace=False)


@pytest.mark.parametrize(
    ("name", "is_directory", "is_workspace"),
    [
        ("MEMORY.md", False, True),
        ("memory.MD", False, True),
        ("memory", True, True),
        ("MEMORY.md", True, False),
        ("memory", False, False),
        ("Memory", True, False),
        ("USER.md", False, False),
    ],
)
def test_a_workspace_is_known_by_its_marks(
    home: Path, notes: Path, name: str, *, is_directory: bool, is_workspace: bool
) -> None:
    """MEMORY.md, in any case of letters, or memory/ in it."""
    mark = notes / name
    mark.mkdir() if is_directory else mark.touch()
    assert checked_directory(str(notes), home).is_workspace is is_workspace


def test_a_mark_that_is_a_symlink_is_none(home: Path, notes: Path) -> None:
    """The daemon follows none inside a workspace."""
    (home / "elsewhere").mkdir()
    (notes / "memory").symlink_to(home / "elsewhere")
    (notes / "MEMORY.md").symlink_to(notes / "a.md")
    assert not checked_directory(str(notes), home).is_workspace


def test_a_symlink_keeps_its_name(home: Path, notes: Path) -> None:
    """It may lead elsewhere tomorrow. Behind one, `..` is the parent of where it leads."""
    (home / "deep" / "down").mkdir(parents=True)
    (home / "link").symlink_to(home / "deep" / "down")
    assert checked_directory(str(home / "link"), home).path == home / "link"
    assert checked_directory(str(home / "link" / ".."), home).path == home / "deep"


@pytest.mark.parametrize("typed", ["/", "{home}", "{home}/", "{home}/..", "~", "{home}/link"])
def test_a_whole_home_directory_is_refused(home: Path, typed: str) -> None:
    """Every program keeps Markdown there; whatever the name, and what lies above it too."""
    (home / "link").symlink_to(home)
    with pytest.raises(UsageError, match="home directory"):
        checked_directory(typed.format(home=home), home)


@pytest.mark.parametrize("typed", ["~/state/memd", "~/state/memd/agents", "~/link"])
@pytest.mark.parametrize("mark", [None, "MEMORY.md"])
def test_the_state_directory_is_refused(home: Path, typed: str, mark: str | None) -> None:
    """Nothing in it is indexed: it would stand in the configuration, and never be searched."""
    state = home / "state" / "memd"
    (state / "agents").mkdir(parents=True)
    (home / "link").symlink_to(state)
    if mark is not None:
        (state / mark).touch()
        (state / "agents" / mark).touch()
    with pytest.raises(UsageError, match="in which memd keeps its state: nothing there is"):
        checked_directory(typed, home, state)
    assert checked_directory("~/state", home, state).path == home / "state"


def test_a_home_directory_with_a_memory_is_a_workspace(home: Path) -> None:
    """Of a workspace only MEMORY.md, USER.md and memory/ are searched."""
    (home / "memory").mkdir()
    assert checked_directory("~", home) == Directory(home, is_workspace=True)


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("~/none", "does not exist"),
        ("~/notes/none/deeper", "does not exist"),
        ("~/notes/a.md", "is no directory"),
        ("~/notes/a.md/b", "is no directory"),
        ("~/loop", "symbolic links"),
        ("~/" + "x" * 300, "too long"),
        ("~/dangling", "does not exist"),
    ],
)
def test_what_is_no_directory_is_refused(home: Path, notes: Path, typed: str, complaint: str) -> None:
    """With the reason."""
    (home / "loop").symlink_to(home / "loop")
    (home / "dangling").symlink_to(home / "gone")
    with pytest.raises(UsageError, match=complaint):
        checked_directory(typed, home)


def complaint_about(directory: str) -> str:
    """What is wrong with a directory; run as another user."""
    try:
        checked_directory(directory, Path("/nowhere"))
    except UsageError as refused:
        return str(refused)
    return ""


def test_a_closed_directory_is_refused() -> None:
    """The daemon, which runs as the same user, could not read it either."""
    with shared_directory() as directory:
        closed = directory / "closed"
        closed.mkdir(mode=0o000)
        assert "cannot be read: Permission denied" in as_other_user(__name__, "complaint_about", str(closed))
        assert "cannot be read: Permission denied" in as_other_user(
            __name__, "complaint_about", str(closed / "x")
        )


@pytest.fixture
def ann(tmp_path: Path) -> AgentSettings:
    """An agent with a workspace and an extra path, which is a symlink."""
    for name in ("workspace/memory/2026", "docs/deep/.hidden", "docs/node_modules/x", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    return AgentSettings(workspace=tmp_path / "workspace", extra_paths=(tmp_path / "link", tmp_path / "a.md"))


@pytest.mark.parametrize(
    "name",
    ["workspace", "workspace/memory", "workspace/memory/2026", "docs", "link", "docs/deep", "link/deep"],
)
def test_what_lies_in_something_searched_is_searched(tmp_path: Path, ann: AgentSettings, name: str) -> None:
    """By whatever name."""
    change = change_for(Directory(tmp_path / name, is_workspace=False), "ann", {"ann": ann})
    assert isinstance(change, AlreadySearched)


@pytest.mark.parametrize("name", ["other", "docs/deep/.hidden", "docs/node_modules/x", ""])
def test_what_is_passed_over_in_there_is_an_extra_path_of_its_own(
    tmp_path: Path, ann: AgentSettings, name: str
) -> None:
    """As is what only holds something searched."""
    change = change_for(Directory(tmp_path / name, is_workspace=False), "ann", {"ann": ann})
    assert change == NewExtraPath()


@pytest.mark.parametrize(
    ("workspace", "default", "replaced"),
    [
        ("none", "none", True),
        ("workspace", "workspace", False),
        ("none", "other", False),
        ("link-to-none", "link-to-none", False),
    ],
)
def test_a_workspace_that_nobody_chose_and_nobody_has_gives_way(
    tmp_path: Path, ann: AgentSettings, workspace: str, default: str, replaced: bool
) -> None:
    """One that a person has named is waited for, and one that a dead symlink stands for may come back."""
    (tmp_path / "link-to-none").symlink_to(tmp_path / "nowhere")
    of_agent = AgentSettings(workspace=tmp_path / workspace)
    notes = Directory(tmp_path / "other", is_workspace=False)
    change = change_for(notes, "main", {"main": of_agent}, tmp_path / default)
    assert change == NewExtraPath(is_workspace_too=replaced)


def test_a_workspace_takes_the_place_of_another(tmp_path: Path, ann: AgentSettings) -> None:
    """Even one that was an extra path, where more of it was searched."""
    for name in ("other", "docs"):
        change = change_for(Directory(tmp_path / name, is_workspace=True), "ann", {"ann": ann})
        assert change == NewWorkspace(tmp_path / "workspace")


def test_the_same_workspace_changes_nothing(tmp_path: Path, ann: AgentSettings) -> None:
    """Whatever name it goes by."""
    (tmp_path / "ws").symlink_to(tmp_path / "workspace")
    for name in ("workspace", "ws"):
        change = change_for(Directory(tmp_path / name, is_workspace=True), "ann", {"ann": ann})
        assert change == AlreadySearched(tmp_path / "workspace")


def test_a_new_agent_needs_a_workspace(tmp_path: Path, ann: AgentSettings) -> None:
    """There is none by default but for main."""
    assert change_for(Directory(tmp_path, is_workspace=True), "bob", {"ann": ann}) == NewWorkspace(None)
    with pytest.raises(UsageError, match="cannot be its workspace"):
        change_for(Directory(tmp_path, is_workspace=False), "bob", {"ann": ann})


@pytest.mark.parametrize(
    ("named", "agents", "meant"),
    [
        (None, ["ann"], "ann"),
        (None, ["ann", "main"], "main"),
        ("bob", ["ann", "main"], "bob"),
    ],
)
def test_the_agent_is_the_one_named_or_the_only_one_or_main(
    ann: AgentSettings, named: str | None, agents: list[str], meant: str
) -> None:
    """As a search has it."""
    assert agent_of(named, dict.fromkeys(agents, ann)) == meant


def test_among_others_one_must_be_named(ann: AgentSettings) -> None:
    """Rather than changing any."""
    with pytest.raises(UsageError, match="ann, bob"):
        agent_of(None, {"bob": ann, "ann": ann})


def test_what_only_transcripts_or_some_notes_are_searched_in_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory above the notes of another agent, or with transcripts, can still become an extra path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".claude/projects/-a/memory", ".codex/sessions"):
        (tmp_path / name).mkdir(parents=True)
    settings = AgentSettings(
        workspace=tmp_path / "w",
        sources=("memory", "sessions"),
        memory_presets=("claude-code",),
        sessions=SessionSettings(presets=("codex",)),
    )

    def change(name: str) -> object:
        return change_for(Directory(tmp_path / name, is_workspace=False), "main", {"main": settings})

    assert change(".claude/projects") == NewExtraPath()
    assert change(".codex/sessions") == NewExtraPath()
    assert change(".claude/projects/-a/memory") == AlreadySearched((tmp_path / ".claude").resolve())


_HOME = Path("/home/ada")
_FILE = _HOME / "config.toml"


@table(
    ("text", "changed"),
    [
        ("", '[agents.main]\nworkspace = "~/w"\n'),
        ("\n\n", '[agents.main]\nworkspace = "~/w"\n'),
        ("# mine\n", '# mine\n\n[agents.main]\nworkspace = "~/w"\n'),
        ("[daemon]  # d", '[daemon]  # d\n\n[agents.main]\nworkspace = "~/w"\n'),
        ('[agents.work]\nworkspace = "x"\n', '[agents.work]\nworkspace = "x"\n\n[agents.main]\nworkspace = "~/w"\n'),
        ("[agents.main]", '[agents.main]\nworkspace = "~/w"\n'),
        (
            "[agents.main]  # me\nmodel = ''\n\n# how it is cut\n[agents.main.chunking]\n",
            "[agents.main]  # me\nmodel = ''\nworkspace = \"~/w\"\n\n# how it is cut\n[agents.main.chunking]\n",
        ),
        ("[agents.main]\r\nmodel = ''\r\n", "[agents.main]\r\nmodel = ''\r\nworkspace = \"~/w\"\r\n"),
        (
            "[agents.main]\n# where\n# workspace = 'x'\n# how\n#model = ''\n[agents.work]\n# workspace = 'y'\n",
            "[agents.main]\n# where\n# workspace = 'x'\nworkspace = \"~/w\"\n# how\n#model = ''\n[agents.work]\n# workspace = 'y'\n",
        ),
        (
            "[agents.main]\n# about the other\n[agents.work]\n#workspace = 'y'\n",
            "[agents.main]\nworkspace = \"~/w\"\n# about the other\n[agents.work]\n#workspace = 'y'\n",
        ),
        ("[agents.main]\nmodel = ''", '[agents.main]\nmodel = \'\'\nworkspace = "~/w"\n'),
        ("[daemon]\r\n", '[daemon]\r\n\r\n[agents.main]\r\nworkspace = "~/w"\r\n'),
        ("[agents.main]\nworkspace = 'old' # why\nmodel = ''\n", "[agents.main]\nworkspace = \"~/w\" # why\nmodel = ''\n"),
        ("agents.main.workspace = 'old' # why\n", 'agents.main.workspace = "~/w" # why\n'),
        ("agents = {main = {workspace = 'old'}} # why\n", 'agents = {main = {workspace = "~/w"}} # why\n'),
        ("[agents]\nmain = {workspace = 'old', model = ''}\n", "[agents]\nmain = {workspace = \"~/w\", model = ''}\n"),
        ("[agents.main.query]\nmax_results = 3\n", '[agents.main.query]\nmax_results = 3\n\n[agents.main]\nworkspace = "~/w"\n'),
        (
            "note = '''\n[agents.main]\n'''\n[agents.main]\n",
            "note = '''\n[agents.main]\n'''\n[agents.main]\nworkspace = \"~/w\"\n",
        ),
    ],
)  # fmt: skip
def test_a_workspace_is_set_where_it_belongs(text: str, changed: str) -> None:
    """What is there stays, comments, order and line ends included."""
    assert with_workspace(text, "main", Path("~/w")) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '[agents.main]\nextra_paths = ["/n"]\n'),
        ("[agents.main]\nextra_paths = []  # more\n", '[agents.main]\nextra_paths = ["/n"]  # more\n'),
        ("[agents.main]\nextra_paths = ['/a']\n", "[agents.main]\nextra_paths = ['/a', \"/n\"]\n"),
        ("[agents.main]\nextra_paths = ['/n']\n", "[agents.main]\nextra_paths = ['/n']\n"),
        (
            "[agents.main]\nextra_paths = [\n  '/a', # first\n]\n",
            "[agents.main]\nextra_paths = [\n  '/a', # first\n  \"/n\",\n]\n",
        ),
        (
            "[defaults]\nextra_paths = ['/a']\n[agents.main]\n",
            "[defaults]\nextra_paths = ['/a']\n[agents.main]\nextra_paths = [\"/n\"]\n",
        ),
    ],
)
def test_an_extra_path_is_added_at_the_end(text: str, changed: str) -> None:
    """The paths that are there stay, and one that is there is not added again."""
    assert with_extra_path(text, "main", Path("/n")) == changed


@pytest.mark.parametrize("name", ["/a b", '/a"b', "/a\\b", "/笔记", "/tab\tnew\nline", "/del\x7f", "/'''"])
def test_any_name_can_be_written(name: str) -> None:
    """Quotes, backslashes and control characters in a name come back as they were."""
    for text in ("", "[agents.main]\n", "[agents.main]\nworkspace = 'old'\nextra_paths = ['/old']\n"):
        both = with_extra_path(with_workspace(text, "main", Path(name)), "main", Path(name))
        main = tomllib.loads(both)["agents"]["main"]
        assert (main["workspace"], main["extra_paths"][-1]) == (name, name)


def test_a_name_that_is_not_unicode_is_refused() -> None:
    """TOML has no way to write it."""
    with pytest.raises(ConfigError, match="its name is not UTF-8"):
        with_workspace("", "main", Path("/bad\udcff"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[agents", "the configuration is not valid TOML"),
        ("agents = 3", "agents must be a table"),
        ("agents.main = 3", "main must be a table"),
        ("agents.main.extra_paths = 3", "agents.main.extra_paths must be a list"),
    ],
)
def test_a_wrong_text_is_not_changed(text: str, complaint: str) -> None:
    """What is broken is for its writer to mend first."""
    with pytest.raises(ConfigError, match=complaint):
        with_extra_path(text, "main", Path("/n"))


_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "workspace": st.text(),
        "model": st.text(),
        "extra_paths": st.lists(st.text(max_size=3), max_size=2),
        "query": st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.dates(), max_size=2)),
    },
)
_TABLES = st.dictionaries(st.sampled_from(["main", "work", "a b"]), _SETTINGS)


@settings(deadline=None)  # other work on the machine is no failure
@given(agents=_TABLES, comment=st.from_regex(r"# [a-z]{0,9}", fullmatch=True), inline=st.booleans())
def test_a_change_is_the_one_that_was_asked_for(
    agents: dict[str, Any], comment: str, *, inline: bool
) -> None:
    """Whatever else is in a file is the same after it."""
    written = tomlkit.inline_table() if inline else tomlkit.table()
    written.update(agents)
    text = f"{comment}\n{tomlkit.dumps({'daemon': {'log_level': 'info'}, 'agents': written})}{comment}"
    wanted = tomllib.loads(text)
    wanted.setdefault("agents", {}).setdefault("main", {})["workspace"] = "/w"
    changed = with_workspace(text, "main", Path("/w"))
    assert tomllib.loads(changed) == wanted
    assert changed.count(comment) >= 2


def test_the_example_is_a_configuration_of_defaults() -> None:
    """Taken as it is, it changes nothing."""
    config = parse(example(), _FILE, _HOME)
    assert config.agents == {"main": AgentSettings(workspace=_HOME / DEFAULT_WORKSPACE[2:])}
    assert config.daemon == DaemonSettings()


def test_the_example_tells_every_key_and_its_default() -> None:
    """Every line that is a setting taken out of its comment, it still changes nothing, and no key is missing."""
    text = re.sub(r"^#(?=\w)", "", example(), flags=re.MULTILINE)
    config = parse(text, _FILE, _HOME)
    assert config.agents == {"main": AgentSettings(workspace=_HOME / DEFAULT_WORKSPACE[2:])}
    assert config.daemon == DaemonSettings()
    written = tomllib.loads(text)
    assert written["daemon"].keys() == set(DaemonSettings.__struct_fields__)
    main = written["agents"]["main"]
    assert main.keys() == set(AgentSettings.__struct_fields__)
    defaults = config.agents["main"]
    for name in ("chunking", "query", "limits", "sync", "cache", "remote", "scope"):
        assert main[name].keys() == set(getattr(defaults, name).__struct_fields__)
    assert main["query"]["hybrid"].keys() == set(defaults.query.hybrid.__struct_fields__)


def test_the_example_takes_a_workspace_and_an_extra_path() -> None:
    """The first change leaves each comment beside what it explains."""
    text = with_extra_path(with_workspace(example(), "main", Path("~/clawd")), "main", Path("/notes"))
    assert '#extra_paths = []\nextra_paths = ["/notes"]\n# What not to search' in text
    assert "[agents.main]\n# The directory" in text
    assert 'workspace = "~/clawd"\n# More to search' in text
    assert len(text.splitlines()) == len(example().splitlines()) + 1
