"""memd-ctl openclaw: makes memd the memory of OpenClaw, undoes that, and reports the state."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from memd.ctl.atomic_write import alone, change_file, make_private, write_text
from memd.ctl.daemon_process import find_answer, remark_if_not_running
from memd.ctl.failures import NOT_FOUND, Failed
from memd.ctl.integrations import json_edit, openclaw
from memd.ctl.integrations.clients import own_command
from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.integrations.openclaw import OpenClawPlaces, Undo
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome
from memd_client.messages import StatusReport

_VERSION_S = 20.0  # timeout of `openclaw --version`
_SCRATCH = ".memd-"  # prefix of temporary directories below OpenClaw's home

Files = Literal["current", "outdated", "missing", "foreign"]


class OpenClawChange(msgspec.Struct, frozen=True):
    """What was changed, as printed by --json."""

    config: str
    plugin: str
    changed: bool


class OpenClawAgent(msgspec.Struct, frozen=True):
    """An agent of OpenClaw, and whether memd serves it."""

    agent: str
    workspace: str
    served: bool  # memd has an agent of that name with the same workspace
    why: str = ""


class OpenClawStatus(msgspec.Struct, frozen=True):
    """Whether memd is OpenClaw's memory, as printed by --json."""

    config: str
    version: str | None  # of the openclaw on PATH
    files: Files
    loaded: bool
    enabled: bool
    slot: str
    socket: str | None
    daemon: bool
    agents: list[OpenClawAgent]
    works: bool


def run_openclaw(invocation: Invocation) -> Outcome:
    """Run the action of the command line."""
    places = openclaw.places_of(invocation.environ, invocation.places.home)
    if invocation.options.action == "status":
        return _status(invocation, places)
    # Under a lock: of two concurrent runs, one would record the other's changes as the original state.
    with alone(invocation.places.home):
        _clear(places)
        if invocation.options.action == "install":
            return _install(invocation, places)
        return _uninstall(invocation, places)


def _install(invocation: Invocation, places: OpenClawPlaces) -> Outcome:
    home = invocation.places.home
    if not places.home.is_dir() and _program(invocation) is None:
        raise Failed(
            "not_found",
            f"OpenClaw is not here: there is no {shown(places.home, home)}, and no program openclaw.",
            "Install OpenClaw (npm install -g openclaw), then run this again.",
            exit_code=NOT_FOUND,
        )
    _refuse_too_old(invocation, places)
    if _files(places) == "foreign":
        name = visible(shown(places.plugin, home))
        raise Failed("not_changed", f"{name} was left alone: it is not memd's plugin.", "Move it away.")
    was_missing = not os.path.lexists(places.config)
    before, steps = _undo(places), [""]
    made = tuple(map(str, _missing_parents(places.plugin)))

    def edit(text: str) -> str:
        nonlocal steps
        steps = _with_plugin(text, invocation, places)
        return steps[-1]

    # Edits that are impossible are found before a file is written, and the undo information is written before
    # the edit.
    name = visible(shown(places.config, home))
    by_hand = f"Add this to it yourself:\n{_by_hand(invocation, places)}"
    _check(places, edit, name, by_hand)
    undo = _undo_of(places, steps, before, made, was_missing=was_missing)
    files_changed = _files(places) != "current"
    if files_changed:
        _write_plugin(places, undo)
    elif undo != before:
        _write_undo(places, undo)
    seen = steps[0]
    changed = change_file(places.config, edit, name=name, by_hand=by_hand)
    if changed and steps[0] != seen:  # another program has written it meanwhile
        _write_undo(places, _undo_of(places, steps, before, made, was_missing=was_missing))
    text = (
        f"OpenClaw's memory is memd's from now on; {name} says so. A gateway that runs follows by itself."
        if changed
        else f"OpenClaw's memory is memd's already; {name} needed no change."
    )
    report = find_answer(invocation.places)
    remarks = [remark_if_not_running(invocation.places, "start it with `memd-ctl up`.")]
    if report is not None:
        agents = _agents(invocation, places, read_config(places), report)
        remarks += [f"{one.agent}: {one.why}" for one in agents if not one.served]
    return Outcome(
        OpenClawChange(str(places.config), str(places.plugin), changed or files_changed),
        text,
        tuple(remark for remark in remarks if remark is not None),
    )


def _undo_of(
    places: OpenClawPlaces, steps: list[str], before: Undo | None, made: tuple[str, ...], *, was_missing: bool
) -> Undo:
    undo = openclaw.undo_of(steps, str(places.plugin), before, was_missing=was_missing)
    return msgspec.structs.replace(undo, made=(*(before.made if before else ()), *made))


def _write_undo(places: OpenClawPlaces, undo: Undo) -> None:
    write_text(places.plugin / openclaw.UNDO, msgspec.json.encode(undo).decode())


def _clear(places: OpenClawPlaces) -> None:
    """Delete temporary directories of a killed installation."""
    for scratch in places.home.glob(f"{_SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _refuse_too_old(invocation: Invocation, places: OpenClawPlaces) -> None:
    """Fail if this version of OpenClaw would not start with the plugin in its configuration."""
    said = _version(invocation) or _last_version(places)
    if said is None or not openclaw.is_too_old(said):
        return
    oldest = ".".join(map(str, openclaw.OLDEST))
    raise Failed(
        "too_old",
        f"OpenClaw was left alone: memd can be the memory of {oldest} and later, and this one says {visible(said)}.",
        "Upgrade OpenClaw; or give it memd's tools beside its own memory: `memd-ctl mcp install --client openclaw`.",
    )


def _last_version(places: OpenClawPlaces) -> str | None:
    """Return the version that last wrote the configuration, if no program says one; None if unknown."""
    try:
        said = json_edit.find(openclaw.read_config(places.config), ("meta", "lastTouchedVersion"))
    except (OSError, UnicodeDecodeError, NotEditable):
        return None
    return said if isinstance(said, str) else None


def _uninstall(invocation: Invocation, places: OpenClawPlaces) -> Outcome:
    home, undo = invocation.places.home, _undo(places)
    name = visible(shown(places.config, home))
    changed = False
    if places.config.exists():
        changed = change_file(
            places.config,
            lambda text: openclaw.without_plugin(text, str(places.plugin), undo),
            name=name,
            by_hand='Take what is called memd out of its "plugins" yourself.',
        )
        if undo is not None and undo.was_missing and not places.config.read_text("utf-8").strip("{} \n"):
            places.config.unlink()
    left: tuple[str, ...] = ()
    match _files(places):
        case "missing":
            pass
        case "foreign":
            left = (f"{visible(shown(places.plugin, home))} was left alone: it is not memd's plugin.",)
        case _:
            changed = True
            shutil.rmtree(places.plugin)
            for directory in reversed(undo.made if undo else ()):
                with suppress(OSError):  # another program has put something there
                    Path(directory).rmdir()
    return Outcome(
        OpenClawChange(str(places.config), str(places.plugin), changed),
        f"OpenClaw has its own memory again; nothing in {name} is memd's.",
        left,
    )


def _status(invocation: Invocation, places: OpenClawPlaces) -> Outcome:
    home = invocation.places.home
    config = read_config(places)
    state = openclaw.state_in(config, str(places.plugin))
    report, files, version = find_answer(invocation.places), _files(places), _version(invocation)
    agents = _agents(invocation, places, config, report)
    own = str(invocation.places.socket)
    is_old = version is not None and openclaw.is_too_old(version)
    is_installed = files in {"current", "outdated"} and state.is_loaded and state.is_enabled and not is_old
    works = (
        is_installed
        and state.slot == openclaw.PLUGIN
        and report is not None
        and state.socket in {None, own}
        and any(one.served for one in agents)
    )
    said = {
        "current": "is there",
        "outdated": "is of another version of memd: `memd-ctl openclaw install`",
        "missing": "is not there: `memd-ctl openclaw install`",
        "foreign": f"is not memd's: {visible(shown(places.plugin, home))}",
    }
    lines = [
        f"OpenClaw: {'no program openclaw on the PATH' if version is None else visible(version)}, {visible(shown(places.config, home))}",
        f"Plugin: {said[files]}" + ("" if is_installed or files == "missing" else ", and is not loaded"),
        f"Memory slot: {visible(state.slot)}" + ("" if state.slot == openclaw.PLUGIN else ", not memd"),
        "Daemon: answers" if report is not None else "Daemon: does not answer: `memd-ctl up`",
    ]
    if is_old:
        lines.append(
            f"OpenClaw is older than {'.'.join(map(str, openclaw.OLDEST))}, and does not load the plugin"
        )
    if state.socket not in {None, own}:
        lines.append(f"Socket: the plugin asks {visible(str(state.socket))}, not {visible(own)}")
    for one in agents:
        name, workspace = visible(one.agent), visible(shown(Path(one.workspace), home))
        lines.append(f"Agent {name}: {workspace}" + (f": {one.why}" if one.why else ""))
    lines.append("OpenClaw's memory is memd's." if works else "OpenClaw's memory is not memd's.")
    result = OpenClawStatus(
        config=str(places.config),
        version=version,
        files=files,
        loaded=state.is_loaded,
        enabled=state.is_enabled,
        slot=state.slot,
        socket=state.socket,
        daemon=report is not None,
        agents=agents,
        works=works,
    )
    return Outcome(result, "\n".join(lines), exit_code=0 if works else 1)


def _agents(
    invocation: Invocation, places: OpenClawPlaces, config: dict[str, Any], report: StatusReport | None
) -> list[OpenClawAgent]:
    home = invocation.places.home
    found = openclaw.agents_in(config, places, invocation.environ, home)
    return [_agent(name, workspace, report, home) for name, (workspace, _) in found.items()]


def _agent(name: str, workspace: Path, report: StatusReport | None, home: Path) -> OpenClawAgent:
    if report is None:
        return OpenClawAgent(name, str(workspace), served=False)
    known = report.agents.get(name)
    if known is None:
        why = "memd has no agent of that name: `memd-ctl config import --from openclaw`"
        return OpenClawAgent(name, str(workspace), served=False, why=why)
    if os.path.realpath(known.workspace) != os.path.realpath(workspace):
        other = visible(shown(Path(known.workspace), home))
        why = f"memd's agent of that name has another workspace, {other}"
        return OpenClawAgent(name, str(workspace), served=False, why=why)
    return OpenClawAgent(name, str(workspace), served=True)


def read_config(places: OpenClawPlaces) -> dict[str, Any]:
    """Return OpenClaw's configuration; empty if there is none.

    Raises:
        Failed: it cannot be read.
    """
    if not os.path.lexists(places.config):
        return {}
    try:
        return openclaw.read_config(places.config)
    except (OSError, UnicodeDecodeError, NotEditable) as error:
        why = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
        raise Failed("unreadable", f"{places.config} cannot be read: {why}.") from error


def _check(places: OpenClawPlaces, edit: Any, name: str, by_hand: str) -> None:
    """Fail if the configuration cannot be edited."""
    try:
        text = places.config.read_text("utf-8") if os.path.lexists(places.config) else ""
        edit(text)
    except (NotEditable, UnicodeDecodeError) as error:
        raise Failed("not_changed", f"{name} was left alone: {error}.", by_hand) from error
    except OSError as error:
        raise Failed("not_changed", f"{name} cannot be read: {error.strerror}.", by_hand) from error


def _by_hand(invocation: Invocation, places: OpenClawPlaces) -> str:
    text = _with_plugin("", invocation, places)[-1]
    return json.dumps(json_edit.document(text), indent=2, ensure_ascii=False)


def _with_plugin(text: str, invocation: Invocation, places: OpenClawPlaces) -> list[str]:
    socket = str(invocation.places.socket)
    append = (
        [*own_command("memd-mcp", "memd_client.mcp"), "--socket", socket] if invocation.options.write else []
    )
    return openclaw.with_plugin(text, str(places.plugin), socket, append)


def _files(places: OpenClawPlaces) -> Files:
    """Return the state of the plugin's files, compared with those of this memd."""
    if not os.path.lexists(places.plugin):
        return "missing"
    try:
        package = json.loads((places.plugin / "package.json").read_bytes())
        if package["name"] != openclaw.PACKAGE:
            return "foreign"
        wanted = openclaw.plugin_files()
        there = {
            str(file.relative_to(places.plugin)): file.read_bytes()
            for file in places.plugin.rglob("*")
            if file.is_file() and file.name != openclaw.UNDO
        }
    except (OSError, ValueError, KeyError, TypeError):
        return "foreign"
    return "current" if there == wanted else "outdated"


def _undo(places: OpenClawPlaces) -> Undo | None:
    try:
        return msgspec.json.decode((places.plugin / openclaw.UNDO).read_bytes(), type=Undo)
    except (OSError, msgspec.MsgspecError):
        return None


def _write_plugin(places: OpenClawPlaces, undo: Undo) -> None:
    """Install the plugin's files by renaming a directory, as a gateway may be reading them."""
    make_private(places.plugin.parent)
    with tempfile.TemporaryDirectory(dir=places.home, prefix=_SCRATCH) as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        for name, content in openclaw.plugin_files().items():
            file = fresh / name
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.write_bytes(content)
        write_text(fresh / openclaw.UNDO, msgspec.json.encode(undo).decode())
        if places.plugin.exists():
            places.plugin.rename(old)
        fresh.rename(places.plugin)


def _missing_parents(directory: Path) -> list[Path]:
    """Return the missing parents of a directory, outermost first."""
    return [parent for parent in reversed(directory.parents) if not parent.exists()]


def _program(invocation: Invocation) -> str | None:
    return shutil.which("openclaw", path=invocation.environ.get("PATH"))


def _version(invocation: Invocation) -> str | None:
    """Return the version that the program prints; None if there is none."""
    program = _program(invocation)
    if program is None:
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        ended = subprocess.run(  # noqa: S603  the program is what the user installed
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
            check=False,
            env=dict(invocation.environ),
            stdin=subprocess.DEVNULL,
        )
        lines = [line.strip() for line in ended.stdout.splitlines() if line.strip()]
        return lines[-1] if lines else None
    return None
