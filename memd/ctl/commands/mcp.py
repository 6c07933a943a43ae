"""memd-ctl mcp: add memd's tools to an MCP client, and take them out."""

from collections.abc import Callable

import msgspec

from memd.ctl.atomic_write import change_file
from memd.ctl.daemon_process import remark_if_not_running
from memd.ctl.integrations import json_edit, toml_edit
from memd.ctl.integrations.clients import McpClient, client_of, entry, entry_snippet, own_command, own_flags
from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome


class McpResult(msgspec.Struct, frozen=True):
    """The entry of memd that the client has now, as --json prints it."""

    client: str
    file: str
    changed: bool
    command: list[str]


def run_mcp(invocation: Invocation) -> Outcome:
    """Add the server to the client's configuration, take it out, or print what would be added."""
    options = invocation.options
    client = client_of(options.client, invocation.environ, invocation.places.home)
    name = visible(shown(client.file, invocation.places.home))
    if options.action == "uninstall":
        changed = change_file(
            client.file, _without(client), name=name, by_hand=f"Take out {'.'.join(client.way)} yourself."
        )
        text = f"{client.title} starts memd no more; {name} has no entry for it."
        return Outcome(McpResult(options.client, str(client.file), changed, []), text)
    command = [*own_command("memd-mcp", "memd_client.mcp"), *own_flags(invocation)]
    lines = entry_snippet(client, entry(client, command))
    if options.print:
        result = McpResult(options.client, str(client.file), changed=False, command=command)
        return Outcome(result, lines, (f"This belongs into {name}.", *_remarks(invocation)))
    by_hand = f"Add this to it yourself:\n{lines}"
    changed = change_file(client.file, _with(client, command), name=name, by_hand=by_hand)
    text = (
        f"{client.title} starts memd from now on; {name} says so. Sessions that are open have to be started again."
        if changed
        else f"{client.title} starts memd already; {name} was right."
    )
    return Outcome(McpResult(options.client, str(client.file), changed, command), text, _remarks(invocation))


def _with(client: McpClient, command: list[str]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        values = entry(client, command)
        if client.format == "toml":
            return toml_edit.with_values(text, (client.way[0], client.way[1]), values)
        old = json_edit.find(json_edit.document(text), client.way)
        if old is not None and not isinstance(old, dict):
            raise NotEditable(f"{'.'.join(client.way)} is no object there")
        if old is None:
            return json_edit.with_value(text, client.way, values)
        # What a person has added to the entry is theirs: a timeout, what is approved.
        for key, value in values.items():
            text = json_edit.with_value(text, (*client.way, key), value)
        return text

    return edit


def _without(client: McpClient) -> Callable[[str], str]:
    def edit(text: str) -> str:
        if client.format == "toml":
            return toml_edit.without_table(text, (client.way[0], client.way[1]))
        return json_edit.without_value(text, client.way) if text.strip() else text

    return edit


def _remarks(invocation: Invocation) -> tuple[str, ...]:
    """What is still missing before it works."""
    remark = remark_if_not_running(invocation.places, "start it with `memd-ctl up`.")
    return () if remark is None else (remark,)
