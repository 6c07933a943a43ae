"""From a configuration file to the settings of the daemon."""

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
_MAX_PROBLEMS = 50  # in one message
_MAX_COUNTED = 200  # for each unknown key the nearest known one is looked for, which takes a millisecond
_MOST_PARTS = 64  # of a key
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*+"|'[^']*+'""")
_DOTS = re.compile(rf"(?:\.[\s\w-]*+){{{_MOST_PARTS}}}")


class ConfigError(FatalError):
    """The configuration cannot be used; the message has a line for each problem."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=78)


class ConfigUnreadable(ConfigError):
    """The file is there and cannot be read, which says nothing of what is in it: another attempt may read it."""


def load(file: Path | None, environ: Mapping[str, str], home: Path) -> Config:
    """Read the configuration, wherever it is.

    Args:
        file: The file named on the command line, which goes before ``MEMD_CONFIG`` in the environment. Without
            both, the file at its usual place is read. Where that is missing, named or not, built-in defaults hold.
        environ: The environment. Only memd's own variables and ``XDG_CONFIG_HOME`` are looked at: what an agent's
            shell knows, a service started at login does not, and both must come to the same workspace.
        home: What ``~`` stands for.

    Raises:
        ConfigUnreadable: it cannot be read.
        ConfigError: it is wrong, or not there.
    """
    path, is_named = location(file, environ, home)
    if not is_named and not _stands(path):
        return _config({}, "", None, home)
    return parse(read(path, home), path, home)


def location(
    file: Path | None, environ: Mapping[str, str], home: Path, *, platform: str = sys.platform
) -> tuple[Path, bool]:
    """The absolute path of the configuration file, and whether it must exist: it is not the usual one, but was named."""
    usual = paths.config_file({**environ, "MEMD_CONFIG": ""}, platform, home)
    path = paths.config_file(environ, platform, home) if file is None else _expanded(str(file), home)
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps `..`
    return absolute, absolute != Path(os.path.abspath(usual))  # noqa: PTH100 - likewise


def read(file: Path, home: Path) -> str:
    """The text of a configuration file.

    Raises:
        ConfigUnreadable: it is there, and the system refuses to read it.
        ConfigError: there is none, or it is not a text of a sensible size.
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
        # UTF-16, as some editors save what they call Unicode, or no text at all.
        raise ConfigError(f"{shown} is UTF-16, or no text; save the file as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{line}: this is not UTF-8 text; save the file as UTF-8") from error


def leads_nowhere(link: Path) -> str:
    """What is wrong with a link to a file that is not there, and how to mend it."""
    return f"is a link to {os.path.realpath(link)}, which does not exist; make that file, or remove the link"


def parse(text: str, file: Path, home: Path) -> Config:
    """The configuration that a text means, as if it stood in a file.

    Raises:
        ConfigError: it is not TOML, or says something memd does not know.
    """
    return _config(document(text, _shown(file, home)), text, file, home)


def document(text: str, shown: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Args:
        text: What is in the file.
        shown: The name of the file for people.

    Raises:
        ConfigError: it is not TOML.
    """
    # A key of many parts takes the square of their number to read: half a minute for what fits in a file.
    deep = next((number for number, line in enumerate(text.split("\n"), 1) if _is_deep(line)), None)
    if deep is not None:
        raise ConfigError(f"{shown}:{deep}: no key of memd has that many parts")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # tomllib's own error is one, and so is that of a number with too many digits
        twice = repeated(text)
        if twice:
            raise ConfigError(_twice(twice, shown)) from error
        raise ConfigError(f"{shown} is not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{shown} is not a configuration of memd: it is nested too deeply") from None


def _is_deep(line: str) -> bool:
    """Whether a line holds more dots, with names between them, than any key of memd has."""
    return (
        line.count(".") >= _MOST_PARTS and _DOTS.search(_QUOTED.sub("", line).partition("#")[0]) is not None
    )


def _twice(given: Mapping[Key, list[int]], shown: str) -> str:
    """What to mend where keys stand several times; a line for each."""
    problems = []
    for key, found in sorted(given.items(), key=lambda item: item[1]):
        *others, last = map(str, found[:_MAX_PROBLEMS])
        problems.append(
            f"{shown}:{last}: {dotted(key)} stands there again, after line {', '.join(others)}; keep one"
        )
    return "\n".join(problems[:_MAX_PROBLEMS])


def _stands(path: Path) -> bool:
    """Whether there is something to read: also a dangling symlink or an unreadable directory, whose error says what is wrong."""
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
                # It needs no files here; what somebody puts there is searched while the server is away.
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
    """[defaults] with an agent's own table over it, key by key; the extra paths are those of both."""
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
        # `..` is taken as a shell's cd takes it, so that one directory has one name.
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
    """Settings in which what is published and searched knows the file with the DSN; where there is no such server, not."""
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
    """An included memory as a table."""
    if not isinstance(given, str):
        return given
    server, _, memory = given.partition(":")
    return {"server": server, "memory": memory}


def _with_collections(known: dict[str, Any], workspace: Path, home: Path) -> dict[str, Any]:
    """Settings with each collection of qmd a table, and its path one from the root on: it may be relative to the workspace."""
    qmd = known.get("qmd", {})
    if "collections" not in qmd:
        return known
    tables = [{"path": one} if isinstance(one, str) else one for one in qmd["collections"]]
    tables = [one | {"path": str(workspace / _expanded(one["path"], home))} for one in tables]
    return known | {"qmd": qmd | {"collections": tables}}


def _known(table: dict[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """A checked table without the keys that do nothing yet."""
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.name in table:
            value = table[field.name]
            known[field.name] = _known(value, field.type) if _is_table(field.type) else value
    return known


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _normalised(settings: AgentSettings) -> AgentSettings:
    """The same settings, the weights of keywords and vectors summing to 1."""
    query, hybrid = settings.query, settings.query.hybrid
    total = hybrid.vector_weight + hybrid.text_weight
    shares: Hybrid = msgspec.structs.replace(
        hybrid, vector_weight=hybrid.vector_weight / total, text_weight=hybrid.text_weight / total
    )
    return msgspec.structs.replace(settings, query=msgspec.structs.replace(query, hybrid=shares))


def _origin(keys: Iterable[Key], agent: str, tables: dict[str, Any]) -> Key:
    """The line of the first of these keys in the file: in the agent's table or in [defaults]."""
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
    # What is wrong in [defaults] is wrong for every agent, and said once.
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
    """The line of a key, or of the table around it; 0 where it is not known."""
    for length in range(len(key), 0, -1):
        if key[:length] in known:
            return known[key[:length]]
    return 0


def _expanded(path: str, home: Path) -> Path:
    """A path with ~ taken for the home directory."""
    return home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def _shown(file: Path, home: Path) -> str:
    """A file as a person would write it."""
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) and home != Path("/") else str(file)
