"""Installs and removes memd's hooks in the settings of programs: which event runs which command."""

import json
import shlex
from collections.abc import Iterator, Mapping
from importlib import resources
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

import msgspec

from memd.ctl.atomic_write import change_file
from memd.ctl.daemon_process import remark_if_not_running
from memd.ctl.failures import Failed
from memd.ctl.integrations import json_edit
from memd.ctl.integrations.clients import CLIENTS, own_command, own_flags, place_of
from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome

_TIMEOUT_S = 5  # far longer than a hook takes
_OPERATORS = frozenset("();<>|&`$")  # characters that a shell interprets
_USUAL: Mapping[str, str] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}


class HookClient(msgspec.Struct, frozen=True, kw_only=True):
    """A program that runs hooks."""

    name: str  # as in CLIENTS
    files: tuple[str, ...]  # see McpClient.files
    # The program's name of an event -> the action of memd-ctl hook.
    events: Mapping[str, str] = msgspec.field(default_factory=lambda: _USUAL)
    timeout: int = _TIMEOUT_S  # in the program's unit
    comments: bool = False  # whether its file may contain comments
    needs: str = ""  # what the user has to do before the hooks run
    is_plugin: bool = False  # the file is a plugin that contains only memd

    @property
    def title(self) -> str:
        """The name of the program for people."""
        return CLIENTS[self.name].title


HOOK_CLIENTS: Mapping[str, HookClient] = {
    client.name: client
    for client in (
        HookClient(name="claude", files=("$CLAUDE_CONFIG_DIR/settings.json", "~/.claude/settings.json")),
        HookClient(
            name="codex",
            files=("$CODEX_HOME/hooks.json", "~/.codex/hooks.json"),
            events={name: hook for name, hook in _USUAL.items() if name != "SessionEnd"},
            needs="it runs a new hook only after you have reviewed it: start codex, and say /hooks.",
        ),
        HookClient(
            name="gemini",
            files=CLIENTS["gemini"].files,
            # Not SessionStart: with -p its text is put before the first message, which --resume then omits.
            events={
                "BeforeAgent": "user-prompt",
                "PreCompress": "pre-compact",
                "SessionEnd": "session-end",
            },
            timeout=_TIMEOUT_S * 1000,
            comments=True,
        ),
        HookClient(
            name="opencode",
            files=("$XDG_CONFIG_HOME/opencode/plugins/memd.js", "~/.config/opencode/plugins/memd.js"),
            events={
                "chat.message": "user-prompt",
                "first chat.message": "session-start",
                "experimental.session.compacting": "pre-compact",
            },
            is_plugin=True,
        ),
        # Its limits were in milliseconds and are now in seconds; from 1000 on it still reads milliseconds.
        HookClient(name="qwen", files=CLIENTS["qwen"].files, timeout=_TIMEOUT_S * 1000, comments=True),
    )
}
"""Every program with hooks, by its name."""

_PLUGIN = "opencode_plugin.js"
_PLUGIN_HEAD = "// memd: "
_PLUGIN_COMMANDS = "const COMMANDS = {}"


class HookResult(msgspec.Struct, frozen=True):
    """The hooks of a program after the command, as printed by --json."""

    client: str
    file: str
    changed: bool
    commands: dict[str, str]  # by the program's name of the event


def change_hooks(invocation: Invocation) -> Outcome:
    """Install the hooks, remove them, or print what would be installed."""
    client = HOOK_CLIENTS[invocation.options.client]
    file = place_of(client.files, invocation.environ, invocation.places.home)
    name = visible(shown(file, invocation.places.home))
    if invocation.options.event == "uninstall":
        changed = _remove(client, file, name)
        result = HookResult(client.name, str(file), changed, {})
        return Outcome(result, f"{client.title} calls memd no more; {name} has no hook for it.")
    words = {event: _command(invocation, hook) for event, hook in client.events.items()}
    commands = {event: shlex.join(command) for event, command in words.items()}
    if client.is_plugin:
        snippet = _plugin({client.events[event]: command for event, command in words.items()})
    else:
        whole = json.loads(with_hooks(client, "", commands))
        snippet = f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"
    if invocation.options.print:
        result = HookResult(client.name, str(file), changed=False, commands=commands)
        return Outcome(result, snippet, (f"This belongs into {name}.",))

    def edit(text: str) -> str:
        return _own_plugin(text, snippet) if client.is_plugin else with_hooks(client, text, commands)

    changed = change_file(file, edit, name=name, by_hand=f"Add this to it yourself:\n{snippet}")
    text = (
        f"{client.title} brings memory into its sessions from now on; {name} says so."
        if changed
        else f"{client.title} calls memd already; {name} needed no change."
    )
    running = remark_if_not_running(
        invocation.places, "start it with `memd-ctl up`. Until then the hooks say nothing."
    )
    remarks = (running, f"{client.title}: {client.needs}" if client.needs else None)
    return Outcome(
        HookResult(client.name, str(file), changed, commands),
        text,
        tuple(remark for remark in remarks if remark is not None),
    )


def _plugin(commands: Mapping[str, list[str]]) -> str:
    text = resources.files(__package__).joinpath(_PLUGIN).read_text(encoding="utf-8")
    return text.replace(_PLUGIN_COMMANDS, f"const COMMANDS = {json.dumps(commands)}")


def _own_plugin(old: str, new: str) -> str:
    if old and not old.startswith(_PLUGIN_HEAD):
        raise NotEditable("it is not the plugin that memd-ctl writes")
    return new


def _remove(client: HookClient, file: Path, name: str) -> bool:
    """Remove the hooks from a file; return whether there were any."""
    if not client.is_plugin:
        by_hand = "Take out the hooks that call memd-ctl yourself."
        return change_file(file, lambda text: without_hooks(client, text), name=name, by_hand=by_hand)
    try:
        if not file.read_text(encoding="utf-8").startswith(_PLUGIN_HEAD):
            raise Failed(
                "not_changed", f"{name} was left alone: it is not the plugin that memd-ctl writes.", ""
            )
        file.unlink()
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise Failed("not_changed", f"{name} cannot be removed: {error}.", "Remove it yourself.") from error
    return True


def with_hooks(client: HookClient, text: str, commands: Mapping[str, str]) -> str:
    """Return the settings with a command for each event; other hooks stay, and memd's own are replaced.

    Args:
        client: The program.
        text: Its settings.
        commands: Shell commands by the program's name of the event.

    Raises:
        NotEditable: the text is not JSON, or its hooks are not in the form that these programs read.
    """
    for event, command in commands.items():
        groups = _groups(client, text, event)
        ours = next(_own_hooks(groups), None)
        if ours is None:
            hook = {"type": "command", "command": command, "timeout": client.timeout}
            text = json_edit.with_value(
                text, ("hooks", event, len(groups)), {"hooks": [hook]}, comments=client.comments
            )
        else:
            group, place = ours
            text = json_edit.with_value(
                text, ("hooks", event, group, "hooks", place, "command"), command, comments=client.comments
            )
    return text


def without_hooks(client: HookClient, text: str) -> str:
    """Return the settings without memd's hooks, and without containers that become empty.

    Raises:
        NotEditable: see with_hooks.
    """
    if not text.strip():
        return text

    def without(*path: str | int) -> str:
        return json_edit.without_value(text, path, comments=client.comments)

    def holds(*path: str | int) -> bool:
        return bool(json_edit.find(json_edit.document(text, comments=client.comments), path))

    for event in client.events:
        while ours := next(_own_hooks(_groups(client, text, event)), None):
            group, place = ours
            text = without("hooks", event, group, "hooks", place)
            if not holds("hooks", event, group, "hooks"):
                text = without("hooks", event, group)
            if not holds("hooks", event):
                text = without("hooks", event)
                if not holds("hooks"):
                    text = without("hooks")
    return text


def _groups(client: HookClient, text: str, event: str) -> list[Any]:
    settings = json_edit.document(text, comments=client.comments)
    if not isinstance(settings, dict):
        raise NotEditable("it holds no object")
    groups = json_edit.find(settings, ("hooks", event))
    if groups is None:
        return []
    if not isinstance(groups, list):
        raise NotEditable(f"hooks.{event} must be a list there")
    return groups


def _own_hooks(groups: list[Any]) -> Iterator[tuple[int, int]]:
    """Yield the positions of memd's hooks: the index of the group, and the index within it."""
    for number, group in enumerate(groups):
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
            command = hook.get("command") if isinstance(hook, dict) else None
            if isinstance(command, str) and _is_own_hook(command):
                yield number, place


def _is_own_hook(command: str) -> bool:
    """Return whether a command runs only memd's hook; a composed command belongs to the user."""
    if _OPERATORS.intersection(command) or "\n" in command:
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quotation
        return False
    program = words[:1] if words[1:3] != ["-m", "memd.ctl"] else ["memd-ctl"]
    events = (after for word, after in pairwise(words) if word == "hook")
    return [PurePath(one).name for one in program] == ["memd-ctl"] and next(events, None) in _USUAL.values()


def _command(invocation: Invocation, hook: str) -> list[str]:
    """Return the command for an event."""
    own = own_command("memd-ctl", "memd.ctl")
    return [*own, "hook", hook, *_options(invocation, hook), *own_flags(invocation)]


def _options(invocation: Invocation, hook: str) -> list[str]:
    """Return options that only the user-prompt hook has."""
    if hook != "user-prompt":
        return []
    options = ["--sessions"] if invocation.options.sessions else []
    return (
        options
        if invocation.options.min_score is None
        else [*options, "--min-score", f"{invocation.options.min_score:g}"]
    )
