"""memd-ctl hook install and uninstall: have Claude Code call the hooks."""

import json
import shlex

import msgspec

from memd.ctl.call import Call
from memd.ctl.daemon.process import unanswered
from memd.ctl.integrations.claude_hooks import EVENTS, with_hooks, without_hooks
from memd.ctl.integrations.foreign_file import change
from memd.ctl.integrations.mcp_clients import claude_settings, flags, program
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.screen import Outcome


class HookResult(msgspec.Struct, frozen=True):
    """What Claude Code calls now."""

    client: str
    file: str
    changed: bool
    commands: dict[str, str]


def run(call: Call) -> Outcome:
    """Add the hooks to the settings, take them out, or print what would be added."""
    file = claude_settings(call.environ, call.places.home)
    name = visible(shown(file, call.places.home))
    if call.options.event == "uninstall":
        changed = change(
            file, without_hooks, name=name, by_hand="Take out the hooks that call memd-ctl yourself."
        )
        result = HookResult("claude", str(file), changed, {})
        return Outcome(result, f"Claude Code calls memd no more; {name} has no hook for it.")
    commands = {event: _command(call, hook) for event, hook in EVENTS.items()}
    snippet = json.dumps(json.loads(with_hooks("", commands)), indent=2, ensure_ascii=False) + "\n"
    if call.options.print:
        result = HookResult("claude", str(file), changed=False, commands=commands)
        return Outcome(result, snippet, (f"This belongs into {name}.",))
    changed = change(
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
    remark = unanswered(call.places, "start it with `memd-ctl up`. Until then the hooks say nothing.")
    return Outcome(
        HookResult("claude", str(file), changed, commands), text, () if remark is None else (remark,)
    )


def _command(call: Call, hook: str) -> str:
    """What the shell runs for an event."""
    return shlex.join([*program("memd-ctl", "memd.ctl"), "hook", hook, *_options(call, hook), *flags(call)])


def _options(call: Call, hook: str) -> list[str]:
    """What only one of the hooks knows."""
    if hook != "user-prompt":
        return []
    options = ["--sessions"] if call.options.sessions else []
    return (
        options
        if call.options.min_score is None
        else [*options, "--min-score", f"{call.options.min_score:g}"]
    )
