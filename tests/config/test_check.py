"""What a person reads about one wrong key or value."""

import re
import tomllib
from typing import Any

import pytest

from memd.config.check import document_problems, dotted
from memd.config.toml_lines import Key
from tests.bounds import shipped
from tests.table import table


def _complaints(text: str) -> list[str]:
    return [problem.text for problem in document_problems(tomllib.loads(text))]


@pytest.mark.parametrize(
    ("key", "written"),
    [
        (("agents", "main"), "agents.main"),
        (("agents", "main", "scope", "rules", 0, "action"), "agents.main.scope.rules[0].action"),
        (("a b", "ü"), '"a b"."ü"'),
        (("\x1b[31mred",), '"\\u001b[31mred"'),
        (("x" * 100,), "x" * 100),
        (("", ""), '""'),
    ],
)
def test_a_key_is_written_as_in_the_file(key: Key, written: str) -> None:
    """Names that TOML quotes are quoted, and control characters never reach a terminal."""
    assert dotted(key).startswith(written)


@table(
    ("text", "complaint"),
    [
        ("agents.main.query.max_result = 3", "agents.main.query.max_result is not a key memd knows; did you mean max_results?"),
        ("agents.main.qmd.collections = [3]", "agents.main.qmd.collections[0] must be a table, not 3"),
        ('agents.main.qmd.collections = [""]', "agents.main.qmd.collections[0] must be a path; it is empty"),
        ("agents.main.qmd.collections = [{}]", "agents.main.qmd.collections[0] needs the key path: text in quotes"),
        ("agents.main.qmd.collections = 3", "agents.main.qmd.collections must be a list of paths or tables, not 3"),
        ("agents.main.extraPaths = []", "agents.main.extraPaths is not a key memd knows; did you mean extra_paths?"),
        ("agents.main.max_results = 3", "agents.main.max_results is not a key memd knows; did you mean query.max_results?"),
        ("agents.main.vectorWeight = 1", "agents.main.vectorWeight is not a key memd knows; did you mean query.hybrid.vector_weight?"),
        ("agents.main.sesions = {}", "agents.main.sesions is not a key memd knows; did you mean sessions?"),
        ("workspace = 'x'", "workspace is not a key memd knows; did you mean agents.main.workspace?"),
        ("log_level = 'info'", "log_level is not a key memd knows; did you mean daemon.log_level?"),
        ("agent.main.model = ''", "agent is not a key memd knows; did you mean agents?"),
        ("zebra = 1", "zebra is not a key memd knows; known here: daemon, defaults, agents, shared"),
        ("daemon.zebra = 1", "daemon.zebra is not a key memd knows; known here: log_level, memory_limit_mb"),
        ("defaults.limits.zebra = 1", "defaults.limits.zebra is not a key memd knows; known here: max_snippet_chars, max_injected_chars"),
        ("agents.main.redact.mod = 'all'", "agents.main.redact.mod is not a key memd knows; did you mean mode?"),
        ("agents.main.scope.rules = [{action = 'deny', match = {chat = 'x'}}]",
         "agents.main.scope.rules[0].match.chat is not a key memd knows; known here: channel, chat_type, key_prefix, raw_key_prefix"),
        ("agents.main.workspce = 'x'", "agents.main.workspce is not a key memd knows; did you mean workspace?"),
    ],
)  # fmt: skip
def test_an_unknown_key_names_the_one_that_was_meant(text: str, complaint: str) -> None:
    """The nearest key of the same table, else the table where the key belongs, else what there is."""
    assert _complaints(text) == [complaint]


@table(
    ("text", "complaint"),
    [
        ("daemon = 3", "daemon must be a table, not 3"),
        ("defaults = []", "defaults must be a table, not a list"),
        ("agents = 'x'", 'agents must hold a table for each agent, like [agents.main], not "x"'),
        ("[[agents]]", "agents must hold a table for each agent, like [agents.main], not a list"),
        ("daemon.log_level = 'loud'", 'daemon.log_level must be "debug", "error", "info" or "warning", not "loud"'),
        ("daemon.log_level = 'INFO'", 'daemon.log_level must be "debug", "error", "info" or "warning", not "INFO"; did you mean "info"?'),
        ("daemon.log_level = 2", 'daemon.log_level must be "debug", "error", "info" or "warning", not 2'),
        ("agents.main.query = 3", "agents.main.query must be a table, not 3"),
        ("agents.main.query.max_results = '6'", 'agents.main.query.max_results must be a whole number from 1 to 50, not "6"'),
        ("agents.main.query.max_results = true", "agents.main.query.max_results must be a whole number from 1 to 50, not true"),
        ("agents.main.query.max_results = 6.0", "agents.main.query.max_results must be a whole number from 1 to 50, not 6.0"),
        ("agents.main.query.max_results = 0", "agents.main.query.max_results must be a whole number from 1 to 50, not 0"),
        ("agents.main.query.max_results = 51", "agents.main.query.max_results must be a whole number from 1 to 50, not 51"),
        ("agents.main.query.max_results = {}", "agents.main.query.max_results must be a whole number from 1 to 50, not a table"),
        ("agents.main.query.max_results = 2026-01-02", "agents.main.query.max_results must be a whole number from 1 to 50, not the time 2026-01-02"),
        ("agents.main.query.min_score = nan", "agents.main.query.min_score must be a number from 0 to 1, not nan"),
        ("agents.main.query.min_score = -0.1", "agents.main.query.min_score must be a number from 0 to 1, not -0.1"),
        ("agents.main.max_file_mb = 0", "agents.main.max_file_mb must be a number above 0, up to 1024, not 0"),
        ("agents.main.max_file_mb = inf", "agents.main.max_file_mb must be a number above 0, up to 1024, not inf"),
        ("agents.main.cache.max_entries = 1" + "0" * 99, "agents.main.cache.max_entries must be a whole number from 1 to 1000000000, not a number of 100 digits"),
        ("agents.main.cache.enabled = 1", "agents.main.cache.enabled must be true or false, not 1"),
        ("agents.main.model = 3", "agents.main.model must be text in quotes, not 3"),
        ("agents.main.exclude = '*.md'", 'agents.main.exclude must be a list of texts in quotes, like ["one", "two"], not "*.md"'),
        ("agents.main.exclude = ['a', 3]", "agents.main.exclude[1] must be text in quotes, not 3"),
        ("agents.main.include = 'team:alice/main'", 'agents.main.include must be a list of names such as team:alice/main or tables, not "team:alice/main"'),
        ("agents.main.include = ['alice/main']", 'agents.main.include[0] must be a server and a memory, such as team:alice/main, not "alice/main"'),
        ("agents.main.include = [{memory = 'alice/main'}]", "agents.main.include[0] needs the key server: text in quotes"),
        ("agents.main.scope.rules = 'x'", 'agents.main.scope.rules must be a list of tables, not "x"'),
        ("agents.main.scope.rules = ['x']", 'agents.main.scope.rules[0] must be a table, not "x"'),
        ("agents.main.scope.rules = [{action = 'alow'}]", 'agents.main.scope.rules[0].action must be "allow" or "deny", not "alow"; did you mean "allow"?'),
        ("agents.main.scope.rules = [{match.channel = 'x'}]", 'agents.main.scope.rules[0] needs the key action: "allow" or "deny"'),
        ("agents.main.scope.rules = [{action = 'deny', match.channel = 1}]", "agents.main.scope.rules[0].match.channel must be text in quotes, not 1"),
        ("agents.main.scope.rules = [{action = 'deny', match.chat_type = 'dm'}]",
         'agents.main.scope.rules[0].match.chat_type must be "channel", "direct" or "group", not "dm"'),
        ("agents.main.sources = ['memroy']",
         'agents.main.sources[0] must be "memory" or "sessions", not "memroy"; did you mean "memory"?'),
        ("agents.main.sources = ['session']",
         'agents.main.sources[0] must be "memory" or "sessions", not "session"; did you mean "sessions"?'),
        ("agents.main.sessions.presets = ['claude']",
         'agents.main.sessions.presets[0] must be "claude-code", "codex", "copilot", "gemini", "openclaw", "opencode" or "qwen", not "claude"; did you mean "claude-code"?'),
        ("defaults.memory_presets = ['codex', 'gemin']",
         'defaults.memory_presets[1] must be "claude-code", "codex", "copilot", "gemini", "openclaw", "opencode" or "qwen", not "gemin"; did you mean "gemini"?'),
        ("agents.main.sessions.presets = 'codex'", 'agents.main.sessions.presets must be a list of texts in quotes, like ["one", "two"], not "codex"'),
        ("agents.main.sessions.paths = ['$HOME/x']",
         "agents.main.sessions.paths[0] must begin with ~/ or / or a name: variables are not looked up (./$name is a name)"),
        ("agents.main.sessions.delta_bytes = -1", "agents.main.sessions.delta_bytes must be a whole number from 0 to 1000000000, not -1"),
        ("agents.main.sessions.idle_seconds = inf", "agents.main.sessions.idle_seconds must be a number from 0 to 86400, not inf"),
        ("agents.main.redact.mode = 'no'", 'agents.main.redact.mode must be "all", "off" or "sessions", not "no"'),
        ("agents.main.redact.extra = [{ name = 'x' }]", "agents.main.redact.extra[0] needs the key pattern: text in quotes"),
        ("agents.main.redact.extra = ['x']", "agents.main.redact.extra[0] must be a table"),
        ("agents.main.workspace = ''", "agents.main.workspace must be a path; it is empty"),
        ("agents.main.workspace = '  '", "agents.main.workspace must be a path; it is empty"),
        ("agents.main.workspace = 3", "agents.main.workspace must be a path in quotes, not 3"),
        ('agents.main.workspace = "a\\u0000b"', "agents.main.workspace must be a path; it holds a NUL character"),
        ("agents.main.extra_paths = ['~bob/notes']",
         "agents.main.extra_paths[0] must begin with ~/ or / or a name: homes of other users are not looked up"),
        ("agents.main.extra_paths = ['a', '$HOME/notes']",
         "agents.main.extra_paths[1] must begin with ~/ or / or a name: variables are not looked up (./$name is a name)"),
        ("daemon.memory_limit_mb = false", "daemon.memory_limit_mb must be a whole number from 0 to 1000000, not false"),
        ("daemon.memory_limit_mb = -1", "daemon.memory_limit_mb must be a whole number from 0 to 1000000, not -1"),
        ("daemon.memory_limit_mb = 8",
         "daemon.memory_limit_mb must be 0, which is no limit, or 64 and more, not 8: memd holds more than that without a note"),
        ("agents.workspace = 'x'", "agents.workspace must be a table, the settings of an agent of that name; did you mean agents.main.workspace?"),
        ("agents.work = 'x'", "agents.work must be a table, the settings of an agent of that name"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_what_is_allowed(text: str, complaint: str) -> None:
    """The key, what it takes, and what was given."""
    assert _complaints(text) == [complaint]


def test_a_limit_of_memory_leaves_room_for_what_memd_is() -> None:
    """Of so many megabytes and more, or none at all."""
    least = shipped("memd.config.settings.LEAST_LIMIT_MB")
    assert _complaints(f"daemon.memory_limit_mb = {least}") == []
    [complaint] = _complaints(f"daemon.memory_limit_mb = {least - 1}")
    assert f"or {least} and more" in complaint


@pytest.mark.parametrize(
    "text",
    [
        "agents.main.redact.mode = 'sessions'",
        "defaults.limits.max_injected_chars = 4000",
        "daemon.memory_limit_mb = 0",
    ],
)
def test_a_key_with_its_default_is_accepted(text: str) -> None:
    """What changes nothing does no harm."""
    assert _complaints(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "agents.main.api_key = 'sk-very-secret'",
        "agents.main.remote.key = 'sk-very-secret'",
        "agents.main.remote.api_key = ['sk-very-secret']",
        "agents.main.remote.api_key = 987654321012345678",
        "agents.main.remote.headers = 'sk-very-secret'",
        "agents.main.remote.headers = ['sk-very-secret']",
        "agents.main.remote.headers.authorization = 987654321012345678",
        "agents.main.provider = 'sk-very-secret'",
        "agents.main.include = ['postgresql://ann:very-secret@db/memd']",
        "agents.main.include = ['host=db password=very-secret']",
        "shared.team.dsn_file = 'postgresql://ann:very-secret@db/memd'",
        "shared.team.dsn_file = 'host=db password=very-secret'",
        "agents.main.publish.dsn_file = 'postgresql://ann:very-secret@db/memd'",
    ],
)
def test_a_secret_is_not_repeated(text: str) -> None:
    """A message goes to logs and terminals; the key to an account does not."""
    (complaint,) = _complaints(text)
    assert "very-secret" not in complaint
    assert "987654321" not in complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agents.main.provider = 'open-ai'",
         'agents.main.provider must be "auto", "gemini", "local", "none", "ollama", "openai", "openai-compatible" or "voyage", not "open-ai"; did you mean "openai"?'),
        ("agents.main.fallback = 'auto'",
         'agents.main.fallback must be "gemini", "local", "none", "ollama", "openai", "openai-compatible" or "voyage", not "auto"'),
        ("agents.main.remote = 'http://x'", 'agents.main.remote must be a table, not "http://x"'),
        ("agents.main.remote.api_key = 1", "agents.main.remote.api_key must be text in quotes"),
        ("agents.main.remote.headers = 1", 'agents.main.remote.headers must be a table of texts in quotes, like { name = "value" }'),
        ("agents.main.remote.headers.x = 1", "agents.main.remote.headers.x must be text in quotes"),
        ("agents.main.remote.api_key_file = '~bob/key'",
         "agents.main.remote.api_key_file must begin with ~/ or / or a name: homes of other users are not looked up"),
        ("shared.team.dsn_file = 'postgresql://db/memd'", "shared.team.dsn_file must be a path on this machine, not an address"),
        ("agents.main.remote.api_key_file = 1", "agents.main.remote.api_key_file must be a path in quotes, not 1"),
        ("agents.main.remote.batch.poll_interval_ms = 1",
         "agents.main.remote.batch.poll_interval_ms must be a whole number from 100 to 3600000, not 1"),
        ("agents.main.base_url = 'x'", "agents.main.base_url is not a key memd knows; did you mean remote.base_url?"),
    ],
)  # fmt: skip
def test_a_wrong_setting_of_a_provider_is_told(text: str, complaint: str) -> None:
    """As any other; what may be a key is left out."""
    assert _complaints(text) == [complaint]


@pytest.mark.parametrize("agent", ["main", "a", "7", "Work_2-b", "x" * 64, "console", "com"])
def test_an_agent_may_be_called(agent: str) -> None:
    """Letters, digits, - and _, beginning with a letter or digit."""
    assert list(document_problems({"agents": {agent: {}}})) == []


@table(
    "agent",
    [
        "",
        ".",
        "..",
        "a/b",
        "a b",
        "-a",
        "_a",
        "ä",
        "x" * 65,
        "x" * 300,
        "a\n",
        "a\0",
        "CON.",
        "a.b",
        "../x",
        "..\\x",
        "/etc",
        "~",
        "caf\u00e9",
        "cafe\u0301",
        "\uff4dain",
        "ma\u0131n",
        "CON",
        "nul",
        "Com1",
        "lpt9",
    ],
)
def test_an_agent_may_not_be_called(agent: str) -> None:
    """A name that could lead a file elsewhere is refused."""
    (problem,) = document_problems({"agents": {agent: {}}})
    assert "is not a name for an agent" in problem.text
    assert problem.text.startswith("agents.")


def test_names_that_differ_in_capitals_are_one() -> None:
    """Two agents would share a file where the file system does not tell capitals apart."""
    (problem,) = document_problems({"agents": {"main": {}, "other": {}, "Main": {}}})
    assert problem.text == "agents.Main and agents.main differ only in capitals; rename one"


def test_every_problem_is_found() -> None:
    """One wrong key hides no other."""
    text = """
        [daemon]
        zebra = 1
        [agents.main]
        query = { max_results = 0, zebra = 1, hybrid = 3 }
        workspace = ''
    """
    keys = [dotted(problem.key) for problem in document_problems(tomllib.loads(text))]
    assert keys == [
        "daemon.zebra",
        "agents.main.query.max_results",
        "agents.main.query.zebra",
        "agents.main.query.hybrid",
        "agents.main.workspace",
    ]


@pytest.mark.parametrize("given", ["x" * 10_000, "\x1b[2J", 10**4000, {"a": 1}])
def test_what_was_given_is_shown_short_and_harmless(given: Any) -> None:
    """A long or odd value does not flood or steer a terminal."""
    (problem,) = document_problems({"agents": {"main": {"cache": {"enabled": given}}}})
    assert len(problem.text) < 200
    assert not re.search(r"[\x00-\x1f]", problem.text)


@pytest.mark.parametrize(("given", "shown"), [("x" * 60, "x" * 60), ("x" * 61, "x" * 59 + "…")])
def test_so_much_of_a_value_is_shown(given: str, shown: str) -> None:
    """One that is longer is cut to as much."""
    (problem,) = document_problems({"agents": {"main": {"cache": {"enabled": given}}}})
    assert f'"{shown}"' in problem.text
