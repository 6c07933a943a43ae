"""The programs of agents: where each keeps its settings, the entry that starts memd's MCP server, and the hooks of Claude Code."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Literal

import msgspec
import tomlkit

from memd.ctl.atomic_write import change_file
from memd.ctl.daemon_process import remark_if_not_running
from memd.ctl.integrations import json_edit
from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome
from memd.sources.agent_homes import HomePlaces, openclaw_homes

SERVER = "memd"
"""The name that the server has with its clients."""


class McpClient(msgspec.Struct, frozen=True):
    """A program that starts MCP servers."""

    title: str
    file: Path
    way: tuple[str, ...]  # to the entry, in the file
    format: Literal["json", "toml"] = "json"
    transport: Literal["stdio", "local"] | None = None  # how an entry names that of a program, if it does
    joined: bool = False  # whether the arguments stand in one list with the command


def client_of(name: str, environ: Mapping[str, str], home: Path) -> McpClient:
    """A client that can be named on the command line, with the file of its user scope.

    Args:
        name: The client.
        environ: The environment of the process: each client has a variable that moves its files.
        home: The home directory of the user.
    """
    match name:
        case "claude":
            directory = _path_from(environ, "CLAUDE_CONFIG_DIR", home) or home
            return McpClient(
                "Claude Code", directory / ".claude.json", ("mcpServers", SERVER), transport="stdio"
            )
        case "codex":
            directory = _path_from(environ, "CODEX_HOME", home) or home / ".codex"
            return McpClient("Codex", directory / "config.toml", ("mcp_servers", SERVER), "toml")
        case "cursor":
            return McpClient("Cursor", home / ".cursor" / "mcp.json", ("mcpServers", SERVER))
        case "gemini":
            directory = (_path_from(environ, "GEMINI_CLI_HOME", home) or home) / ".gemini"
            return McpClient("Gemini CLI", directory / "settings.json", ("mcpServers", SERVER))
        case "openclaw":
            file = (
                _path_from(environ, "OPENCLAW_CONFIG_PATH", home)
                or _openclaw(environ, home) / "openclaw.json"
            )
            return McpClient("OpenClaw", file, ("mcp", "servers", SERVER))
        case "opencode":
            directory = (_path_from(environ, "XDG_CONFIG_HOME", home) or home / ".config") / "opencode"
            return McpClient(
                "opencode", directory / "opencode.json", ("mcp", SERVER), transport="local", joined=True
            )
        case "qwen":
            directory = _path_from(environ, "QWEN_HOME", home) or home / ".qwen"
            return McpClient("Qwen Code", directory / "settings.json", ("mcpServers", SERVER))
        case _:
            raise ValueError(name)


def claude_settings(environ: Mapping[str, str], home: Path) -> Path:
    """Where Claude Code keeps the hooks of its user."""
    directory = _path_from(environ, "CLAUDE_CONFIG_DIR", home) or home / ".claude"
    return directory / "settings.json"


def entry(client: McpClient, command: list[str]) -> dict[str, Any]:
    """The entry that has the client start a command."""
    fields: dict[str, Any] = (
        {"command": command} if client.joined else {"command": command[0], "args": command[1:]}
    )
    return fields if client.transport is None else {"type": client.transport, **fields}


def entry_snippet(client: McpClient, values: Mapping[str, Any]) -> str:
    """The entry as a file would have it that holds nothing else."""
    whole: Any = dict(values)
    for key in reversed(client.way):
        whole = {key: whole}
    if client.format == "toml":
        return tomlkit.dumps(whole)
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"


def _openclaw(environ: Mapping[str, str], home: Path) -> Path:
    """The home of the OpenClaw that is in use; of a profile that is named, also where it is not there yet."""
    first, *others = openclaw_homes(HomePlaces(environ, home))
    is_meant = environ.get("OPENCLAW_PROFILE", "") not in {"", "default"} or not others
    return first if is_meant else next((one for one in (first, *others) if one.is_dir()), first)


def _path_from(environ: Mapping[str, str], variable: str, home: Path) -> Path | None:
    value = environ.get(variable)
    if not value:
        return None
    return home / value[2:].lstrip("/") if value.startswith("~/") else Path(value)


def own_command(script: str, module: str) -> list[str]:
    """A console script of this installation; the module that it runs, where the script is not there."""
    # Beside the interpreter, whose own link is not followed: it would lead out of the virtual environment.
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), script)  # noqa: PTH100, PTH118, PTH120  as said
    return [path] if os.access(path, os.X_OK) else [os.path.abspath(sys.executable), "-m", module]  # noqa: PTH100  likewise


def own_flags(invocation: Invocation) -> list[str]:
    """What leads a command to this daemon, and to the conversation it is bound to."""
    options = invocation.options
    named = (
        ("--socket", str(invocation.places.socket)),
        ("--agent", options.agent),
        ("--session-key", options.session_key),
    )
    return [word for flag, value in named if value is not None for word in (flag, value)]


EVENTS: Mapping[str, str] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}
"""What Claude Code calls an event, and what memd-ctl hook does."""

_TIMEOUT_S = 5  # far more than a hook takes
_OPERATORS = frozenset("();<>|&`$")  # what a shell does not hand on as it is


def with_hooks(text: str, commands: Mapping[str, str]) -> str:
    """The settings with a command for each event; others that are there stay, and memd's own are replaced.

    Args:
        text: The settings.
        commands: What the shell runs, by what Claude Code calls the event.

    Raises:
        NotEditable: the text is not JSON, or its hooks are not in the form that Claude Code reads.
    """
    for event, command in commands.items():
        groups = _groups(json_edit.document(text), event)
        ours = next(_own_hooks(groups), None)
        if ours is None:
            hook = {"type": "command", "command": command, "timeout": _TIMEOUT_S}
            text = json_edit.with_value(text, ("hooks", event, len(groups)), {"hooks": [hook]})
        else:
            group, place = ours
            text = json_edit.with_value(text, ("hooks", event, group, "hooks", place, "command"), command)
    return text


def without_hooks(text: str) -> str:
    """The settings without memd's hooks, and without what only held them.

    Raises:
        NotEditable: as with_hooks.
    """
    if not text.strip():
        return text
    for event in EVENTS:
        while ours := next(_own_hooks(_groups(json_edit.document(text), event)), None):
            group, place = ours
            text = json_edit.without_value(text, ("hooks", event, group, "hooks", place))
            if not json_edit.find(json_edit.document(text), ("hooks", event, group, "hooks")):
                text = json_edit.without_value(text, ("hooks", event, group))
            if not json_edit.find(json_edit.document(text), ("hooks", event)):
                text = json_edit.without_value(text, ("hooks", event))
                if not json_edit.find(json_edit.document(text), ("hooks",)):
                    text = json_edit.without_value(text, ("hooks",))
    return text


def _groups(settings: Any, event: str) -> list[Any]:
    if not isinstance(settings, dict):
        raise NotEditable("it holds no object")
    groups = json_edit.find(settings, ("hooks", event))
    if groups is None:
        return []
    if not isinstance(groups, list):
        raise NotEditable(f"hooks.{event} must be a list there")
    return groups


def _own_hooks(groups: list[Any]) -> Iterator[tuple[int, int]]:
    """The places of memd's hooks: of the group, and within it."""
    for number, group in enumerate(groups):
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
            command = hook.get("command") if isinstance(hook, dict) else None
            if isinstance(command, str) and _is_own_hook(command):
                yield number, place


def _is_own_hook(command: str) -> bool:
    """Whether a command runs memd's hook and nothing else: one that a person has put together is the person's."""
    if _OPERATORS.intersection(command) or "\n" in command:
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation has no end
        return False
    program = words[:1] if words[1:3] != ["-m", "memd.ctl"] else ["memd-ctl"]
    events = (after for word, after in pairwise(words) if word == "hook")
    return [PurePath(one).name for one in program] == ["memd-ctl"] and next(events, None) in EVENTS.values()


class HookResult(msgspec.Struct, frozen=True):
    """The hooks that Claude Code has now, as --json prints it."""

    client: str
    file: str
    changed: bool
    commands: dict[str, str]


def change_hooks(invocation: Invocation) -> Outcome:
    """Add the hooks to the settings, take them out, or print what would be added."""
    file = claude_settings(invocation.environ, invocation.places.home)
    name = visible(shown(file, invocation.places.home))
    if invocation.options.event == "uninstall":
        changed = change_file(
            file, without_hooks, name=name, by_hand="Take out the hooks that call memd-ctl yourself."
        )
        result = HookResult("claude", str(file), changed, {})
        return Outcome(result, f"Claude Code calls memd no more; {name} has no hook for it.")
    commands = {event: _command(invocation, hook) for event, hook in EVENTS.items()}
    snippet = json.dumps(json.loads(with_hooks("", commands)), indent=2, ensure_ascii=False) + "\n"
    if invocation.options.print:
        result = HookResult("claude", str(file), changed=False, commands=commands)
        return Outcome(result, snippet, (f"This belongs into {name}.",))
    changed = change_file(
        file,
        lambda text: with_hooks(text, commands),
        name=name,
        by_hand=f"Add this to it yourself:\n{snippet}",
    )
    text = (
        f"Claude Code brings memory into its sessions from now on; {name} says so."
        if changed
        else f"Claude Code calls memd already; {name} was right."
    )
    remark = remark_if_not_running(
        invocation.places, "start it with `memd-ctl up`. Until then the hooks say nothing."
    )
    return Outcome(
        HookResult("claude", str(file), changed, commands), text, () if remark is None else (remark,)
    )


def _command(invocation: Invocation, hook: str) -> str:
    """What the shell runs for an event."""
    return shlex.join(
        [
            *own_command("memd-ctl", "memd.ctl"),
            "hook",
            hook,
            *_options(invocation, hook),
            *own_flags(invocation),
        ]
    )


def _options(invocation: Invocation, hook: str) -> list[str]:
    """Options that only the user-prompt hook has."""
    if hook != "user-prompt":
        return []
    options = ["--sessions"] if invocation.options.sessions else []
    return (
        options
        if invocation.options.min_score is None
        else [*options, "--min-score", f"{invocation.options.min_score:g}"]
    )
