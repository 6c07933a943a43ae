"""OpenClaw's configuration as one of memd."""

from pathlib import Path
from typing import Any

import pytest
import tomlkit

from memd.config.load import parse
from memd.ctl.config.from_openclaw import _INTERVALS, _SAME, _nested, imported
from memd.ctl.integrations.openclaw import OpenClawPlaces, merged

HOME = Path("/h")
PLACES = OpenClawPlaces(HOME / ".openclaw", HOME / ".openclaw" / "openclaw.json")
WORKSPACE = "/h/.openclaw/workspace"
NO_SCOPE = (
    "OpenClaw has no rules on who may search: with memd groups and channels may not, unless [scope] allows it"
)


def told(config: dict[str, Any], environ: dict[str, str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """The agents, and the remarks but the one on scope; memd accepts what comes of it."""
    tables, remarks = imported(config, PLACES, environ or {}, HOME)
    parse(tomlkit.dumps(tables), Path("/h/config.toml"), HOME)
    return tables["agents"], [remark for remark in remarks if not remark.endswith(NO_SCOPE)]


def of_main(search: dict[str, Any], **memory: Any) -> tuple[dict[str, Any], list[str]]:
    """What becomes of memory.search of a new version."""
    agents, remarks = told({"memory": {"search": {"provider": "none", **search}, **memory}})
    table = agents["main"]
    assert table.pop("workspace") == WORKSPACE
    if "provider" not in search:
        assert table.pop("provider") == "none"
    return table, remarks


def test_an_empty_configuration_has_one_agent() -> None:
    """And what memd would do by itself is said."""
    agents, remarks = told({})
    assert agents == {"main": {"workspace": WORKSPACE}}
    assert [remark for remark in remarks if "names no provider" in remark] == remarks
    assert imported({}, PLACES, {}, HOME)[1][-1].endswith(NO_SCOPE)


OLD = {
    "agents": {
        "defaults": {
            "workspace": "~/clawd",
            "userTimezone": "Asia/Shanghai",
            "memorySearch": {
                "provider": "voyage",
                "model": "voyage-4",
                "fallback": "local",
                "extraPaths": ["~/notes"],
                "experimental": {"sessionMemory": True},
                "sources": ["memory", "sessions"],
                "chunking": {"tokens": 300, "overlap": 60},
                "query": {
                    "maxResults": 8,
                    "hybrid": {
                        "vectorWeight": 0.6,
                        "textWeight": 0.4,
                        "mmr": {"enabled": True, "lambda": 0.7},
                    },
                },
                "sync": {"onSearch": True, "intervalMinutes": 5, "sessions": {"deltaBytes": 5000}},
                "cache": {"maxEntries": 1000},
                "store": {"path": "~/x.sqlite"},
            },
        },
        "list": [
            {"id": "main", "default": True},
            {
                "id": "work",
                "workspace": "/w",
                "memorySearch": {"extraPaths": ["docs"], "query": {"maxResults": 3}},
            },
        ],
    },
    "memory": {"citations": "off"},
}


def test_an_old_version() -> None:
    """Defaults and the list of agents; extra paths of both levels count."""
    agents, remarks = told(OLD)
    assert agents["main"] == {
        "workspace": "/h/clawd",
        "provider": "voyage",
        "model": "voyage-4",
        "fallback": "local",
        "timezone": "Asia/Shanghai",
        "citations": "off",
        "extra_paths": ["/h/notes"],
        "sources": ["memory", "sessions"],
        "exclude": ["/h/.openclaw/agents/work/"],
        "chunking": {"tokens": 300, "overlap": 60},
        "query": {"max_results": 8, "hybrid": {"vector_weight": 0.6, "text_weight": 0.4}},
        "sync": {"interval_minutes": 5},
        "sessions": {"delta_bytes": 5000, "presets": ["openclaw"]},
        "cache": {"max_entries": 1000},
    }
    assert (agents["work"]["workspace"], agents["work"]["extra_paths"]) == ("/w", ["/h/notes", "/w/docs"])
    assert agents["work"]["query"]["max_results"] == 3
    assert agents["work"]["exclude"] == ["/h/.openclaw/agents/main/"]
    assert remarks == [
        f"main, work: {name} has no counterpart in memd"
        for name in ("query.hybrid.mmr.enabled", "query.hybrid.mmr.lambda", "sync.onSearch", "store.path")
    ]


def test_a_new_version() -> None:
    """Agents by name, memory.search of both levels; the nearest counts."""
    search = {"provider": "gemini", "outputDimensionality": 768, "remote": {"batch": {"enabled": True}}}
    own = {"memory": {"search": {"provider": "ollama", "rememberAcrossConversations": True}}}
    agents, _ = told({"agents": {"entries": {"a": {}, "B": own}}, "memory": {"search": search}})
    assert agents["a"]["remote"] == {"dimensions": 768, "batch": {"enabled": True}}
    assert (agents["a"]["provider"], agents["b"]["provider"], agents["b"]["sources"]) == (
        "gemini",
        "ollama",
        ["memory", "sessions"],
    )


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"sources": ["memory", "sessions"]}, ["memory", "sessions"]),
        ({"sources": ["memory", "sessions"], "experimental": {"sessionMemory": False}}, None),
        ({"sources": ["memory"]}, None),
        ({"rememberAcrossConversations": True}, ["memory", "sessions"]),
    ],
)
def test_transcripts_are_searched_where_they_were(search: dict[str, Any], expected: list[str] | None) -> None:
    """Old versions have a second switch."""
    assert of_main(search)[0].get("sources") == expected


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("sk-secret-value", None),
        ("${EMBED_KEY}", "EMBED_KEY"),
        ("x${EMBED_KEY}", None),
        ({"source": "env", "provider": "default", "id": "EMBED_KEY"}, "EMBED_KEY"),
        ({"source": "file", "id": "/keys/secret-value"}, None),
        (["secret-value"], None),
    ],
)
@pytest.mark.parametrize("is_of_provider", [False, True])
def test_a_key_is_never_copied(key: object, variable: str | None, is_of_provider: bool) -> None:
    """The name of a variable is; else it is said where the key stands, and where to put it."""
    config: dict[str, Any] = {"memory": {"search": {"provider": "gemini"}}}
    if is_of_provider:
        config["models"] = {"providers": {"google": {"apiKey": key}, "openai": {"apiKey": "sk-other"}}}
    else:
        config["memory"]["search"]["remote"] = {"apiKey": key, "headers": {"X-Token": "secret-value"}}
    agents, remarks = told(config)
    assert "secret-value" not in repr((agents, remarks))
    assert "sk-other" not in repr((agents, remarks))
    assert agents["main"].get("remote", {}).get("api_key_env") == variable
    named = (
        "models.providers.google.apiKey in /h/.openclaw"
        if is_of_provider
        else "memory.search.remote.apiKey in /h/.openclaw"
    )
    assert any(named in remark and "api_key_file" in remark for remark in remarks) is (variable is None)
    assert (
        any("headers are not copied" in remark and "X-Token" in remark for remark in remarks)
        is not is_of_provider
    )


@pytest.mark.parametrize(
    ("provider", "custom", "expected", "remark"),
    [
        ("openai", {}, {"provider": "openai", "model": "m"}, None),
        ("auto", {}, {"provider": "auto", "model": "m"}, None),
        ("local", {}, {"provider": "local"}, None),
        ("none", {}, {"provider": "none"}, None),
        ("bedrock", {}, {"provider": "local"}, "'bedrock' has no counterpart"),
        (
            "box",
            {"api": "ollama", "baseUrl": "http://box:11434"},
            {"provider": "ollama", "model": "m", "remote": {"base_url": "http://box:11434"}},
            None,
        ),
        (
            "box",
            {"api": "openai-completions", "baseUrl": "http://${BOX}/v1"},
            {"provider": "openai-compatible", "model": "m", "remote": {"base_url": "http://box/v1"}},
            None,
        ),
        ("box", {"api": "anthropic-messages"}, {"provider": "local"}, "'box' has no counterpart"),
    ],
)
def test_a_provider_has_its_counterpart_or_nothing_is_sent(
    provider: str, custom: dict[str, str], expected: dict[str, Any], remark: str | None
) -> None:
    """Also one that OpenClaw's configuration describes itself."""
    config = {
        "memory": {"search": {"provider": provider, "model": f"{provider}/m"}},
        "models": {"providers": {"box": custom}},
    }
    agents, remarks = told(config, {"BOX": "box"})
    assert agents["main"] == {"workspace": WORKSPACE, **expected}
    assert [remark is not None and remark in one for one in remarks] == ([] if remark is None else [True])


@pytest.mark.parametrize(
    "url",
    [
        "https://ann:hunter2hunter2@embed.example/v1",
        "https://embed.example/${BOX}/v1",
        "https://embed.example/v1?key=${BOX}",
        "https://ann:${BOX}@embed.example/v1",
        "no address hunter2hunter2",
    ],
)
@pytest.mark.parametrize("provider", ["openai", "mine"])
def test_an_address_that_may_hold_a_key_is_not_copied_and_no_other_is_taken(url: str, provider: str) -> None:
    """Neither into the configuration nor into what is said of it; the provider's usual address would be another company's."""
    custom = {"mine": {"api": "openai-completions"}}
    search = {"provider": provider, "model": "m", "remote": {"baseUrl": url}}
    config = {"memory": {"search": search}, "models": {"providers": custom}}
    agents, remarks = told(config, {"BOX": "hunter2hunter2"})
    assert agents["main"] == {"workspace": WORKSPACE, "provider": "local"}
    assert any("remote.baseUrl" in remark for remark in remarks)
    assert "hunter2" not in repr((agents, remarks))


def test_the_engine_qmd_and_its_scope() -> None:
    """Of versions that had it; a prefix that denies goes on denying what it denied."""
    qmd = {
        "command": "/usr/bin/qmd",
        "searchMode": "vsearch",
        "paths": [
            {"path": "~/wiki", "name": "wiki", "pattern": "**/*.md"},
            {"path": "~/log", "pattern": "2026/*.md"},
        ],
        "sessions": {"enabled": True, "retentionDays": 30, "exportDir": "~/e"},
        "update": {"interval": "90s", "debounceMs": 2500, "embedInterval": "2h", "onBoot": True},
        "limits": {"maxResults": 4, "timeoutMs": 5000},
        "scope": {
            "rules": [
                {"action": "deny", "match": {"keyPrefix": "discord:channel:9", "chatType": "channel"}},
                {"action": "allow", "match": {"rawKeyPrefix": "agent:main:telegram:"}},
            ]
        },
    }
    table, remarks = of_main({}, backend="qmd", qmd=qmd)
    assert table == {
        "backend": "qmd",
        "extra_paths": ["/h/wiki"],
        "sources": ["memory", "sessions"],
        "sessions": {"presets": ["openclaw"]},
        "query": {"max_results": 4},
        "qmd": {
            "command": "/usr/bin/qmd",
            "search_mode": "vsearch",
            "session_days": 30,
            "update_minutes": 1.5,
            "embed_minutes": 120,
            "debounce_seconds": 2.5,
            "timeout_ms": 5000,
        },
        "scope": {
            "default": "allow",
            "rules": [
                {"action": "deny", "match": {"key_prefix": "discord:channel:9*", "chat_type": "channel"}},
                {"action": "allow", "match": {"raw_key_prefix": "agent:main:telegram:"}},
            ],
        },
    }
    assert any("/h/log is left out: only 2026/*.md" in remark for remark in remarks)
    assert {
        "main: qmd.sessions.exportDir has no counterpart in memd",
        "main: qmd.update.onBoot has no counterpart in memd",
    } <= set(remarks)
    assert of_main({}, backend="builtin", qmd=qmd)[1] == ["main: qmd.* is left out: it is not the backend"]


@pytest.mark.parametrize(
    ("action", "prefix", "is_told"),
    [
        ("allow", "telegram:group:-1001", True),
        ("allow", "telegram:group:", False),
        ("allow", "telegram:group:-1001*", False),
        ("deny", "telegram:group:-1001", False),
    ],
)
@pytest.mark.parametrize("key", ["keyPrefix", "rawKeyPrefix"])
def test_a_prefix_that_allows_less_than_it_did_is_told(
    key: str, action: str, prefix: str, is_told: bool
) -> None:
    """Where it ends within a word of a session key."""
    scope = {"rules": [{"action": action, "match": {key: prefix}}]}
    _, remarks = of_main({}, backend="qmd", qmd={"scope": scope})
    assert any("ends where a word of the key ends" in remark for remark in remarks) is is_told


@pytest.mark.parametrize(
    ("search", "remark"),
    [
        ({"query": {"maxResults": 99}}, "query.maxResults = 99 is nothing that memd can have"),
        ({"query": {"minScore": "high"}}, "query.minScore = 'high' is nothing that memd can have"),
        ({"query": {"minScore": 0.2}}, "scale of their own"),
        ({"multimodal": {"enabled": True}}, "multimodal.enabled has no counterpart"),
        ({"sync": {"intervalMinutes": 0}}, "sync.intervalMinutes has no counterpart"),
        ({"local": {"modelPath": "hf:x", "contextSize": 1}}, "llama.cpp"),
        ({"fallback": "mistral"}, "fallback 'mistral'"),
        ({"extraPaths": [{"path": "/n", "pattern": "a/*.md"}]}, "/n is left out: only a/*.md"),
    ],
)
def test_what_has_no_counterpart_is_named(search: dict[str, Any], remark: str) -> None:
    """Each with the reason."""
    table, remarks = of_main(search)
    assert len(remarks) == 1
    assert remark in remarks[0]
    assert set(table) <= {"query"}


_WRONG = (5, ["x", 5], [None], [{"a": None}], {"a": None}, -1)


@pytest.mark.parametrize("backend", ["builtin", "qmd"])
@pytest.mark.parametrize(
    "name",
    [
        *_SAME,
        *_INTERVALS,
        "enabled",
        "experimental.sessionMemory",
        "extraPaths",
        "fallback",
        "inputType",
        "provider",
        "qmd.paths",
        "qmd.scope.default",
        "qmd.scope.rules",
        "qmd.sessions.enabled",
        "qmd.update.debounceMs",
        "rememberAcrossConversations",
        "remote.baseUrl",
        "sources",
        "sync.intervalMinutes",
        "userTimezone",
    ],
)
def test_no_value_is_lost_without_a_word(name: str, backend: str) -> None:
    """Whatever it is: it is taken over, or a remark says that it is not."""
    usual = {"backend": backend, "search": {"provider": "openai", "model": "m"}}

    def told_of(value: object) -> tuple[dict[str, Any], list[str]]:
        if name == "userTimezone":
            return told({"agents": {"defaults": {name: value}}, "memory": usual})
        is_beside = name == "citations" or name.startswith("qmd.")
        return told(
            {"memory": merged(usual, _nested(name, value) if is_beside else {"search": _nested(name, value)})}
        )

    assert [value for value in _WRONG if told_of(value) == told({"memory": usual})] == []


def test_a_path_that_is_none_is_named() -> None:
    """The others are searched."""
    table, remarks = of_main({"extraPaths": ["~/a", 5]})
    assert table == {"extra_paths": ["/h/a"]}
    assert remarks == ["main: extraPaths = 5 is nothing that memd can have, and is left out"]


def test_agents_that_are_not_taken_over_are_named() -> None:
    """Of two with one id, and what is no agent."""
    listed = [{"id": "two", "workspace": "/1"}, {"id": "Two", "workspace": "/2"}, {"name": "x"}, 5]
    agents, remarks = told({"agents": {"list": listed}, "memory": {"search": {"provider": "none"}}})
    assert agents == {"two": {"workspace": "/2", "provider": "none"}}
    assert remarks == [
        "agents.list[2] has no id, and is left out",
        "agents.list[3] has no id, and is left out",
        "two: 2 agents have this id; only the last of them is taken over",
    ]
    wrong = {"agents": {"list": {}, "entries": []}, "memory": {"search": {"provider": "none"}}}
    assert told(wrong)[1] == [
        "agents.list is no list, and is left out",
        "agents.entries is no table, and is left out",
    ]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"tools": {"sessions": {"visibility": "tree"}}}, ["tools.sessions.visibility holds in OpenClaw"]),
        ({"tools": {"sessions": {"visibility": "all"}}}, []),
        ({"session": {"groupScope": "main"}}, ["takes for a group"]),
        ({"bindings": [{}, {"session": {"groupScope": "main"}}]}, ["takes for a group"]),
        ({"session": {"groupScope": "per-group"}, "bindings": [7]}, []),
    ],
)
def test_what_stands_elsewhere_and_concerns_memory_is_said(
    config: dict[str, Any], expected: list[str]
) -> None:
    """Of all agents at once."""
    both = {"agents": {"entries": {"a": {}, "b": {}}}, "memory": {"search": {"provider": "none"}}}
    remarks = told({**both, **config})[1]
    assert len(remarks) == len(expected)
    for remark, words in zip(remarks, expected, strict=True):
        assert remark.startswith("a, b: ")
        assert words in remark


def test_agents_without_memory_search_are_left_out() -> None:
    """And those whose names memd does not take."""
    entries = {"a": {"memory": {"search": {"enabled": False}}}, "b c": {}, "d": {}}
    agents, remarks = told({"agents": {"entries": entries}, "memory": {"search": {"provider": "none"}}})
    assert list(agents) == ["d"]
    assert remarks == [
        "a: its memory search is turned off, so it is left out",
        "b c: memd has no agents of such a name",
    ]


def test_settings_that_need_one_another_are_taken_together() -> None:
    """An overlap of 80, which memd has by default, would not go with so few tokens."""
    assert of_main({"chunking": {"tokens": 60, "overlap": 20}, "query": {"maxResults": 0}}) == (
        {"chunking": {"tokens": 60, "overlap": 20}},
        [
            "main: query.maxResults = 0 is nothing that memd can have: query.max_results must be a whole number from 1 to 50, not 0"
        ],
    )
