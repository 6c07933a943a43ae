"""From files and texts to settings, or to one clear error."""

import contextlib
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config.load import ConfigError, load, location, parse, read
from memd.config.settings import (
    AgentSettings,
    Collection,
    Config,
    DaemonSettings,
    Hybrid,
    PathMatch,
    Redact,
    ScopeRule,
    UserRule,
)
from tests.awkward.streams import spoilt
from tests.bounds import shipped

_HOME = Path("/home/ada")
_FILE = _HOME / ".config" / "memd" / "config.toml"
_DEFAULTS = Config(
    daemon=DaemonSettings(),
    agents={"main": AgentSettings(workspace=_HOME / ".openclaw" / "workspace")},
    file=None,
)

# Every key there is, with its default.
_FULL = """
[daemon]
log_level = "info"
memory_limit_mb = 0
[agents.main]
workspace = "~/.openclaw/workspace"
extra_paths = []
exclude = []
max_file_mb = 16
sources = ["memory"]
backend = "builtin"
citations = "auto"
provider = "auto"
model = ""
fallback = "none"
chunking = { tokens = 400, overlap = 80 }
query = { max_results = 6, min_score = 0.35, hybrid = { enabled = true, vector_weight = 0.7, text_weight = 0.3, candidate_multiplier = 4 } }
limits = { max_snippet_chars = 700, max_injected_chars = 4000 }
sync = { watch_debounce_ms = 1500, watch_max_wait_ms = 6000, interval_minutes = 10, wait_ms = 500 }
sessions = { presets = [], paths = [], delta_bytes = 100000, delta_messages = 50, idle_seconds = 120, subagents = false }
redact = { mode = "sessions", extra = [], allow = [] }
cache = { enabled = true, max_entries = 50000 }
remote = { base_url = "", api_key = "", api_key_env = "", api_key_file = "", headers = {}, query_timeout_ms = 2000, confirm_above_chunks = 20000, batch = { enabled = false, min_chunks = 500, wait = true, concurrency = 2, poll_interval_ms = 2000, timeout_minutes = 60 } }
scope = { default = "deny", rules = [{ action = "allow", match = { chat_type = "direct" } }] }
qmd = { command = "qmd", search_mode = "search", collections = [], update_minutes = 5, debounce_seconds = 15, embed_minutes = 60, timeout_ms = 4000, cooldown_seconds = 60 }
"""


def _parsed(text: str) -> Config:
    return parse(text, _FILE, _HOME)


def _main(text: str) -> AgentSettings:
    return _parsed(text).agents["main"]


def _complaints(text: str) -> list[str]:
    with pytest.raises(ConfigError) as failure:
        _parsed(text)
    assert failure.value.exit_code == 78
    return [line.removeprefix("~/.config/memd/config.toml") for line in str(failure.value).splitlines()]


@contextlib.contextmanager
def _bound_by_modes() -> Iterator[None]:
    """The code in the block runs as a user whom file modes bind."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


# --- what a text means -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing", "[agents]", "[agents.main]", "[defaults]", "[daemon]", _FULL]
)
def test_what_is_not_said_has_its_default(text: str) -> None:
    """Nothing said, and every default said, are the same configuration."""
    config = _parsed(text)
    assert msgspec.structs.replace(config, file=None) == _DEFAULTS
    assert config.file == _FILE


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    """A file saved by another system's editor is a configuration too."""
    file = tmp_path / "config.toml"
    file.write_bytes(b'\xef\xbb\xbf[daemon]\r\nlog_level = "debug"\r\n')
    assert load(file, {}, _HOME).daemon.log_level == "debug"


def test_defaults_lie_under_each_agent_key_by_key() -> None:
    """An agent changes what it says, in nested tables too, and keeps the rest of [defaults]."""
    config = _parsed("""
        [defaults]
        model = "shared"
        citations = "on"
        query = { max_results = 9, hybrid = { candidate_multiplier = 7 } }
        [agents.main]
        citations = "off"
        query.min_score = 0.5
        query.hybrid.enabled = false
        [agents.work]
        workspace = "/work"
    """)
    main, work = config.agents["main"], config.agents["work"]
    assert (main.model, main.citations) == ("shared", "off")
    assert (main.query.max_results, main.query.min_score) == (9, 0.5)
    assert (main.query.hybrid.candidate_multiplier, main.query.hybrid.enabled) == (7, False)
    assert (work.model, work.citations, work.query.min_score) == ("shared", "on", 0.35)


def test_a_list_replaces_the_one_below() -> None:
    """Rules and globs of an agent are all of its rules and globs."""
    main = _main("""
        [defaults]
        exclude = ["a"]
        scope.rules = [{ action = "deny" }]
        [agents.main]
        exclude = ["b"]
        [[agents.main.scope.rules]]
        action = "allow"
        match.key_prefix = "telegram:"
    """)
    assert main.exclude == ("b",)
    assert main.scope.rules == (ScopeRule(action="allow", match=PathMatch(key_prefix="telegram:")),)


def test_extra_paths_of_both_levels_are_searched_once() -> None:
    """The shared ones first; one directory written in two ways is one."""
    main = _main("""
        defaults.extra_paths = ["~/notes", "/srv/a"]
        agents.main.extra_paths = ["/home/ada/notes/", "/srv/b", "/srv/b/../a"]
    """)
    assert main.extra_paths == (Path("/home/ada/notes"), Path("/srv/a"), Path("/srv/b"))


def test_an_empty_list_does_not_remove_shared_extra_paths() -> None:
    """What [defaults] adds is added for everybody."""
    main = _main('defaults.extra_paths = ["/srv/a"]\nagents.main.extra_paths = []')
    assert main.extra_paths == (Path("/srv/a"),)


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("~", "/home/ada"),
        ("~/", "/home/ada"),
        ("~/clawd", "/home/ada/clawd"),
        ("/srv/notes", "/srv/notes"),
        ("/srv/notes/", "/srv/notes"),
        ("/srv/./notes//x", "/srv/notes/x"),
        ("notes", "/home/ada/.config/memd/notes"),
        ("./$notes", "/home/ada/.config/memd/$notes"),
        ("../notes", "/home/ada/.config/notes"),
        ("~/../bob", "/home/bob"),
        ("~/笔记 2026", "/home/ada/笔记 2026"),
        ("~/a~b", "/home/ada/a~b"),
    ],
)
def test_a_path_is_absolute_when_read(written: str, path: str) -> None:
    """~ is the home directory; a relative path starts at the file that holds it."""
    assert _main(f"agents.main.workspace = {tomlkit.item(written).as_string()}").workspace == Path(path)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", (0.7, 0.3)),
        ("vector_weight = 0.6\ntext_weight = 0.4", (0.6, 0.4)),
        ("vector_weight = 1\ntext_weight = 1", (0.5, 0.5)),
        ("vector_weight = 0.2\ntext_weight = 0.6", (0.25, 0.75)),
        ("vector_weight = 0", (0.0, 1.0)),
        ("text_weight = 0", (1.0, 0.0)),
        ("vector_weight = 0.5", (0.625, 0.375)),
        ("vector_weight = 5e-324\ntext_weight = 5e-324", (0.5, 0.5)),
    ],
)
def test_weights_sum_to_one(written: str, read: tuple[float, float]) -> None:
    """Only the ratio of the weights counts, so that a score stays between 0 and 1."""
    hybrid: Hybrid = _main(f"[agents.main.query.hybrid]\n{written}").query.hybrid
    assert (hybrid.vector_weight, hybrid.text_weight) == pytest.approx(read)


def test_a_source_named_twice_is_one() -> None:
    """Nothing is indexed twice."""
    assert _main('agents.main.sources = ["memory", "memory"]').sources == ("memory",)


def test_agents_that_are_named_are_all_there_are() -> None:
    """The agent main is there by itself only where no agent is named."""
    assert list(_parsed('[agents.work]\nworkspace = "w"').agents) == ["work"]


def test_a_shared_workspace_is_taken_before_the_default_one() -> None:
    """[defaults] may say where main lives, even where no agent is named."""
    assert _main('defaults.workspace = "~/clawd"').workspace == _HOME / "clawd"


# --- what is wrong with a text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[agents.main]\nchunking.tokens = 50",
         ":2: agents.main.chunking.tokens: overlap must be less than tokens; here overlap is 80 and tokens is 50"),
        ("[agents.main]\nchunking = { tokens = 80, overlap = 80 }",
         ":2: agents.main.chunking.overlap: overlap must be less than tokens; here overlap is 80 and tokens is 80"),
        ("[defaults]\nchunking.overlap = 400\n[agents.main]\nchunking.tokens = 300",
         ":4: agents.main.chunking.tokens: overlap must be less than tokens; here overlap is 400 and tokens is 300"),
        ("agents.main.query.hybrid = { vector_weight = 0, text_weight = 0 }",
         ":1: agents.main.query.hybrid.vector_weight: vector_weight and text_weight cannot both be 0: no result would be better than another"),
        ('agents.main.exclude = ["memory/drafts/", "memory/drafts/../private/"]',
         ':1: agents.main.exclude: the glob "memory/drafts/../private/" of exclude matches nothing: no path below a root holds ..'),
        ('agents.main.scope.rules = [{ action = "deny", match = { channel = "" } }]',
         ":1: agents.main.scope.rules: the channel of rule 1 must be the name of a messenger, one word such as discord"),
        ('agents.main.scope.rules = [{ action = "allow" }, { action = "deny", match = { key_prefix = "agent:main:discord" } }]',
         (":1: agents.main.scope.rules: the key_prefix of rule 2 is compared with what follows agent:<id>: in a key; "
         "write raw_key_prefix for the whole key")),
        ('agents.main.scope.rules = [{ action = "deny", match = { raw_key_prefix = "agent:*:discord" } }]',
         ":1: agents.main.scope.rules: the raw_key_prefix of rule 1 may have a * at its end, and no blank around it"),
        ("\n\nagents.main.sources = []", ':3: agents.main.sources: at least one source is needed, such as "memory"'),
        ("[agents.main]\n[agents.work]\n", ":2: agents.work needs a workspace: the directory of its notes"),
        (('[shared.team]\ndsn_file = "/d"\n[agents.main]\nsources = ["memory"]\nredact.mode = "all"\n[agents.main.publish]\n'
          'to = "team"\nmemory = "alice/main"\nsources = ["curated", "sessions"]'),
         ":9: agents.main.publish.sources: what is published must be among the sources of this agent, which lack sessions"),
        ("[agents.main]\nquery = { max_result = 3 }",
         ":2: agents.main.query.max_result is not a key memd knows; did you mean max_results?"),
        ("a = " + "[" * 100_000, " is not a configuration of memd: it is nested too deeply"),
    ],
)  # fmt: skip
def test_a_complaint_has_the_line_and_the_key(text: str, complaint: str) -> None:
    """A person finds the place in the file and reads how to fix it."""
    assert _complaints(text) == [complaint]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[daemon]\nlog_level = warning", "line 2, column 13"),
        ("[agents.main]\nworkspace = ~/notes", "line 2, column 13"),
        ("agents.main = 1\n[agents.main]\n", "line 2"),
        ("a = ", "end of document"),
    ],
)
def test_what_is_not_toml_is_told_with_its_place(text: str, place: str) -> None:
    """A forgotten quote is found by line and column."""
    (complaint,) = _complaints(text)
    assert complaint.startswith(" is not valid TOML: ")
    assert place in complaint


def test_what_is_wrong_in_defaults_is_said_once() -> None:
    """Three agents under one wrong default are one mistake."""
    text = '[defaults]\nworkspace = "w"\nsources = []\n[agents.a]\n[agents.b]\n[agents.c]'
    assert _complaints(text) == [':3: defaults.sources: at least one source is needed, such as "memory"']


def test_a_complaint_has_the_line_of_the_table_where_that_of_the_key_is_not_known() -> None:
    """Within a list of a thousand lines single lines are not looked for."""
    text = "[daemon]\n\n[agents.main]\nexclude = [\n" + "'x]',\n" * 1000 + "3]\n"
    assert _complaints(text) == [":3: agents.main.exclude[1000] must be text in quotes, not 3"]


def test_complaints_come_in_the_order_of_the_file_and_end_after_fifty() -> None:
    """The first fifty lines to mend, and how many more there are."""
    most = shipped("memd.config.load._MAX_PROBLEMS")
    text = "[agents.main]\n" + "".join(f"zebra{number} = 1\n" for number in range(100, 102 + most))
    complaints = _complaints(text)
    places = [complaint.split()[0] for complaint in complaints[:most]]
    assert places == [f":{line}:" for line in range(2, 2 + most)]
    assert complaints[most:] == [": and 2 more"]
    assert len(_complaints(text[: text.index(f"zebra{100 + most}")])) == most


def test_a_file_of_another_program_is_not_read_to_its_end() -> None:
    """Ten thousand unknown keys are answered at once."""
    most, counted = (
        shipped("memd.config.load._MAX_PROBLEMS"),
        shipped("memd.config.load._MAX_COUNTED"),
    )
    for keys, more in ((counted - 1, f"{counted - 1 - most}"), (counted, "many"), (10_000, "many")):
        text = "[agents.main]\n" + "".join(f"zebra{number} = 1\n" for number in range(keys))
        assert _complaints(text)[most:] == [f": and {more} more"]


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    """What is larger is not read into memory."""
    most, file = shipped("memd.config.load._MAX_BYTES"), tmp_path / "config.toml"
    file.write_text("[agents.main]\n".ljust(most, "#"))
    assert len(read(file, tmp_path)) == most
    file.write_text("[agents.main]\n".ljust(most + 1, "#"))
    with pytest.raises(ConfigError, match="is larger than"):
        read(file, tmp_path)


def test_a_key_has_so_many_parts() -> None:
    """One that has more is refused before it is read."""
    most = shipped("memd.config.load._MOST_PARTS")
    for parts, is_refused in ((most, False), (most + 1, True)):
        [told] = _complaints(f"[agents.main]\n{'.'.join('a' * parts)} = 1")
        assert ("has that many parts" in told) is is_refused


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("a = 1\na = 2\nb = 3", [":2: a occurs again, after line 1; keep one"]),
        ("[agents.main]\n[agents.main]\n", [":2: agents.main occurs again, after line 1; keep one"]),
        (
            "[agents.main]\nquery.max_results = 1\nworkspace = 'a'\n\nquery.max_results = 2\nworkspace = 'b'\nworkspace = 'c'",
            [
                ":5: agents.main.query.max_results occurs again, after line 2; keep one",
                ":7: agents.main.workspace occurs again, after line 3, 6; keep one",
            ],
        ),
        (
            "[agents.main]\nquery = { max_results = 1 }\nquery = { max_results = 1 }",
            [":3: agents.main.query.max_results occurs again, after line 2; keep one"],
        ),
    ],
)
def test_what_stands_twice_is_told_with_its_lines(text: str, complaints: list[str]) -> None:
    """All of it at once."""
    assert _complaints(text) == complaints


@pytest.mark.parametrize(
    "line",
    [
        "a" + ".a" * 30_000 + " = 1",
        "[" + "a." * 30_000 + "a]",
        'x = { a."b # c"' + ".'a'" * 30_000 + " = 1 }",
        "a" + " . a" * 30_000 + " = 1",
    ],
    ids=["key", "header", "quoted", "blanks"],
)
def test_a_key_of_ten_thousands_of_parts_is_refused_at_once(line: str) -> None:
    """Reading it would take half a minute."""
    assert _complaints(f"[agents.main]\n{line}") == [":2: no key of memd has that many parts"]


def test_many_dots_elsewhere_are_no_such_key() -> None:
    """In a text, a comment, or a list of numbers."""
    dots = "a." * 200
    text = f"[agents.main]\nexclude = [\"{dots}\", '{dots}'] # {dots}"
    assert _main(text).exclude == (dots, dots)


def test_a_number_of_many_digits_is_no_crash() -> None:
    """A number longer than Python reads is an error of the file."""
    assert "is not valid TOML" in _complaints("a = 1" + "0" * 5000)[0]


# --- which file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "environ", "platform", "path", "is_named"),
    [
        ("/a.toml", {"MEMD_CONFIG": "/b.toml"}, "linux", "/a.toml", True),
        ("~/a.toml", {}, "linux", "/home/ada/a.toml", True),
        (None, {"MEMD_CONFIG": "/b.toml", "XDG_CONFIG_HOME": "/x"}, "linux", "/b.toml", True),
        (None, {"MEMD_CONFIG": "~/b.toml"}, "linux", "/home/ada/b.toml", True),
        (None, {"MEMD_CONFIG": "/a/../b.toml"}, "linux", "/b.toml", True),
        (None, {"MEMD_CONFIG": ""}, "linux", "/home/ada/.config/memd/config.toml", False),
        ("~/.config/memd/config.toml", {}, "linux", "/home/ada/.config/memd/config.toml", False),
        (
            "/home/ada/.config/memd/config.toml",
            {"XDG_CONFIG_HOME": "/x"},
            "linux",
            "/home/ada/.config/memd/config.toml",
            True,
        ),
        (
            None,
            {"MEMD_CONFIG": "~/.config/memd/../memd/config.toml"},
            "linux",
            "/home/ada/.config/memd/config.toml",
            False,
        ),
        (None, {"XDG_CONFIG_HOME": "/x"}, "linux", "/x/memd/config.toml", False),
        (None, {}, "darwin", "/home/ada/Library/Application Support/memd/config.toml", False),
    ],
)
def test_the_command_line_goes_before_the_environment(
    flag: str | None, environ: Mapping[str, str], platform: str, path: str, *, is_named: bool
) -> None:
    """The flag, then MEMD_CONFIG, then the usual place of the platform."""
    file = Path(flag) if flag else None
    assert location(file, environ, _HOME, platform=platform) == (Path(path), is_named)


def test_an_included_memory_is_named_in_one_word_or_by_a_table() -> None:
    """Each with the connection of its server, but for one that names its own."""
    main = _main(
        """
        [shared.team]
        dsn_file = "/keys/team"

        [agents.main]
        include = [
            "team:alice/main",
            {server = "team", memory = "bob/main", in_groups = true, dsn_file = "/keys/bob"},
        ]
        """
    )
    assert [(one.name, one.dsn_file, one.in_groups) for one in main.include] == [
        ("team:alice/main", "/keys/team", False),
        ("team:bob/main", "/keys/bob", True),
    ]


def test_a_relative_name_starts_at_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon keeps an absolute name, so that a reload finds the same file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text('[agents.main]\nworkspace = "notes"', encoding="utf-8")
    config = load(Path("my.toml"), {}, _HOME)
    assert config.file == tmp_path / "my.toml"
    assert config.agents["main"].workspace == tmp_path / "notes"


def test_no_file_at_the_usual_place_means_defaults(tmp_path: Path) -> None:
    """Without any configuration there is the agent main on the default workspace."""
    config = load(None, {}, tmp_path)
    assert config.file is None
    assert config.agents == {"main": AgentSettings(workspace=tmp_path / ".openclaw" / "workspace")}


def test_a_file_at_the_usual_place_is_read(tmp_path: Path) -> None:
    """Nobody has to name it."""
    file = tmp_path / ".config" / "memd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[daemon]\nlog_level = "error"', encoding="utf-8")
    config = load(None, {"OPENCLAW_WORKSPACE_DIR": "/elsewhere"}, tmp_path)
    assert (config.file, config.daemon.log_level) == (file, "error")
    assert config.agents["main"].workspace == tmp_path / ".openclaw" / "workspace"


def _missing(directory: Path) -> Path:
    return directory / "none.toml"


def _directory(directory: Path) -> Path:
    return directory


def _pipe(directory: Path) -> Path:
    os.mkfifo(directory / "pipe")
    return directory / "pipe"


def _socket(directory: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "s"))
    return directory / "s"


def _utf16(directory: Path) -> Path:
    (directory / "utf16.toml").write_text("[agents.main]\n", encoding="utf-16")
    return directory / "utf16.toml"


def _latin(directory: Path) -> Path:
    (directory / "latin.toml").write_bytes(b'# fine\nmodel = "\xe4"\n')
    return directory / "latin.toml"


def _huge(directory: Path) -> Path:
    (directory / "huge.toml").write_bytes(b"#" * 10_000_000)
    return directory / "huge.toml"


def _under_a_file(directory: Path) -> Path:
    (directory / "file").touch()
    return directory / "file" / "config.toml"


def _circle(directory: Path) -> Path:
    (directory / "circle").symlink_to("circle")
    return directory / "circle"


def _long(directory: Path) -> Path:
    return directory / ("x" * 300)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (_missing, "{} does not exist; `memd-ctl config init` writes one to start from"),
        (_directory, "{} is a directory; name a file, such as {}/config.toml"),
        (_pipe, "{} is not a regular file"),
        (_socket, "{} is not a regular file"),
        (_utf16, "{} is UTF-16, or no text; save the file as UTF-8"),
        (_latin, "{}:2: this is not UTF-8 text; save the file as UTF-8"),
        (_huge, "{} is larger than 1 MiB; it cannot be a configuration of memd"),
        (_under_a_file, "{} cannot be read: Not a directory"),
        (_circle, "{} cannot be read: Too many levels of symbolic links"),
        (_long, "{} cannot be read: File name too long"),
    ],
)
def test_a_named_file_that_cannot_be_used_is_an_error(tmp_path: Path, make: Any, complaint: str) -> None:
    """The error names the file and what is the matter; the daemon never falls back to defaults."""
    file = make(tmp_path)
    for flag, environ in ((file, {}), (None, {"MEMD_CONFIG": str(file)})):
        with pytest.raises(ConfigError) as failure:
            load(flag, environ, _HOME)
        assert str(failure.value) == complaint.replace("{}", str(file))
        assert failure.value.exit_code == 78


def test_a_dangling_link_at_the_usual_place_is_an_error(tmp_path: Path) -> None:
    """Somebody meant a configuration to be there."""
    file = tmp_path / ".config" / "memd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.symlink_to("gone.toml")
    with pytest.raises(ConfigError, match=re.escape("~/.config/memd/config.toml is a link to ")):
        load(None, {}, tmp_path)


@pytest.mark.parametrize("closed", [".config/memd/config.toml", ".config/memd", ".config"])
def test_what_may_not_be_looked_at_is_an_error(closed: str) -> None:
    """A file that cannot be read is not taken for an absent one."""
    # Not tmp_path: the directories above that one are closed too.
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        home.chmod(0o755)
        file = home / ".config" / "memd" / "config.toml"
        file.parent.mkdir(parents=True)
        file.touch()
        (home / closed).chmod(0o000)
        with _bound_by_modes(), pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            load(None, {}, home)
        (home / closed).chmod(0o700)


# --- anything at all ---------------------------------------------------------------------------------------------


@settings(deadline=None)  # other work on the machine is no failure
@given(st.text())
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    """Nothing else comes out, whatever is in the file."""
    _is_config_or_error(text)


_NAMES = st.one_of(
    st.sampled_from(
        [
            *("daemon", "defaults", "agents", "main", "work", "Main"),
            *(field.name for field in msgspec.structs.fields(AgentSettings)),
            *(
                "tokens",
                "overlap",
                "max_results",
                "hybrid",
                "vector_weight",
                "text_weight",
                "rules",
                "action",
                "match",
            ),
            *(
                "log_level",
                "fallback",
                "remote",
                "headers",
                "sessions",
                "batch",
                "chat_type",
                "max_injected_chars",
            ),
        ]
    ),
    st.text(max_size=5),
)
_VALUES = st.recursive(
    st.one_of(
        st.sampled_from(
            ["memory", "sessions", "auto", "none", "allow", "openai", "~/x", "$x", "direct", 0, 1, 400, []]
        ),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=5),
        st.dates(),
        st.times(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)  # other work on the machine is no failure
@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_any_document_is_a_configuration_or_an_error(document: dict[str, Any]) -> None:
    """Known keys with wrong values in wrong places included."""
    _is_config_or_error(tomlkit.dumps(document))


@settings(deadline=None)  # other work on the machine is no failure
@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
def test_any_agent_is_a_configuration_or_an_error(settings: dict[str, Any]) -> None:
    """And so are any settings of an agent."""
    _is_config_or_error(tomlkit.dumps({"agents": {"main": settings}}))


_SNIPPETS = st.sampled_from(
    [
        *(
            "[",
            "]",
            "[[",
            "]]",
            "{",
            "}",
            '"',
            "'''",
            '"""',
            "=",
            ".",
            ",",
            "#",
            "\n",
            "\r",
            "\t",
            "\0",
            "\\",
            "-",
        ),
        *(
            "[agents.main]\n",
            "[agents.work]\n",
            "[[agents.main.scope.rules]]\n",
            'backend = "qmd"\n',
            "nan",
            "1e999",
        ),
        *("a = [\n", "[" * 3000, "9" * 5000, "main.", "\ufeff", "\x85", "\u202e", "0x", "2026-02-30", "''"),
    ]
)
_MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), _SNIPPETS | st.text(max_size=4)), min_size=1, max_size=5
)


@given(spoilt(st.just(_FULL.encode()), most=5) | st.binary(max_size=40))
def test_any_file_is_a_configuration_or_an_error(content: bytes) -> None:
    """Bytes that are no text included."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "config.toml"
        file.write_bytes(content)
        with contextlib.suppress(ConfigError):
            assert load(file, {}, Path(directory)).agents


@given(_MUTATIONS)
def test_a_configuration_with_slips_is_one_or_an_error(mutations: list[tuple[float, int, str]]) -> None:
    """So is a file that was right before some of it was deleted and other things were typed in."""
    text = _FULL
    for where, deleted, typed in mutations:
        at = int(where * len(text))
        text = text[:at] + typed + text[at + deleted :]
    _is_config_or_error(text)


@given(st.lists(st.integers(0, _FULL.count("\n")), max_size=8), st.randoms(use_true_random=False))
def test_a_configuration_in_disorder_is_one_or_an_error(lines: list[int], chance: Random) -> None:
    """And one whose lines stand twice, or elsewhere."""
    rows = _FULL.split("\n")
    for line in lines:
        rows.insert(chance.randrange(len(rows) + 1), rows[line])
    _is_config_or_error("\n".join(rows))


@pytest.mark.parametrize("wrong", ["a = 1\na = 1\n", "[x]\n[x]\n", "no = 1\n"])
@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 50_000 + "]" * 50_000, "{a=" * 50_000])
def test_what_is_nested_without_end_is_an_error(wrong: str, deep: str) -> None:
    """Wherever else the file is wrong, too."""
    with pytest.raises(ConfigError):
        _parsed(f"{wrong}b = {deep}\n")


def _is_config_or_error(text: str) -> None:
    try:
        config = _parsed(text)
    except ConfigError as error:
        complaints = str(error).splitlines()
    else:
        complaints = ["none"]
        assert config.agents
        assert all(settings.workspace.is_absolute() for settings in config.agents.values())
    assert 0 < len(complaints) <= 51
    assert all(complaint.isprintable() for complaint in complaints)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/keys/openai", "/home/ada/keys/openai"),
        ("openai.key", "/home/ada/.config/memd/openai.key"),
        ("/run/secrets/../k", "/run/k"),
        ("", ""),
    ],
)
def test_the_file_of_a_key_is_found_as_other_paths_are(written: str, meant: str) -> None:
    """From the home directory, or from that of the configuration; an empty name stays none."""
    found = _main(f'agents.main = {{ provider = "openai", remote = {{ api_key_file = "{written}" }} }}')
    assert found.remote.api_key_file == meant


def test_headers_are_kept_as_they_are_written() -> None:
    """Their names are the writer's own; those of an agent come beside those of [defaults]."""
    found = _main(
        """
        [defaults.remote.headers]
        X-Team = "a"
        X-Other = "b"
        [agents.main]
        provider = "openai"
        remote.headers.X-Team = "c"
        """
    )
    assert found.remote.headers == {"X-Team": "c", "X-Other": "b"}


def test_a_disagreement_in_the_defaults_is_told_where_it_stands() -> None:
    """At the line that somebody wrote, without the key in it."""
    [complaint] = _complaints(
        "[defaults.remote]\napi_key = 'sk-mellon'\n[agents.main]\n[agents.work]\nworkspace = 'w'"
    )
    assert complaint.startswith(":2: defaults.remote.api_key: remote.api_key does not say whose it is")
    assert "mellon" not in complaint


def test_sessions_and_presets_are_settings() -> None:
    """Paths are made absolute, what stands there twice counts once, and defaults lie under an agent's own."""
    text = """
[defaults]
sources = ["memory", "sessions"]
sessions = { presets = ["codex", "codex"], idle_seconds = 5 }
[agents.main]
memory_presets = ["claude-code", "claude-code"]
sessions.paths = ["~/a", "b", "/c/../d", "~/a"]
redact = { mode = "all", extra = [{ name = "x", pattern = "y" }], allow = ["z"] }
"""
    agent = parse(text, Path("/etc/memd/memd.toml"), Path("/home/li")).agents["main"]
    assert agent.sources == ("memory", "sessions")
    assert agent.sessions.presets == ("codex",)
    assert agent.sessions.paths == (Path("/home/li/a"), Path("/etc/memd/b"), Path("/d"))
    assert (agent.sessions.idle_seconds, agent.sessions.delta_bytes) == (5, 100_000)
    assert agent.memory_presets == ("claude-code",)
    assert agent.redact == Redact(mode="all", extra=(UserRule(name="x", pattern="y"),), allow=("z",))


def test_a_wrong_rule_is_no_configuration() -> None:
    """It is told with its line, before anything is indexed without it."""
    text = "[agents.main.redact]\nextra = [\n  { name = 'a', pattern = 'A+' },\n  { name = 'b', pattern = '(' },\n]\nallow = ['']\n"
    with pytest.raises(ConfigError) as raised:
        parse(text, Path("/home/li/memd.toml"), Path("/home/li"))
    extra, allow = str(raised.value).splitlines()
    assert extra.startswith("~/memd.toml:2: agents.main.redact.extra")
    assert "is no regular expression" in extra
    assert (
        allow
        == "~/memd.toml:6: agents.main.redact.allow: allow holds an empty text, which is part of every secret"
    )


def test_collections_of_qmd_are_paths_or_tables() -> None:
    """Relative ones start at the workspace of the agent, also where they stand in [defaults]."""
    text = """
    [defaults.qmd]
    collections = ["docs", "~/more", { path = "../wiki", name = "Wiki", pattern = "*.md" }]
    [agents.main]
    workspace = "~/w"
    [agents.work]
    workspace = "/work"
    """
    agents = _parsed(text).agents
    assert agents["main"].qmd.collections == (
        Collection(path=_HOME / "w/docs"),
        Collection(path=_HOME / "more"),
        Collection(path=_HOME / "wiki", name="Wiki", pattern="*.md"),
    )
    assert [one.path for one in agents["work"].qmd.collections] == [
        Path("/work/docs"),
        _HOME / "more",
        Path("/wiki"),
    ]
