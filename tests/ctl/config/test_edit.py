"""Changes to the text of a configuration."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config.load import DEFAULT_WORKSPACE, ConfigError, parse
from memd.config.settings import AgentSettings, DaemonSettings
from memd.ctl.config.edit import example, with_extra_path, with_workspace

_HOME = Path("/home/ada")
_FILE = _HOME / "config.toml"


@pytest.mark.parametrize(
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
