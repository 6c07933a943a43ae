"""Edits OpenClaw's configuration for memd's plugin, provides the plugin's files, and reads OpenClaw's agents.

The plugin is below OpenClaw's home, and a load path names it: of two plugins with a command `memory`,
OpenClaw takes the one with a load path. What an edit replaced is kept beside the plugin (`UNDO`), and no more
than that; it restores the file byte by byte, if nobody has changed it since.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

import memd
from memd.ctl.failures import Failed
from memd.ctl.integrations import json_edit
from memd.ctl.integrations.clients import CLIENTS, file_of, place_of
from memd.ctl.integrations.json_edit import NotEditable

PLUGIN = "memd"
"""The plugin's id."""
UNDO = "undo.json"
"""The file beside the plugin that tells how the configuration was before."""

OLDEST = (2026, 8, 2)
"""The oldest version of OpenClaw that loads the plugin, as its package.json says."""

PACKAGE = "memd-openclaw"
"""The name in the package.json of the plugin."""
_VERSION = re.compile(r"\b(20\d\d)\.(\d+)\.(\d+)")
_CLIENT = "node_modules/memd-client"
# Directory below client/ in a clone -> directory below the plugin's.
_SHIPPED = {"openclaw": "", "javascript": f"{_CLIENT}/"}
_KINDS = (".js", ".json", ".d.ts", ".md")
_MEMORY_OF_OPENCLAW = "memory-core"
_DEEPEST_INCLUDE = 10  # OpenClaw's own limit

Keys = tuple[str | int, ...]


class OpenClawPlaces(msgspec.Struct, frozen=True):
    """The paths of this user's OpenClaw."""

    home: Path
    config: Path

    @property
    def plugin(self) -> Path:
        """The directory of memd's plugin."""
        return self.home / "extensions" / PLUGIN


def places_of(environ: Mapping[str, str], home: Path) -> OpenClawPlaces:
    """Return the paths of the OpenClaw that is in use."""
    client = CLIENTS["openclaw"]
    # The home is the directory in which the file is by default, if no variable names the file.
    usual = place_of(client.files[1:], environ, home)
    return OpenClawPlaces(usual.parent, file_of(client, environ, home))


def version_of(said: str) -> tuple[int, ...] | None:
    """Return the version in OpenClaw's output, such as `OpenClaw 2026.9.6 (eb377ac)`; None if there is none."""
    found = _VERSION.search(said)
    return None if found is None else tuple(map(int, found.groups()))


def is_too_old(said: str) -> bool:
    """Return whether this version of OpenClaw does not load the plugin; it would reject the configuration and not start."""
    version = version_of(said)
    return version is not None and version < OLDEST


def plugin_files() -> dict[str, bytes]:
    """Return the files of the plugin, with the client that it uses, by path below its directory.

    They are beside the code in a wheel, and below client/ in a clone.

    Raises:
        Failed: they are in neither place.
    """
    files: dict[str, bytes] = {}
    for name, below in _SHIPPED.items():
        packaged = resources.files("memd") / "javascript" / name
        directory = packaged if packaged.is_dir() else Path(memd.__path__[0]).parent / "client" / name
        if not directory.is_dir():
            message = f"This installation of memd lacks its plugin for OpenClaw: there is neither {packaged} nor {directory}."
            raise Failed("broken_installation", message, "Install memd again.")
        files |= {
            f"{below}{one.name}": one.read_bytes()
            for one in directory.iterdir()
            if one.is_file() and one.name.endswith(_KINDS)
        }
    return files


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """How to restore the previous configuration."""

    digest: str = ""  # of the text that was written; `cuts` apply to that text only
    # (position, replaced text, length of the new text)
    cuts: tuple[tuple[int, str, int], ...] = ()
    was_missing: bool = False
    slot: str | None = None
    entry: dict[str, Any] | None = None
    was_allowed: bool = False  # by the list of allowed plugins
    made: tuple[str, ...] = ()  # directories created for the plugin


def with_plugin(text: str, directory: str, socket: str, append: Sequence[str] = ()) -> list[str]:
    """Return the configuration after each edit, up to the one in which the plugin is loaded, enabled and in the memory slot.

    Args:
        text: The configuration, which may be empty. It is the first item.
        directory: The plugin's directory.
        socket: The daemon's socket.
        append: The command that appends to notes; empty: the present setting stays.

    Raises:
        NotEditable: a person has to make the change.
    """
    plugins = _plugins(text)
    if plugins.get("enabled") is False:
        raise NotEditable('it turns all plugins off ("plugins.enabled": false)')
    if PLUGIN in (plugins.get("deny") or ()):
        raise NotEditable(f'it denies the plugin {PLUGIN} ("plugins.deny")')
    steps = [text]

    def put(value: str | bool | list[str] | dict[str, Any], *path: str | int) -> None:
        steps.append(json_edit.with_value(steps[-1], ("plugins", *path), value, comments=True))

    paths = json_edit.find(plugins, ("load", "paths")) or ()
    if directory not in paths:
        put(directory, "load", "paths", len(paths))
    allowed = plugins.get("allow") or ()
    if allowed and PLUGIN not in allowed:
        put(PLUGIN, "allow", len(allowed))
    put(True, "entries", PLUGIN, "enabled")
    put(socket, "entries", PLUGIN, "config", "socket")
    if append:
        put(list(append), "entries", PLUGIN, "config", "appendCommand")
    # OpenClaw's "dreaming" runs with any memory plugin, and reads its settings from that plugin: without a
    # copy of them, dreaming that was turned off would be on again.
    dreaming = json_edit.find(plugins, ("entries", _MEMORY_OF_OPENCLAW, "config", "dreaming"))
    if (
        isinstance(dreaming, dict)
        and json_edit.find(plugins, ("entries", PLUGIN, "config", "dreaming")) is None
    ):
        put(dreaming, "entries", PLUGIN, "config", "dreaming")
    put(PLUGIN, "slots", "memory")
    return steps


def undo_of(steps: list[str], directory: str, before: Undo | None, *, was_missing: bool) -> Undo:
    """Return how to restore the configuration without the plugin.

    Args:
        steps: The result of with_plugin.
        directory: The plugin's directory.
        before: The undo information of an earlier installation.
        was_missing: Whether there was no file.
    """
    cuts = tuple(_cut(old, new) for old, new in pairwise(steps) if old != new)
    plugins = _plugins(steps[0])
    slot, entry = (json_edit.find(plugins, path) for path in (("slots", "memory"), ("entries", PLUGIN)))
    if slot == PLUGIN or directory in (json_edit.find(plugins, ("load", "paths")) or ()):
        # The plugin is installed already: what it replaced is known from that installation, or not at all.
        if before is None:
            return Undo()
        if before.digest == _digest(steps[0]):
            return msgspec.structs.replace(before, digest=_digest(steps[-1]), cuts=(*before.cuts, *cuts))
        return before if not cuts else msgspec.structs.replace(before, digest="", cuts=())
    return Undo(
        digest=_digest(steps[-1]),
        cuts=cuts,
        was_missing=was_missing,
        slot=slot if isinstance(slot, str) else None,
        entry=entry if isinstance(entry, dict) else None,
        was_allowed=PLUGIN in (plugins.get("allow") or ()),
        made=before.made if before else (),
    )


def without_plugin(text: str, directory: str, undo: Undo | None) -> str:
    """Return the configuration without the plugin: byte by byte as before, if nobody has changed it since.

    Args:
        text: The configuration.
        directory: The plugin's directory.
        undo: How to restore it; None if that is unknown.

    Raises:
        NotEditable: a person has to make the change.
    """
    if undo is not None and undo.digest == _digest(text):
        for at, old, length in reversed(undo.cuts):
            text = text[:at] + old + text[at + length :]
        return text
    undo = undo or Undo()
    lists: list[tuple[Keys, str]] = [(("plugins", "load", "paths"), directory)]
    if not undo.was_allowed:
        lists.append((("plugins", "allow"), PLUGIN))
    for way, item in lists:
        while item in (items := _at(text, way) or []):
            text = _without(text, (*way, items.index(item)))
    slot, entry = ("plugins", "slots", "memory"), ("plugins", "entries", PLUGIN)
    if _at(text, slot) == PLUGIN:
        text = _restored(text, slot, undo.slot)
    return _restored(text, entry, undo.entry)


def _restored(text: str, path: Keys, value: str | dict[str, Any] | None) -> str:
    """Return the text with the previous value at a path; None: there was no value."""
    return _without(text, path) if value is None else json_edit.with_value(text, path, value, comments=True)


def _without(text: str, path: Keys) -> str:
    """Return the text without the value at a path, and without containers that become empty."""
    text = json_edit.without_value(text, path, comments=True)
    return _without(text, path[:-1]) if path[1:] and _at(text, path[:-1]) in ({}, []) else text


def _at(text: str, path: Keys) -> Any:
    return json_edit.find(json_edit.document(text, comments=True), path)


def _cut(old: str, new: str) -> tuple[int, str, int]:
    """Return the single difference of two texts: its position, the old text, and the length of the new text."""
    begin = _shared(old, new)
    end = _shared(old[begin:][::-1], new[begin:][::-1])
    return begin, old[begin : len(old) - end], len(new) - end - begin


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    unlike = (at for at, (letter, its) in enumerate(zip(one, other, strict=False)) if letter != its)
    return next(unlike, min(len(one), len(other)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plugins(text: str) -> dict[str, Any]:
    plugins = json_edit.find(json_edit.document(text, comments=True), ("plugins",))
    if isinstance(plugins, dict) and "$include" in plugins:
        raise NotEditable('its "plugins" stand in another file ("$include")')
    return plugins if isinstance(plugins, dict) else {}


class PluginState(msgspec.Struct, frozen=True):
    """The memory settings in OpenClaw's configuration."""

    slot: str  # the plugin that provides memory
    is_loaded: bool  # its directory is a load path
    is_enabled: bool
    socket: str | None


def state_in(config: Mapping[str, Any], directory: str) -> PluginState:
    """Return the state of the plugin in a configuration."""
    plugins = config.get("plugins")
    slot = json_edit.find(plugins, ("slots", "memory"))
    socket = json_edit.find(plugins, ("entries", PLUGIN, "config", "socket"))
    allowed = json_edit.find(plugins, ("allow",)) or [PLUGIN]
    is_off = (
        json_edit.find(plugins, ("enabled",)) is False
        or PLUGIN in (json_edit.find(plugins, ("deny",)) or ())
        or PLUGIN not in allowed
        or json_edit.find(plugins, ("entries", PLUGIN, "enabled")) is False
    )
    return PluginState(
        slot=slot if isinstance(slot, str) else _MEMORY_OF_OPENCLAW,
        is_loaded=directory in (json_edit.find(plugins, ("load", "paths")) or ()),
        is_enabled=not is_off,
        socket=socket if isinstance(socket, str) else None,
    )


def agents_in(
    config: Mapping[str, Any], places: OpenClawPlaces, environ: Mapping[str, str], home: Path
) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Return the workspace and the own table of each of OpenClaw's agents, by id; without any, there is one, main.

    Args:
        config: A configuration of an old (`agents.list`) or new (`agents.entries`) version.
        places: The paths of this OpenClaw.
        environ: The environment, which may name the workspace.
        home: The user's home directory.
    """
    tables = dict(_agent_tables(config)) or {"main": {}}
    marked = [name for name, table in tables.items() if table.get("default") is True]
    default = next(iter([*marked, *(["main"] if "main" in tables else []), *tables]))
    shared = json_edit.find(config, ("agents", "defaults", "workspace"))
    if not isinstance(shared, str):
        shared = json_edit.find(config, ("agent", "workspace"))  # in the first versions
    named = environ.get("OPENCLAW_WORKSPACE_DIR")

    def workspace(name: str, table: Mapping[str, Any]) -> Path:
        own = table.get("workspace")
        if isinstance(own, str) and own.strip():
            return expanded(own, home)
        if isinstance(shared, str) and shared.strip():
            return expanded(shared, home) / ("" if name == default else name)
        if name == default:
            return expanded(named, home) if named else places.home / "workspace"
        return places.home / f"workspace-{name}"

    return {name: (workspace(name, table), table) for name, table in tables.items()}


def agents_left_out(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on what a configuration says of agents, and `agents_in` does not return."""
    listed, entries = (json_edit.find(config, ("agents", name)) for name in ("list", "entries"))
    if listed is not None and not isinstance(listed, list):
        yield "agents.list is no list, and is left out"
    if entries is not None and not isinstance(entries, dict):
        yield "agents.entries is no table, and is left out"
    for number, table in enumerate(listed if isinstance(listed, list) else ()):
        if not (isinstance(table, dict) and isinstance(table.get("id"), str)):
            yield f"agents.list[{number}] has no id, and is left out"
    for name, number in Counter(name for name, _ in _agent_tables(config)).items():
        if number > 1:
            yield f"{name}: {number} agents have this id; only the last of them is taken over"


def _agent_tables(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed, entries = (json_edit.find(config, ("agents", name)) for name in ("list", "entries"))
    for table in listed if isinstance(listed, list) else ():
        if isinstance(table, dict) and isinstance(table.get("id"), str):
            yield table["id"].strip().lower(), table
    for name, table in (entries if isinstance(entries, dict) else {}).items():
        yield name.strip().lower(), table if isinstance(table, dict) else {}


def expanded(path: str, home: Path) -> Path:
    """Return a path of OpenClaw's configuration with ~ expanded."""
    path = path.strip()
    return home / path[2:] if path.startswith("~/") else home if path == "~" else Path(path)


def read_config(file: Path, depth: int = 0) -> dict[str, Any]:
    """Return a configuration with the files that it includes.

    Args:
        file: The configuration file.
        depth: How many files include it.

    Raises:
        NotEditable: it is not JSON5, or includes files without end.
        OSError, UnicodeDecodeError: it cannot be read.
    """
    if depth > _DEEPEST_INCLUDE:
        raise NotEditable("files include each other without end")
    found = json_edit.document(file.read_text("utf-8"), comments=True)
    return whole if isinstance(whole := _included(found, file, depth), dict) else {}


def _included(value: Any, file: Path, depth: int) -> Any:
    """Return a value with its includes resolved; keys beside an include take precedence."""
    if isinstance(value, list):
        return [_included(item, file, depth) for item in value]
    if not isinstance(value, dict):
        return value
    names = value.get("$include", ())
    whole: Any = {}
    for name in [names] if isinstance(names, str) else names:
        whole = merged(whole, read_config(file.parent / name, depth + 1))
    own = {key: _included(item, file, depth) for key, item in value.items() if key != "$include"}
    return merged(whole, own)


def merged(low: Any, high: Any) -> Any:
    """Merge two values of a configuration; the second takes precedence."""
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return high
    return {key: merged(low.get(key), high[key]) if key in high else low[key] for key in {**low, **high}}
