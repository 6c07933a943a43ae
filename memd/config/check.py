"""Validates a configuration, with messages for the person who wrote it. Pure."""

import difflib
import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from memd.config import check_embedding, check_redaction
from memd.config.settings import (
    LEAST_LIMIT_MB,
    SECRETS,
    AgentSettings,
    Collection,
    DaemonSettings,
    IncludedMemory,
    Publish,
    Scope,
    SharedMemory,
    SharedServer,
)
from memd.config.toml_lines import Key
from memd.runtime.time_zones import zone_of

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Names of devices on Windows, with any suffix after a dot.
_DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]", re.IGNORECASE)
MEMORY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,3}")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Values of these keys are not quoted in messages, since they may be API keys or examples of secrets.
_UNSHOWN = SECRETS | {"allow", "extra"}
_ROOT: Mapping[str, type[msgspec.Struct] | None] = {
    "daemon": DaemonSettings,
    "defaults": AgentSettings,
    "agents": None,
    "shared": None,
}


class ConfigProblem(msgspec.Struct, frozen=True):
    """A fault in a configuration."""

    key: Key
    text: str  # a sentence that names the key


def dotted(key: Key) -> str:
    """Format a key as it is written: ``agents.main.scope.rules[0].action``."""
    written = ""
    for part in key:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            written += ("." if written else "") + (part if _BARE.fullmatch(part) else _quoted(part))
    return written


def document_problems(document: Mapping[str, Any]) -> Iterator[ConfigProblem]:
    """Yield the faults of single keys and values in a document, in its order."""
    for name, given in document.items():
        table = _ROOT.get(name)
        if table is not None:
            yield from _table_problems(given, table, (name,))
            if table is DaemonSettings:
                yield from _daemon_problems(given)
        elif name == "agents":
            yield from _agents_problems(given)
        elif name == "shared":
            yield from _shared_problems(given)
        else:
            yield _unknown((name,), _ROOT, {"daemon": DaemonSettings, "agents.main": AgentSettings})


def disagreements(settings: AgentSettings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield contradictions between values that are valid one by one.

    Yields:
        The keys concerned, relative to the agent, and a sentence about them.
    """
    chunking, hybrid = settings.chunking, settings.query.hybrid
    if chunking.overlap >= chunking.tokens:
        yield (
            (("chunking", "overlap"), ("chunking", "tokens")),
            f"overlap must be less than tokens; here overlap is {chunking.overlap} and tokens is {chunking.tokens}",
        )
    # With both weights 0, no order is defined.
    if hybrid.vector_weight + hybrid.text_weight == 0:
        yield (
            (("query", "hybrid", "vector_weight"), ("query", "hybrid", "text_weight")),
            "vector_weight and text_weight cannot both be 0: no result would be better than another",
        )
    try:
        zone_of(settings.timezone)
    except ValueError as error:
        yield (("timezone",),), str(error)
    if not settings.sources:
        yield (("sources",),), 'at least one source is needed, such as "memory"'
    if not all(text.strip() for text in settings.redact.allow):
        yield (("redact", "allow"),), "allow holds an empty text, which is part of every secret"
    for glob in settings.exclude:
        # An absolute glob is resolved like the paths that it is matched with.
        if ".." in glob.split("/") and not glob.startswith(("/", "~")):
            yield (
                (("exclude",),),
                f"the glob {_shown(glob)} of exclude matches nothing: no path below a root holds ..",
            )
    yield from _publish_disagreements(settings)
    yield from _scope_disagreements(settings.scope)
    yield from check_redaction.disagreements(settings)
    yield from check_embedding.disagreements(settings)


def _publish_disagreements(settings: AgentSettings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield what prevents an agent from publishing: above all, that secrets would be published."""
    publish, shared = settings.publish, settings.shared
    if settings.backend == "postgres" and not (shared.dsn_file and MEMORY_NAME.fullmatch(shared.memory)):
        yield (
            (("shared",), ("backend",)),
            'backend = "postgres" needs shared = { server = "team", memory = "alice/main" }, and a table [shared.team]',
        )
    if settings.backend != "postgres" and shared != SharedMemory():
        yield (("shared",),), 'shared says nothing without backend = "postgres"'
    yield from _include_disagreements(settings)
    if publish == Publish():
        return
    if not publish.to or not publish.dsn_file:
        yield (
            (("publish", "to"), ("publish",)),
            f"to must name a server, a table [shared.{publish.to if _AGENT_ID.fullmatch(publish.to) else 'team'}]",
        )
    if not MEMORY_NAME.fullmatch(publish.memory):
        yield (
            (("publish", "memory"), ("publish",)),
            f"memory must be a name such as alice/main, not {_shown(publish.memory)}",
        )
    if missing := {{"curated": "memory"}.get(one, one) for one in publish.sources} - {*settings.sources}:
        yield (
            (("publish", "sources"), ("sources",)),
            f"what is published must be among the sources of this agent, which lack {', '.join(sorted(missing))}",
        )
    if settings.redact.mode != "all":
        yield (
            (("publish", "to"), ("publish",)),
            'what is published must hold no secret: set mode = "all" in the table redact of this agent',
        )


def _include_disagreements(settings: AgentSettings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield what prevents searching other memories together with the agent's own."""
    at = (("include",), ("backend",))
    if settings.include and settings.backend != "builtin":
        yield at, 'include needs backend = "builtin"; another backend answers alone'
    for one in settings.include:
        if not one.dsn_file:
            yield at, f"{one.name} of include needs a table [shared.{one.server}]"
        if not MEMORY_NAME.fullmatch(one.memory):
            yield at, f"memory of include must be a name such as alice/main, not {_shown(one.memory)}"
        if (one.server, one.memory) == (settings.publish.to, settings.publish.memory):
            yield at, f"{one.name} of include is what this agent publishes: its own notes are searched anyway"


def _scope_disagreements(scope: Scope) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield scope rules that match no possible key: a deny rule among them would only seem to protect."""
    for number, rule in enumerate(scope.rules):
        wanted = rule.match
        at = (("scope", "rules"),)
        if wanted.channel is not None and (not wanted.channel or {*wanted.channel} & {*": *"}):
            yield (
                at,
                f"the channel of rule {number + 1} must be the name of a messenger, one word such as discord",
            )
        if (wanted.key_prefix or "").lower().startswith("agent:"):
            yield (
                at,
                (
                    f"the key_prefix of rule {number + 1} is compared with what follows agent:<id>: in a key; "
                    "write raw_key_prefix for the whole key"
                ),
            )
        for name, prefix in (("key_prefix", wanted.key_prefix), ("raw_key_prefix", wanted.raw_key_prefix)):
            if prefix is not None and ("*" in prefix[:-1] or prefix != prefix.strip()):
                yield at, f"the {name} of rule {number + 1} may have a * at its end, and no blank around it"


def missing_workspace(agent: str) -> ConfigProblem:
    """Return the fault that an agent has no workspace; only ``main`` has a default one."""
    return ConfigProblem(
        ("agents", agent), f"{dotted(('agents', agent))} needs a workspace: the directory of its notes"
    )


def _daemon_problems(given: Any) -> Iterator[ConfigProblem]:
    limit = given.get("memory_limit_mb") if isinstance(given, dict) else None
    if type(limit) is int and 0 < limit < LEAST_LIMIT_MB:
        yield ConfigProblem(
            ("daemon", "memory_limit_mb"),
            f"daemon.memory_limit_mb must be 0, which is no limit, or {LEAST_LIMIT_MB} and more, not {limit}: "
            "memd holds more than that without a note",
        )


def _agents_problems(given: Any) -> Iterator[ConfigProblem]:
    if not isinstance(given, dict):
        yield ConfigProblem(
            ("agents",), f"agents must hold a table for each agent, like [agents.main], not {_shown(given)}"
        )
        return
    seen: dict[str, str] = {}
    for agent, table in given.items():
        at = ("agents", agent)
        if not isinstance(table, dict):
            hint = f"; did you mean agents.main.{agent}?" if agent in _keys_of(AgentSettings) else ""
            yield ConfigProblem(
                at, f"{dotted(at)} must be a table, the settings of an agent of that name{hint}"
            )
            continue
        if not _AGENT_ID.fullmatch(agent):
            yield ConfigProblem(
                at,
                f"{dotted(at)} is not a name for an agent: 1 to 64 letters a-z, digits, - and _, "
                "beginning with a letter or digit (it names a file)",
            )
        elif _DEVICE.fullmatch(agent):
            yield ConfigProblem(
                at,
                f"{dotted(at)} is not a name for an agent: it names a file, and {agent} is a device on Windows",
            )
        # Each agent has files of its name, and some file systems ignore case.
        twin = seen.setdefault(agent.casefold(), agent)
        if twin != agent:
            yield ConfigProblem(
                at, f"{dotted(at)} and {dotted(('agents', twin))} differ only in capitals; rename one"
            )
        yield from _table_problems(table, AgentSettings, at)


def _shared_problems(given: Any) -> Iterator[ConfigProblem]:
    if not isinstance(given, dict):
        yield ConfigProblem(
            ("shared",), f"shared must hold a table for each server, like [shared.team], not {_shown(given)}"
        )
        return
    for name, table in given.items():
        at = ("shared", name)
        if not _AGENT_ID.fullmatch(name):
            yield ConfigProblem(
                at,
                f"{dotted(at)} is not a name: 1 to 64 letters a-z, digits, - and _, a letter or digit first",
            )
        yield from _table_problems(table, SharedServer, at)


def _table_problems(given: Any, table: type[msgspec.Struct], at: Key) -> Iterator[ConfigProblem]:
    if not isinstance(given, dict):
        yield ConfigProblem(at, f"{dotted(at)} must be a table{_but_not(given, at)}")
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(table)}
    # Settings of an agent are complete only together with [defaults].
    needed = (
        [] if table is AgentSettings else [field for field in msgspec.structs.fields(table) if field.required]
    )
    for field in needed:
        if field.name not in given:
            takes = _allowed(inspect.type_info(field.type))
            yield ConfigProblem(at, f"{dotted(at)} needs the key {field.name}: {takes}")
    for name, value in given.items():
        here = (*at, name)
        if name in fields:
            yield from _value_problems(value, fields[name], here)
        else:
            yield _unknown(here, fields, {"": table})


def _value_problems(given: Any, kind: Any, at: Key) -> Iterator[ConfigProblem]:
    info = inspect.type_info(kind)
    match info:
        case inspect.StructType(cls=cls) if cls is Collection and isinstance(given, str):
            # A collection given as its path alone.
            yield from _value_problems(given, Path, at)
        case inspect.StructType(cls=cls) if cls is IncludedMemory and isinstance(given, str):
            server, _, memory = given.partition(":")
            if not (_AGENT_ID.fullmatch(server) and MEMORY_NAME.fullmatch(memory)):
                yield ConfigProblem(
                    at,
                    f"{dotted(at)} must be a server and a memory, such as team:alice/main{_but_not(given, at)}",
                )
        case inspect.StructType():
            yield from _table_problems(given, info.cls, at)
        case inspect.VarTupleType() | inspect.DictType():
            yield from _members_problems(given, kind, at)
        case inspect.CustomType():  # Path: converted by load, not by msgspec
            fault = _path_fault(given)
            if fault:
                yield ConfigProblem(at, f"{dotted(at)} {fault}")
        case inspect.StrType() if at[-1] in {"api_key_file", "dsn_file"} and given and _path_fault(given):
            yield ConfigProblem(at, f"{dotted(at)} {_path_fault(given)}")
        case _:
            try:
                msgspec.convert(given, kind)
            except msgspec.ValidationError:
                yield ConfigProblem(
                    at,
                    f"{dotted(at)} must be {_allowed(info)}{_but_not(given, at)}{_nearest(given, info)}",
                )


def _members_problems(given: Any, kind: Any, at: Key) -> Iterator[ConfigProblem]:
    """Yield the faults in a list, or in a table whose keys are free."""
    member_type = next(one for one in reversed(typing.get_args(kind)) if one is not Ellipsis)
    match given, inspect.type_info(kind):
        case (list(), inspect.VarTupleType()):
            members: Iterable[tuple[str | int, Any]] = enumerate(given)
        case (dict(), inspect.DictType()):
            members = given.items()
        case _, info:
            yield ConfigProblem(at, f"{dotted(at)} must be {_allowed(info)}{_but_not(given, at)}")
            return
    for name, member in members:
        yield from _value_problems(member, member_type, (*at, name))


def _path_fault(given: Any) -> str | None:
    if not isinstance(given, str):
        return f"must be a path in quotes, not {_shown(given)}"
    if not given.strip():
        return "must be a path; it is empty"
    if "\0" in given:
        return "must be a path; it holds a NUL character"
    if check_embedding.is_address(given):
        return "must be a path on this machine, not an address"
    if given.startswith("~") and given[1:2] not in {"", "/"}:
        return "must begin with ~/ or / or a name: homes of other users are not looked up"
    if given.startswith("$"):
        return "must begin with ~/ or / or a name: variables are not looked up (./$name is a name)"
    return None


def _unknown(
    key: Key,
    known: Iterable[str],
    tables: Mapping[str, type[msgspec.Struct]],
) -> ConfigProblem:
    """Return the message for an unknown key, with the most similar known key.

    Args:
        key: The unknown key.
        known: The keys that are valid in its table.
        tables: Keys of other tables, by dotted key of the table.
    """
    name = str(key[-1])
    elsewhere = [path for prefix, table in tables.items() for path in _keys_of(table, prefix)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    near = near or [path for path in elsewhere if path.rpartition(".")[2] == name]
    near = near or [
        path for path in elsewhere if difflib.get_close_matches(name, [path.rpartition(".")[2]], cutoff=0.8)
    ]
    hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'nothing yet'}"
    return ConfigProblem(key, f"{dotted(key)} is not a key memd knows; {hint}")


@cache  # takes 10 ms for all settings of an agent
def _keys_of(table: type[msgspec.Struct], prefix: str = "") -> tuple[str, ...]:
    """Return the dotted keys of a table that hold values, including nested tables."""
    found: list[str] = []
    for field in msgspec.structs.fields(table):
        path = f"{prefix}.{field.name}" if prefix else field.name
        nested = inspect.type_info(field.type)
        found += _keys_of(nested.cls, path) if isinstance(nested, inspect.StructType) else [path]
    return tuple(found)


def _nearest(given: Any, info: inspect.Type) -> str:
    if not isinstance(given, str) or not isinstance(info, inspect.LiteralType):
        return ""
    near = difflib.get_close_matches(given.casefold(), [str(value) for value in info.values], n=1, cutoff=0.6)
    return f"; did you mean {_shown(near[0])}?" if near else ""


def _allowed(info: inspect.Type) -> str:
    """Describe the values that a type accepts."""
    match info:
        case inspect.BoolType():
            words = "true or false"
        case inspect.IntType():
            words = f"a whole number{_range(info)}"
        case inspect.FloatType():
            words = f"a number{_range(info)}"
        case inspect.LiteralType():
            *others, last = map(_shown, info.values)
            words = f"{', '.join(others)} or {last}" if others else last
        case inspect.VarTupleType(item_type=inspect.StructType(cls=cls)):
            short = {Collection: "paths or ", IncludedMemory: "names such as team:alice/main or "}
            words = f"a list of {short.get(cls, '')}tables"
        case inspect.VarTupleType():
            words = 'a list of texts in quotes, like ["one", "two"]'
        case inspect.DictType():
            words = 'a table of texts in quotes, like { name = "value" }'
        case inspect.UnionType():  # X | None: TOML has no null, so None means an absent key
            words = " or ".join(_allowed(one) for one in info.types if not isinstance(one, inspect.NoneType))
        case _:
            words = "text in quotes"
    return words


def _but_not(given: Any, at: Key) -> str:
    """Describe the given value; "" if it may be secret."""
    return "" if _UNSHOWN.intersection(at) else f", not {_shown(given)}"


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    if info.gt is not None:
        return f" above {info.gt:g}, up to {info.le:g}"
    return (
        f" from {info.ge} to {info.le}"
        if isinstance(info, inspect.IntType)
        else f" from {info.ge:g} to {info.le:g}"
    )


def _shown(given: Any) -> str:
    """Format a value as in TOML, truncated."""
    match given:
        case bool():
            return str(given).lower()
        case str():
            return "a key or an address" if check_embedding.may_be_secret(given) else _quoted(given)
        case datetime() | date() | time():
            return f"the time {given.isoformat()}"
        case int() | float():
            written = str(given)
            return written if len(written) <= 40 else f"a number of {len(written)} digits"
        case dict():
            return "a table"
        case _:
            return "a list"


def _quoted(text: str) -> str:
    short = text if len(text) <= 60 else text[:59] + "…"
    # A terminal would interpret control characters.
    return json.dumps(short, ensure_ascii=not short.isprintable())
