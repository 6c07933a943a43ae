"""Loads the configuration file into the settings of the daemon."""

import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from memd.config.check import ConfigProblem, disagreements, document_problems, dotted, missing_workspace
from memd.config.settings import AgentSettings, Config, DaemonSettings, Hybrid, SharedServer
from memd.config.toml_lines import Key, lines, repeated
from memd.errors import FatalError
from memd_client import paths

DEFAULT_WORKSPACE = "~/.openclaw/workspace"
_MAX_BYTES = 1024 * 1024
_MAX_PROBLEMS = 50  # shown in one message
_MAX_COUNTED = 200  # finding the nearest known key for an unknown one takes 1 ms each
_MOST_PARTS = 64  # parts of a dotted key
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*+"|'[^']*+'""")
_DOTS = re.compile(rf"(?:\.[\s\w-]*+){{{_MOST_PARTS}}}")


class ConfigError(FatalError):
    """The configuration is invalid; the message has a line for each problem."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=78)


class ConfigUnreadable(ConfigError):
    """The file exists but cannot be read now; its content is unknown, so a retry may succeed."""


def load(file: Path | None, environ: Mapping[str, str], home: Path) -> Config:
    """Load the configuration.

    Args:
        file: The file given on the command line, which takes precedence over ``MEMD_CONFIG``. Without both,
            the default path is used; if there is no file, built-in defaults apply.
        environ: The environment. Only memd's own variables and ``XDG_CONFIG_HOME`` are used: a service
            started at login lacks other variables of an agent's shell, and both must arrive at the same
            workspace.
        home: Replaces ``~``.

    Raises:
        ConfigUnreadable: the file cannot be read.
        ConfigError: the file is invalid, or was given and does not exist.
    """
    path, is_named = location(file, environ, home)
    if not is_named and not _stands(path):
        return _config({}, "", None, home)
    return parse(read(path, home), path, home)


def location(
    file: Path | None, environ: Mapping[str, str], home: Path, *, platform: str = sys.platform
) -> tuple[Path, bool]:
    """Return the absolute path of the configuration file, and whether it was given, so that it must exist."""
    usual = paths.config_file({**environ, "MEMD_CONFIG": ""}, platform, home)
    path = paths.config_file(environ, platform, home) if file is None else _expanded(str(file), home)
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps `..`
    return absolute, absolute != Path(os.path.abspath(usual))  # noqa: PTH100 - likewise


def read(file: Path, home: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigUnreadable: the file exists, and the system refuses to read it.
        ConfigError: there is no file, it is not text, or it is too large.
    """
    shown = _shown(file, home)
    try:
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError(f"{shown} is a directory; name a file, such as {shown}/config.toml")
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{shown} is not a regular file")
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if file.is_symlink():
            raise ConfigError(f"{shown} {leads_nowhere(file)}") from None
        raise ConfigError(
            f"{shown} does not exist; `memd-ctl config init` writes one to start from"
        ) from None
    except OSError as error:
        raise ConfigUnreadable(f"{shown} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{shown} is larger than 1 MiB; it cannot be a configuration of memd")
    if b"\0" in data:
        # UTF-16, which some editors call Unicode, or a binary file.
        raise ConfigError(f"{shown} is UTF-16, or no text; save the file as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{line}: this is not UTF-8 text; save the file as UTF-8") from error


def leads_nowhere(link: Path) -> str:
    """Return what is wrong with a link to a missing file, and how to fix it."""
    return f"is a link to {os.path.realpath(link)}, which does not exist; make that file, or remove the link"


def parse(text: str, file: Path, home: Path) -> Config:
    """Parse a configuration text as if it were in a file.

    Raises:
        ConfigError: it is not valid TOML, or contains something that memd does not know.
    """
    return _config(document(text, _shown(file, home)), text, file, home)


def document(text: str, shown: str) -> dict[str, Any]:
    """Parse a TOML text.

    Args:
        text: The content of the file.
        shown: The name of the file in messages.

    Raises:
        ConfigError: it is not valid TOML.
    """
    # tomllib takes quadratic time for a key of many parts: half a minute for one that fits into a file.
    deep = next((number for number, line in enumerate(text.split("\n"), 1) if _is_deep(line)), None)
    if deep is not None:
        raise ConfigError(f"{shown}:{deep}: no key of memd has that many parts")
    try:
        return tomllib.loads(text)
    # TOMLDecodeError is one, and so is the error for a number with too many digits.
    except ValueError as error:
        twice = repeated(text)
        if twice:
            raise ConfigError(_twice(twice, shown)) from error
        raise ConfigError(f"{shown} is not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{shown} is not a configuration of memd: it is nested too deeply") from None


def _is_deep(line: str) -> bool:
    """Return whether a line has more dots between names than any key of memd."""
    return (
        line.count(".") >= _MOST_PARTS and _DOTS.search(_QUOTED.sub("", line).partition("#")[0]) is not None
    )


def _twice(given: Mapping[Key, list[int]], shown: str) -> str:
    """Return the message about keys that occur several times, one line for each."""
    problems = []
    for key, found in sorted(given.items(), key=lambda item: item[1]):
        *others, last = map(str, found[:_MAX_PROBLEMS])
        problems.append(
            f"{shown}:{last}: {dotted(key)} occurs again, after line {', '.join(others)}; keep one"
        )
    return "\n".join(problems[:_MAX_PROBLEMS])


def _stands(path: Path) -> bool:
    """Return whether anything is at a path, including a dangling link or an unreadable directory."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _config(tables: dict[str, Any], text: str, file: Path | None, home: Path) -> Config:
    problems = list(islice(document_problems(tables), _MAX_COUNTED))
    agents: dict[str, AgentSettings] = {}
    servers: dict[str, SharedServer] = {}
    if not problems:
        base = file.parent if file is not None else home
        defaults = tables.get("defaults", {})
        servers = {name: _server(table, base, home) for name, table in tables.get("shared", {}).items()}
        for agent, table in (tables.get("agents") or {"main": {}}).items():
            merged = _merged(defaults, table)
            if "workspace" not in merged and merged.get("backend") == "postgres":
                # It needs no local files; notes in this directory are searched while the server is away.
                merged["workspace"] = str(base / f"memd-{agent}")
            elif "workspace" not in merged:
                if agent != "main":
                    problems.append(missing_workspace(agent))
                    continue
                merged["workspace"] = DEFAULT_WORKSPACE
            settings = _with_server(_settings(merged, base, home), servers)
            for keys, complaint in disagreements(settings):
                key = _origin(keys, agent, tables)
                problems.append(ConfigProblem(key, f"{dotted(key)}: {complaint}"))
            agents[agent] = settings
    if problems:
        assert file is not None, "built-in defaults are right"
        raise ConfigError(_report(problems, text, _shown(file, home)))
    return Config(
        daemon=msgspec.convert(_known(tables.get("daemon", {}), DaemonSettings), DaemonSettings),
        agents={agent: _normalised(settings) for agent, settings in agents.items()},
        shared=servers,
        file=file,
    )


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return an agent's table merged over [defaults], key by key; extra paths are concatenated."""
    merged = _overlaid(under, over)
    if "extra_paths" in merged:
        merged["extra_paths"] = [*under.get("extra_paths", ()), *over.get("extra_paths", ())]
    return merged


def _overlaid(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    overlaid = dict(under)
    for key, value in over.items():
        below = under.get(key)
        overlaid[key] = (
            _overlaid(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return overlaid


def _settings(merged: dict[str, Any], base: Path, home: Path) -> AgentSettings:
    def path(_: type, text: str) -> Path:
        # `..` is resolved textually, like a shell's cd, so that a directory has one name.
        return Path(os.path.normpath(base / _expanded(text, home)))

    known = _with_collections(_known(merged, AgentSettings), path(Path, merged["workspace"]), home)
    if "include" in known:
        known["include"] = [_included(one) for one in known["include"]]
    settings = msgspec.convert(known, AgentSettings, dec_hook=path)
    remote = settings.remote
    if remote.api_key_file:
        remote = msgspec.structs.replace(remote, api_key_file=str(path(Path, remote.api_key_file)))
    rerank = settings.rerank
    if rerank.api_key_file:
        rerank = msgspec.structs.replace(rerank, api_key_file=str(path(Path, rerank.api_key_file)))
    if rerank.provider == "onnx" and rerank.model:
        rerank = msgspec.structs.replace(rerank, model=str(path(Path, rerank.model)))
    publish, shared = settings.publish, settings.shared
    if publish.dsn_file:
        publish = msgspec.structs.replace(publish, dsn_file=str(path(Path, publish.dsn_file)))
    if shared.dsn_file:
        shared = msgspec.structs.replace(shared, dsn_file=str(path(Path, shared.dsn_file)))
    include = tuple(
        msgspec.structs.replace(one, dsn_file=str(path(Path, one.dsn_file))) if one.dsn_file else one
        for one in settings.include
    )
    sessions = msgspec.structs.replace(
        settings.sessions,
        presets=tuple(dict.fromkeys(settings.sessions.presets)),
        paths=tuple(dict.fromkeys(settings.sessions.paths)),
    )
    return msgspec.structs.replace(
        settings,
        remote=remote,
        rerank=rerank,
        publish=publish,
        shared=shared,
        include=tuple({one.name: one for one in include}.values()),
        sessions=sessions,
        extra_paths=tuple(dict.fromkeys(settings.extra_paths)),
        memory_presets=tuple(dict.fromkeys(settings.memory_presets)),
        sources=tuple(dict.fromkeys(settings.sources)),
    )


def _server(table: dict[str, Any], base: Path, home: Path) -> SharedServer:
    return SharedServer(dsn_file=Path(os.path.normpath(base / _expanded(table["dsn_file"], home))))


def _with_server(settings: AgentSettings, servers: Mapping[str, SharedServer]) -> AgentSettings:
    """Return settings with the DSN file of the named server filled in, if there is such a server."""
    publish, shared = settings.publish, settings.shared
    if publish.to in servers and not publish.dsn_file:
        publish = msgspec.structs.replace(publish, dsn_file=str(servers[publish.to].dsn_file))
    if shared.server in servers and not shared.dsn_file:
        shared = msgspec.structs.replace(shared, dsn_file=str(servers[shared.server].dsn_file))
    include = tuple(
        msgspec.structs.replace(one, dsn_file=str(servers[one.server].dsn_file))
        if one.server in servers and not one.dsn_file
        else one
        for one in settings.include
    )
    return msgspec.structs.replace(settings, publish=publish, shared=shared, include=include)


def _included(given: str | dict[str, Any]) -> dict[str, Any]:
    """Return an included memory as a table."""
    if not isinstance(given, str):
        return given
    server, _, memory = given.partition(":")
    return {"server": server, "memory": memory}


def _with_collections(known: dict[str, Any], workspace: Path, home: Path) -> dict[str, Any]:
    """Return settings in which each collection of qmd is a table, with its path resolved in the workspace."""
    qmd = known.get("qmd", {})
    if "collections" not in qmd:
        return known
    tables = [{"path": one} if isinstance(one, str) else one for one in qmd["collections"]]
    tables = [one | {"path": str(workspace / _expanded(one["path"], home))} for one in tables]
    return known | {"qmd": qmd | {"collections": tables}}


def _known(table: dict[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a checked table without keys that have no effect yet."""
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.name in table:
            value = table[field.name]
            known[field.name] = _known(value, field.type) if _is_table(field.type) else value
    return known


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _normalised(settings: AgentSettings) -> AgentSettings:
    """Return settings whose weights of keywords and vectors sum to 1."""
    query, hybrid = settings.query, settings.query.hybrid
    total = hybrid.vector_weight + hybrid.text_weight
    shares: Hybrid = msgspec.structs.replace(
        hybrid, vector_weight=hybrid.vector_weight / total, text_weight=hybrid.text_weight / total
    )
    return msgspec.structs.replace(settings, query=msgspec.structs.replace(query, hybrid=shares))


def _origin(keys: Iterable[Key], agent: str, tables: dict[str, Any]) -> Key:
    """Return the full path of the first of these keys that the file contains, in the agent's table or in [defaults]."""
    for above in (("agents", agent), ("defaults",)):
        for key in keys:
            value: Any = tables
            for part in (*above, *key):
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                return (*above, *key)
    raise AssertionError("built-in defaults agree with each other")


def _report(problems: Iterable[ConfigProblem], text: str, shown: str) -> str:
    known = lines(text)
    # A problem in [defaults] affects every agent, and is reported once.
    found = sorted({(_line(problem.key, known), problem.text) for problem in problems})
    problem_lines = [
        f"{shown}:{line}: {sentence}" if line else f"{shown}: {sentence}"
        for line, sentence in found[:_MAX_PROBLEMS]
    ]
    if len(found) > _MAX_PROBLEMS:
        more = "many" if len(found) == _MAX_COUNTED else len(found) - _MAX_PROBLEMS
        problem_lines.append(f"{shown}: and {more} more")
    return "\n".join(problem_lines)


def _line(key: Key, known: Mapping[Key, int]) -> int:
    """Return the line of a key, or of the table around it; 0 if unknown."""
    for length in range(len(key), 0, -1):
        if key[:length] in known:
            return known[key[:length]]
    return 0


def _expanded(path: str, home: Path) -> Path:
    """Return a path with ~ replaced by the home directory."""
    return home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def _shown(file: Path, home: Path) -> str:
    """Return a file's path for messages, with ~ for the home directory."""
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) and home != Path("/") else str(file)
