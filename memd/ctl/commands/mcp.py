"""memd-ctl mcp: adds memd's tools to an MCP client, removes them, lists the clients that have them, and serves them over HTTP."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from memd.config.load import location
from memd.ctl.atomic_write import change_file
from memd.ctl.daemon_process import remark_if_not_running
from memd.ctl.failures import Failed, UsageError
from memd.ctl.integrations import clients
from memd.ctl.integrations.clients import CLIENTS, SERVER, McpClient
from memd.ctl.integrations.entry_edit import entry_alone, entry_in, with_entry, without_entry
from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.integrations.mcp_tokens import McpToken, McpTokens
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, shown, visible
from memd.ctl.output.terminal import Outcome
from memd_client.mcp.protocol import ToolServer
from memd_client.session_key import parse

_LISTING_S = 20.0  # for a client to list its servers, which it starts for that
_AT_ONCE = 3
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

State = Literal["connected", "set up", "fails", "no entry", "unreadable"]


class McpResult(msgspec.Struct, frozen=True):
    """The entry of memd in a client's configuration after the command, as --json prints it."""

    client: str
    file: str
    changed: bool
    command: list[str]


class McpClientState(msgspec.Struct, frozen=True):
    """Whether a client has memd's tools, as --json prints it."""

    client: str
    title: str
    file: str
    state: State  # connected: the client's own listing says so; set up: it has the entry
    command: list[str]  # of the entry
    why: str  # a remark on the state


def run_mcp(invocation: Invocation) -> Outcome:
    """Run the action of the command line."""
    options = invocation.options
    match options.action:
        case "status":
            return _status(invocation)
        case "serve":
            return _serve(invocation)
        case "token":
            return _token(invocation)
        case _:
            return _change(invocation)


def _change(invocation: Invocation) -> Outcome:
    """Add memd's entry to the client's configuration, remove it, or print it."""
    options = invocation.options
    client = CLIENTS[options.client]
    home = invocation.places.home
    file = clients.file_of(client, invocation.environ, home)
    name = visible(shown(file, home))
    if options.action == "uninstall":
        changed = change_file(
            file,
            lambda text: without_entry(client.syntax, text, client.way),
            name=name,
            by_hand=f"Take out {'.'.join(client.way)} yourself.",
        )
        text = f"{client.title} no longer starts memd; {name} has no entry for it."
        return Outcome(McpResult(options.client, str(file), changed, []), text)
    if options.trust and client.trusted is None:
        raise UsageError(f"--trust says nothing to {client.title}.", "It has its own way to approve tools.")
    if options.write:
        _check_writer(options.session_key)
    command = _command(invocation, client)
    values = clients.values_of(client, command, trust=options.trust)
    lines = entry_alone(client.syntax, client.way, values)
    if options.print:
        result = McpResult(options.client, str(file), changed=False, command=command)
        return Outcome(result, lines, (f"This belongs into {name}.", *_remarks(invocation, client)))

    def edit(text: str) -> str:
        old = entry_in(client.syntax, text, client.way)
        new = values if old is None else clients.kept_values(client, command, old, trust=options.trust)
        return with_entry(client.syntax, text, client.way, new)

    changed = change_file(file, edit, name=name, by_hand=f"Add this to it yourself:\n{lines}")
    text = (
        f"{client.title} starts memd from now on; {name} says so. Sessions that are open have to be started again."
        if changed
        else f"{client.title} starts memd already; {name} needed no change."
    )
    return Outcome(McpResult(options.client, str(file), changed, command), text, _remarks(invocation, client))


def _command(invocation: Invocation, client: McpClient) -> list[str]:
    writes = ["--write", client.title] if invocation.options.write else []
    return [*clients.own_command("memd-mcp", "memd_client.mcp"), *clients.own_flags(invocation), *writes]


def _check_writer(key: str | None) -> None:
    """Raise UsageError unless the session key is that of a conversation that only the owner reads."""
    if key is None or not parse(key).is_owner_private:
        raise UsageError(
            "--write needs the key of a private conversation.",
            "Add --session-key agent:main:main, or that of another agent.",
        )


def _remarks(invocation: Invocation, client: McpClient) -> tuple[str, ...]:
    """Return what is missing before the client can use memd."""
    running = remark_if_not_running(invocation.places, "start it with `memd-ctl up`.")
    remarks = (running, f"{client.title}: {client.needs}" if client.needs else None)
    return tuple(remark for remark in remarks if remark is not None)


def _token(invocation: Invocation) -> Outcome:
    """Print, list, replace or revoke tokens of an agent and a session key; a missing one is created."""
    options = invocation.options
    tokens, home = _tokens(invocation), invocation.places.home
    if options.list:
        found = tokens.all()
        lines = [
            f"agent {one.agent or '-'}, session key {one.session_key or '- (the owner)'}" for one in found
        ]
        kept = [{"agent": one.agent, "session_key": one.session_key} for one in found]
        return Outcome({"tokens": kept}, visible("\n".join(lines)) or "There is no token.")
    wanted = options.agent, options.session_key
    name = visible(shown(tokens.file(*wanted), home))
    if options.revoke:
        was_there = tokens.revoke(*wanted)
        text = f"The token in {name} is no longer valid." if was_there else "There was no such token."
        return Outcome({"file": str(tokens.file(*wanted)), "revoked": was_there}, text)
    old = None if options.rotate else tokens.find(*wanted)
    made = old or tokens.make(*wanted)
    remark = (
        f"It is kept in {name}; --rotate replaces it, --revoke ends it."
        if old
        else f"Made it, and kept it in {name}."
    )
    return Outcome(
        {"file": str(tokens.file(*wanted)), "token": made.token, "made": old is None}, made.token, (remark,)
    )


def _tokens(invocation: Invocation) -> McpTokens:
    file, _ = location(invocation.places.config, invocation.environ, invocation.places.home)
    return McpTokens(file.parent / "mcp-tokens")


def _serve(invocation: Invocation) -> Outcome:
    """Serve the tools over HTTP until a signal."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_http(invocation))
    return Outcome({"served": True})


async def _serve_http(invocation: Invocation) -> None:
    # Only this action needs them.
    from memd.ctl.integrations.mcp_http import ADDRESS, PATH, McpHttpServer  # noqa: PLC0415
    from memd_client.asynchronous import AsyncClient  # noqa: PLC0415
    from memd_client.mcp.server import Answers  # noqa: PLC0415

    def connect(token: McpToken) -> ToolServer:
        memd = AsyncClient(invocation.places.socket)
        return Answers(memd, agent=token.agent, session_key=token.session_key, max_chars=None).server()

    tokens, port = _tokens(invocation), invocation.options.port
    try:
        listening = await McpHttpServer(tokens, connect).listen(port)
    except OSError as error:
        hint = "--port names another one; 0 is any that is free."
        raise Failed("not_listening", f"{ADDRESS}:{port} cannot be used: {error.strerror}.", hint) from error
    stopped = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stopped.set)
    address = f"http://{ADDRESS}:{listening.sockets[0].getsockname()[1]}{PATH}"
    invocation.screen.note(
        f"memd's tools are at {address}, for {counted(len(tokens.all()), 'token')} (memd-ctl mcp token)."
    )
    remark = remark_if_not_running(invocation.places, "start it with `memd-ctl up`.")
    if remark is not None:
        invocation.screen.note(remark)
    await stopped.wait()
    listening.close()
    # Connections that wait for their next request end with the process.


def _status(invocation: Invocation) -> Outcome:
    """Return the state of each installed client; some of them are queried concurrently."""
    limit_s = _LISTING_S if invocation.options.timeout is None else invocation.options.timeout
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        states = [
            one for one in pool.map(lambda one: _state(invocation, one, limit_s), CLIENTS.values()) if one
        ]
    home = invocation.places.home
    widths = [
        max((len(text) for text in column), default=0) for column in zip(*map(_columns, states), strict=True)
    ]
    lines = [
        "  ".join(
            [
                *(text.ljust(width) for text, width in zip(_columns(one), widths, strict=True)),
                visible(shown(Path(one.file), home)) + (f": {one.why}" if one.why else ""),
            ]
        )
        for one in states
    ]
    text = "\n".join(lines) if lines else "No program is installed that memd-ctl mcp install knows."
    return Outcome({"clients": states}, text)


def _columns(one: McpClientState) -> tuple[str, str]:
    return one.title, one.state


def _state(invocation: Invocation, client: McpClient, limit_s: float) -> McpClientState | None:
    """Return whether a client has the tools; None: it is not installed."""
    environ, home = invocation.environ, invocation.places.home
    file = clients.file_of(client, environ, home)
    program = shutil.which(client.program, path=environ.get("PATH")) if client.program else None
    if program is None and not file.exists() and (file.parent == home or not file.parent.is_dir()):
        return None

    def state(is_so: State, why: str = "", command: list[str] | None = None) -> McpClientState:
        return McpClientState(client.name, client.title, str(file), is_so, command or [], why)

    try:
        entry = entry_in(client.syntax, file.read_text(encoding="utf-8"), client.way)
    except FileNotFoundError:
        entry = None
    except (OSError, NotEditable, UnicodeDecodeError) as error:
        why = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)
        return state("unreadable", why)
    if entry is None:
        return state("no entry", f"memd-ctl mcp install --client {client.name}")
    command = clients.command_of(client, entry)
    if not command or shutil.which(command[0], path=environ.get("PATH")) is None:
        return state(
            "fails", f"{visible(command[0])} is not there" if command else "its entry has no command", command
        )
    if program is None or not client.listing:
        return state("set up", "it has no list to ask", command)
    said = _listing([program, *client.listing], environ, limit_s)
    if said is None:
        return state("set up", f"its own list took longer than {limit_s:g} s", command)
    if re.search(rf"\b{SERVER}\b{client.connected}", said) is None:
        line = next((line.strip() for line in said.splitlines() if re.search(rf"\b{SERVER}\b", line)), "")
        return state(
            "fails", f"its own list says {visible(line)!r}" if line else "its own list has no memd", command
        )
    return state("connected" if client.is_tried else "set up", "", command)


def _listing(command: list[str], environ: Mapping[str, str], limit_s: float) -> str | None:
    """Return the output of a client's command about its servers; None: it timed out."""
    with subprocess.Popen(  # noqa: S603  the program is what the user installed
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environ),
        start_new_session=True,
    ) as process:
        try:
            out, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # This also ends servers that the client started and left running.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return _TERMINAL.sub("", out.decode("utf-8", "replace"))
