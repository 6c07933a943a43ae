"""memd-ctl config: check, show or write the configuration."""

import os
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from memd.config import Config
from memd.configfile.load import DEFAULT_WORKSPACE, load, location
from memd.ctl.atomic import write_text
from memd.ctl.call import Call
from memd.ctl.configedit import example
from memd.ctl.failures import Failed
from memd.ctl.screen import Outcome
from memd.ctl.words import counted, shown

_MASKED = "********"


def run(call: Call) -> Outcome:
    """Do what the second word says."""
    match call.options.action:
        case "check":
            return _check(call)
        case "show":
            return _show(call)
        case _:
            return _init(call)


def _check(call: Call) -> Outcome:
    config, home = _load(call), call.places.home
    missing = [
        f"The workspace of {name} does not exist yet: {shown(agent.workspace, home)}"
        for name, agent in sorted(config.agents.items())
        if not agent.workspace.is_dir()
    ]
    agents = f"{counted(len(config.agents), 'agent')} ({', '.join(sorted(config.agents))})"
    if config.file is None:
        usual, _ = location(None, call.environ, home)
        text = f"There is no {shown(usual, home)}: built-in defaults hold, {agents}."
    else:
        text = f"{shown(config.file, home)} is right: {agents}."
    file = None if config.file is None else str(config.file)
    return Outcome({"file": file, "agents": sorted(config.agents), "remarks": missing}, text, tuple(missing))


def _show(call: Call) -> Outcome:
    config = _load(call)
    data = effective(config)
    return Outcome(
        {"file": None if config.file is None else str(config.file), **data}, toml(data, config.file)
    )


def _init(call: Call) -> Outcome:
    home = call.places.home
    file, _ = location(call.places.config, call.environ, home)
    replaced = os.path.lexists(file)
    if replaced and not call.options.force:
        raise Failed(
            "exists",
            f"{shown(file, home)} is there already; it was left alone.",
            "--force replaces it. `memd-ctl config check` says whether it is right.",
        )
    write_text(file, example())
    workspace = Path(DEFAULT_WORKSPACE.replace("~", str(home), 1))
    is_there = workspace.is_dir()
    found = (
        f"It names the workspace of OpenClaw, which is there: {DEFAULT_WORKSPACE}."
        if is_there
        else f"It names {DEFAULT_WORKSPACE}, which is not there: change it, or run `memd-ctl up DIR`."
    )
    data = {
        "file": str(file),
        "replaced": replaced,
        "workspace": str(workspace),
        "workspace_exists": is_there,
    }
    return Outcome(data, f"Wrote {shown(file, home)}. {found}")


def effective(config: Config) -> dict[str, Any]:
    """The configuration in force as plain tables, keys of services masked."""
    tables: dict[str, Any] = _masked(
        msgspec.to_builtins({"daemon": config.daemon, "agents": config.agents}, enc_hook=str)
    )
    return tables


def toml(tables: dict[str, Any], file: Path | None) -> str:
    """Tables as a configuration file that means the same."""
    origin = "built-in defaults, no file" if file is None else str(file)
    return f"# {origin}\n{tomlkit.dumps(tables)}"


def _load(call: Call) -> Config:
    return load(call.places.config, call.environ, call.places.home)


def _masked(value: Any) -> Any:
    """A value without its secrets, nor what TOML cannot say: that something is not there."""
    if isinstance(value, dict):
        return {
            name: _MASKED if name == "api_key" and member else _masked(member)
            for name, member in value.items()
            if member is not None
        }
    if isinstance(value, (list, tuple)):
        return [_masked(member) for member in value]
    return value
