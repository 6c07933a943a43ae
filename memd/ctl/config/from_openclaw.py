"""Converts OpenClaw's memory settings to a configuration of memd, and lists what has no counterpart. Pure.

Old versions have `memorySearch`, in `agents.defaults` or at the top, and a list of agents; newer ones
`memory.search` and agents by name. Settings are taken from an agent's merged settings, and those that remain
are listed. A key is never copied.
"""

import re
from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path
from typing import Any, get_args

import tomlkit
from tomlkit.exceptions import ConvertError

from memd.config.load import ConfigError, parse
from memd.config.settings import Embedder
from memd.ctl.integrations.json_edit import find
from memd.ctl.integrations.openclaw import (
    OpenClawPlaces,
    agents_in,
    agents_left_out,
    expanded,
    merged,
)

Leaves = dict[str, Any]
"""The values of a table by their dotted names."""

# OpenClaw's name -> memd's, for settings with the same meaning.
_SAME: Mapping[str, str] = {
    "citations": "citations",
    "model": "model",
    "outputDimensionality": "remote.dimensions",
    "queryInputType": "remote.query_input_type",
    "documentInputType": "remote.document_input_type",
    "remote.nonBatchConcurrency": "remote.concurrency",
    "remote.batch.enabled": "remote.batch.enabled",
    "remote.batch.wait": "remote.batch.wait",
    "remote.batch.concurrency": "remote.batch.concurrency",
    "remote.batch.pollIntervalMs": "remote.batch.poll_interval_ms",
    "remote.batch.timeoutMinutes": "remote.batch.timeout_minutes",
    "chunking.tokens": "chunking.tokens",
    "chunking.overlap": "chunking.overlap",
    "query.maxResults": "query.max_results",
    "query.minScore": "query.min_score",
    "query.hybrid.enabled": "query.hybrid.enabled",
    "query.hybrid.vectorWeight": "query.hybrid.vector_weight",
    "query.hybrid.textWeight": "query.hybrid.text_weight",
    "query.hybrid.candidateMultiplier": "query.hybrid.candidate_multiplier",
    "sync.watchDebounceMs": "sync.watch_debounce_ms",
    "sync.sessions.deltaBytes": "sessions.delta_bytes",
    "sync.sessions.deltaMessages": "sessions.delta_messages",
    "cache.enabled": "cache.enabled",
    "cache.maxEntries": "cache.max_entries",
    "qmd.command": "qmd.command",
    "qmd.searchMode": "qmd.search_mode",
    "qmd.sessions.retentionDays": "qmd.session_days",
    "qmd.limits.maxResults": "query.max_results",
    "qmd.limits.maxSnippetChars": "limits.max_snippet_chars",
    "qmd.limits.maxInjectedChars": "limits.max_injected_chars",
    "qmd.limits.timeoutMs": "qmd.timeout_ms",
}
_INTERVALS = {"qmd.update.interval": "qmd.update_minutes", "qmd.update.embedInterval": "qmd.embed_minutes"}
_UNITS = {"ms": 1 / 60_000, "s": 1 / 60, "m": 1, "h": 60, "d": 1440, "": 1}  # in minutes
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HOST = re.compile(r"https?://[^/?#@]+(?=[/?#]|$)")  # the part of an address that may contain a variable
_EMBEDDERS = frozenset(get_args(Embedder))
_KEY_OWNERS = {"gemini": "google"}  # memd's name of a provider -> OpenClaw's, if they differ
_OPENAI_LIKE = ("openai-completions", "openai-responses")
_AGENT = re.compile(r"[a-z0-9_-]{1,64}")
_NEEDS_NO_WORD = {
    "enabled": True,
    "backend": "builtin",
    "qmd.includeDefaultMemory": True,
    "qmd.sessions.enabled": False,
}


class _Agent:
    """An agent during the conversion: the settings not converted yet, memd's settings, and remarks for the user."""

    def __init__(self, name: str, workspace: Path, left: Leaves, reads: "_Source") -> None:
        self.name = name
        self._workspace = workspace
        self._left = left
        self._reads = reads
        self._wanted: list[tuple[str, Any, str]] = []  # (memd's name, value, OpenClaw's name)
        self.table: dict[str, Any] = {"workspace": str(workspace)}
        self.remarks: list[str] = []

    def put(self, key: str, value: Any, of: str = "") -> None:
        """Set a value; it is validated at the end by `settle`, because one value may require another."""
        self._wanted.append((key, value, of or key))
        self.table = merged(self.table, _nested(key, value))

    def settle(self) -> None:
        """Remove values that memd's configuration does not accept, and add remarks about them."""
        table: dict[str, Any] = {"workspace": str(self._workspace)}
        if _fault(self.table) is None:
            return
        wanted, tried = self._wanted, None
        while wanted and wanted != tried:
            tried, wanted = wanted, []
            for one in tried:
                fuller = merged(table, _nested(one[0], one[1]))
                if _fault(fuller) is None:
                    table = fuller
                else:
                    wanted.append(one)
        self.table = table
        for key, value, of in wanted:
            fault = _fault(merged(table, _nested(key, value)))
            # An address may contain a key, so its value is not shown.
            said = of if key.startswith("remote.") else f"{of} = {value!r}"
            self.remarks.append(f"{said} is nothing that memd can have: {fault}")

    def _taken(self, name: str, kind: Any) -> Any:
        """Remove a setting and return its value; None: there is none, or it is of another kind, which a remark says."""
        value = self._left.pop(name, None)
        is_taken = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if value is not None and not is_taken:
            self._refuse(name, value)
        return value if is_taken else None

    def _refuse(self, name: str, value: Any) -> None:
        # An address may contain a key, so its value is not shown.
        said = name if name.startswith("remote.") else f"{name} = {value!r}"
        self.remarks.append(f"{said} is nothing that memd can have, and is left out")

    def convert(self) -> None:
        """Convert all settings that have a counterpart."""
        self._provider()
        self._key_or_headers()
        if self.table.get("provider") in {"local", "none"}:
            self._left.pop("model", None)
        self._qmd()
        for name, key in _SAME.items():
            if name in self._left:
                self.put(key, self._left.pop(name), name)
        minutes = self._left.get("sync.intervalMinutes")
        if isinstance(minutes, int | float) and minutes > 0:
            self.put("sync.interval_minutes", self._left.pop("sync.intervalMinutes"))
        if (both := self._taken("inputType", str)) is not None:
            for key in ("query_input_type", "document_input_type"):
                if find(self.table, ("remote", key)) is None:
                    self.put(f"remote.{key}", both)
        if zone := self._reads.timezone:
            self.put("timezone", zone, "userTimezone")
        self._paths()
        self._sources()
        self._scope()
        self.settle()
        if "min_score" in self.table.get("query", {}):
            self.remarks.append(
                "min_score is taken over, but memd's scores are on a scale of their own: see `memd-ctl explain`"
            )
        self.remarks += [
            f"{name} has no counterpart in memd"
            for name, value in self._left.items()
            if name not in _NEEDS_NO_WORD or _NEEDS_NO_WORD[name] != value
        ]

    def _qmd(self) -> None:
        """Convert the settings of qmd, which apply only if it is the backend."""
        if self._left.get("backend") != "qmd":
            unused = [name for name in self._left if name.startswith("qmd.")]
            if unused:
                self.remarks.append("qmd.* is left out: it is not the backend")
            self._left = {name: value for name, value in self._left.items() if name not in unused}
            return
        self.put("backend", self._left.pop("backend"))
        for name, key in _INTERVALS.items():
            found = _DURATION.fullmatch(str(self._left.get(name, "")).strip().lower())
            if found:
                self._left.pop(name)
                self.put(key, round(float(found[1]) * _UNITS[found[2]], 3), name)
        if (debounce := self._taken("qmd.update.debounceMs", int | float)) is not None:
            self.put("qmd.debounce_seconds", debounce / 1000)

    def _provider(self) -> None:
        name = self._taken("provider", str)
        fallback = self._left.pop("fallback", None)
        if name is not None:
            self._named_provider(name)
        else:
            self.remarks.append(
                "OpenClaw names no provider: memd takes the service whose key is in its environment, else the model that comes with"
                ' it; provider = "local" keeps notes on this machine'
            )
        if isinstance(fallback, str) and fallback in _EMBEDDERS:
            self.put("fallback", fallback)
        elif fallback is not None and fallback != "none":
            self.remarks.append(f"the fallback {fallback!r} has no counterpart in memd")
        if any(name.startswith("local.") for name in self._left):
            self.remarks.append(
                "a model of llama.cpp (local.*) is not loaded by memd, whose provider local is a model of its own"
            )
            self._left = {name: value for name, value in self._left.items() if not name.startswith("local.")}

    def _named_provider(self, name: str) -> None:
        custom = find(self._reads.config, ("models", "providers", name))
        api = custom.get("api") if isinstance(custom, dict) else None
        if name in _EMBEDDERS or name in {"auto", "none"}:
            self.put("provider", name)
        elif api == "ollama" or api in _OPENAI_LIKE:
            self.put("provider", "ollama" if api == "ollama" else "openai-compatible")
            if isinstance(custom.get("baseUrl"), str):
                self._left.setdefault("remote.baseUrl", custom["baseUrl"])
        else:
            self.put("provider", "local")
            self.remarks.append(
                f"the provider {name!r} has no counterpart in memd: it is set to local, which sends nothing"
            )
        if (url := self._left.pop("remote.baseUrl", None)) is not None:
            self._address(url if isinstance(url, str) else "")
        model = self._left.get("model")
        if isinstance(model, str) and model.startswith(f"{name}/"):
            self._left["model"] = model.removeprefix(f"{name}/")
        owner = f"models.providers.{_KEY_OWNERS.get(name, name)}.apiKey"
        key = find(self._reads.config, tuple(owner.split(".")))
        if (
            key is not None
            and "remote.apiKey" not in self._left
            and self.table.get("provider") not in {"local", "none"}
        ):
            self._key(owner, key)

    def _address(self, url: str) -> None:
        """Set the address that texts are sent to; if it cannot be used, the provider becomes local, which sends nothing."""
        host = _HOST.match(url)
        known = None if host is None or _VARIABLE.search(url, host.end()) else self._reads.text(url)
        remote = {"provider": "openai-compatible", "model": "m", "remote": {"base_url": known}}
        if known is not None and _fault({"workspace": str(self._workspace), **remote}) is None:
            self.put("remote.base_url", known, "remote.baseUrl")
            return
        self.put("provider", "local")
        self.remarks.append(
            f"remote.baseUrl in {self._reads.file} is no address that memd can have, or one that may hold a key: the provider is set to"
            " local, which sends nothing"
        )

    def _key_or_headers(self) -> None:
        """Add remarks about where a key and headers are; their values are never shown."""
        if "remote.apiKey" in self._left:
            self._key("memory.search.remote.apiKey", self._left.pop("remote.apiKey"))
        headers = [name for name in self._left if name.startswith("remote.headers.")]
        if headers:
            names = ", ".join(name.removeprefix("remote.headers.") for name in headers)
            self.remarks.append(
                f"headers are not copied, for they may hold keys ({names}): put them into [agents.ID.remote] yourself"
            )
            self._left = {name: value for name, value in self._left.items() if name not in headers}

    def _key(self, place: str, key: Any) -> None:
        variable = _VARIABLE.fullmatch(key) if isinstance(key, str) else None
        name = variable[1] if variable else find(key, ("id",)) if find(key, ("source",)) == "env" else None
        if isinstance(name, str):
            self.put("remote.api_key_env", name)
            return
        self.remarks.append(
            f"{place} in {self._reads.file} is a key, which is not copied: put it into a file that only you may read (chmod 600), and name"
            f" that in [agents.ID.remote] as api_key_file"
        )

    def _paths(self) -> None:
        paths: list[str] = []
        for name in ("extraPaths", "qmd.paths"):
            for item in self._taken(name, list) or ():
                path, pattern = (
                    (item.get("path"), item.get("pattern")) if isinstance(item, dict) else (item, None)
                )
                if not isinstance(path, str):
                    self._refuse(name, item)
                    continue
                place = normpath(self._workspace / expanded(self._reads.text(path), self._reads.home))
                if pattern in {None, "**/*.md"}:
                    paths.append(place)
                else:
                    self.remarks.append(
                        f"{place} is left out: only {pattern} of it was searched, and memd searches all Markdown of a directory; add"
                        " it to extra_paths, with exclude for the rest"
                    )
        if paths:
            self.put("extra_paths", list(dict.fromkeys(paths)), "extraPaths")

    def _sources(self) -> None:
        sources = self._taken("sources", list) or ["memory"]
        for other in sources:
            if other not in ("memory", "sessions"):
                self._refuse("sources", other)
        remembers = self._taken("rememberAcrossConversations", bool) is True
        # Old versions listen to `sources` only with the second switch, new ones have none.
        is_on = self._left.get("experimental.sessionMemory", True) is True
        self._taken("experimental.sessionMemory", bool)
        by_qmd = self._taken("qmd.sessions.enabled", bool) is True
        if not (remembers or (is_on and "sessions" in sources) or by_qmd):
            return
        self.put("sources", ["memory", "sessions"])
        self.put("sessions.presets", ["openclaw"])
        others = [
            f"{self._reads.places.home}/agents/{name}/" for name in self._reads.names if name != self.name
        ]
        if others:
            self.put("exclude", others)

    def _scope(self) -> None:
        default = self._left.pop("qmd.scope.default", None)
        rules = self._taken("qmd.scope.rules", list)
        if default is None and rules is None:
            self.remarks.append(
                "OpenClaw has no rules on who may search: with memd groups and channels may not, unless [scope] allows it"
            )
            return
        self.put("scope.default", "allow" if default is None else default, "scope.default")
        if rules:
            for rule in rules:
                if not isinstance(rule, dict):
                    self._refuse("scope.rules", rule)
            made = [dict(_rule(rule)) for rule in rules if isinstance(rule, dict)]
            self.put("scope.rules", made, "scope.rules")
            if any(rule["action"] == "allow" and _open_prefixes(rule.get("match", {})) for rule in made):
                self.remarks.append(
                    "a prefix of a rule that allows ends where a word of the key ends; with a * at its end it does not"
                )


class _Source:
    """OpenClaw's configuration, with the environment that it refers to."""

    def __init__(
        self, config: Mapping[str, Any], places: OpenClawPlaces, environ: Mapping[str, str], home: Path
    ) -> None:
        self.config = config
        self.places = places
        self.home = home
        self.file = str(places.config)
        self._environ = environ
        self.agents = agents_in(config, places, environ, home)
        self.names = tuple(self.agents)
        zone = find(config, ("agents", "defaults", "userTimezone"))
        self.timezone: Any = zone or ""

    def text(self, value: str) -> str:
        """Return a text with its environment variables substituted; unset ones stay as they are."""
        return _VARIABLE.sub(lambda found: self._environ.get(found[1], found[0]), value)

    def settings(self, table: Mapping[str, Any]) -> Leaves:
        """Return all memory settings that apply to an agent by dotted key; its own take precedence over those for all agents."""
        whole: Any = {}
        extra: list[Any] = []
        ways = (("memorySearch",), ("agents", "defaults", "memorySearch"), ("memory", "search"))
        for said in (
            *(find(self.config, way) for way in ways),
            *(find(table, way) for way in (("memorySearch",), ("memory", "search"))),
        ):
            if isinstance(said, dict):
                paths = said.get("extraPaths") or []
                extra += paths if isinstance(paths, list) else [paths]
                whole = merged(whole, said)
        memory = find(self.config, ("memory",))
        shared = (
            {key: value for key, value in memory.items() if key != "search"}
            if isinstance(memory, dict)
            else {}
        )
        leaves = dict(_leaves({**shared, **whole}))
        return {**leaves, "extraPaths": extra} if extra else leaves


def imported(
    config: Mapping[str, Any], places: OpenClawPlaces, environ: Mapping[str, str], home: Path
) -> tuple[dict[str, Any], list[str]]:
    """Return the tables of memd's configuration, and remarks on everything that they do not contain.

    Args:
        config: OpenClaw's configuration.
        places: The paths of this OpenClaw.
        environ: The environment, whose variables the configuration may name.
        home: The user's home directory.
    """
    source = _Source(config, places, environ, home)
    agents: dict[str, Any] = {}
    remarks: dict[str, list[str]] = {}
    beside = tuple(_beside(config))
    for name, (workspace, table) in source.agents.items():
        left = source.settings(table)
        if left.get("enabled") is False:
            remarks.setdefault("its memory search is turned off, so it is left out", []).append(name)
            continue
        if not _AGENT.fullmatch(name):
            remarks.setdefault("memd has no agents of such a name", []).append(name)
            continue
        agent = _Agent(name, Path(source.text(str(workspace))), left, source)
        agent.convert()
        agents[name] = agent.table
        for remark in (*agent.remarks, *beside):
            remarks.setdefault(remark, []).append(name)
    of_agents = [f"{', '.join(names)}: {remark}" for remark, names in remarks.items()]
    return {"agents": agents}, [*agents_left_out(config), *of_agents]


def _beside(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on settings outside of the memory section that concern memory."""
    if find(config, ("tools", "sessions", "visibility")) in {"self", "tree"}:
        yield "tools.sessions.visibility holds in OpenClaw itself, with memd's plugin, and for no other program that asks memd"
    bindings = config.get("bindings")
    for one in (config, *(bindings if isinstance(bindings, list) else ())):
        if find(one, ("session", "groupScope")) == "main":
            yield "session.groupScope leads groups into the main session, which memd's plugin therefore takes for a group"
            break


def _fault(table: Mapping[str, Any]) -> str | None:
    """Return the fault that memd finds in an agent's settings; None: they are valid."""
    try:
        parse(tomlkit.dumps({"agents": {"a": table}}), Path("/import.toml"), Path("/"))
    except ConfigError as error:
        return str(error).rpartition(": ")[2].replace("agents.a.", "")
    except ConvertError:
        return "a null in it has no counterpart"
    return None


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = f"{above}{key}"
        # A reference to a key is one value.
        if isinstance(value, dict) and not name.endswith("apiKey"):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _nested(key: str, value: Any) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return {first: _nested(rest, value) if rest else value}


def _open_prefixes(match: Mapping[Any, Any]) -> list[str]:
    """Return the keys of the prefixes that may end within a word of a session key for OpenClaw, and not for memd."""
    return [
        key
        for key in ("key_prefix", "raw_key_prefix")
        if isinstance(match.get(key), str) and not match[key].endswith((":", "*"))
    ]


def _rule(rule: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the items of a scope rule. A deny rule's prefix gets a ``*``, since OpenClaw's prefixes need not end at a word."""
    yield "action", rule.get("action")
    match = rule.get("match")
    names = {
        "channel": "channel",
        "chatType": "chat_type",
        "keyPrefix": "key_prefix",
        "rawKeyPrefix": "raw_key_prefix",
    }
    found = {names.get(key, key): value for key, value in match.items()} if isinstance(match, dict) else {}
    if rule.get("action") == "deny":
        for key in _open_prefixes(found):
            found[key] += "*"
    if found:
        yield "match", found
