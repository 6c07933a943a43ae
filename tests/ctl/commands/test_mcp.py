"""memd-ctl mcp."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memd.ctl.arguments import MCP_CLIENTS
from memd.ctl.integrations.clients import CLIENTS, command_of
from memd.ctl.integrations.entry_edit import entry_in
from tests.ctl.conftest import Run
from tests.daemon.process import Daemon

FILES = {
    "amp": ".config/amp/settings.json",
    "claude": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cline": ".cline/data/settings/cline_mcp_settings.json",
    "codex": ".codex/config.toml",
    "copilot": ".copilot/mcp-config.json",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "goose": ".config/goose/config.yaml",
    "openclaw": ".openclaw/openclaw.json",
    "opencode": ".config/opencode/opencode.json",
    "qwen": ".qwen/settings.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
}
OLD = {
    "amp": '{\n  "amp.mcpServers": {"other": {"command": "x"}}, // mine\n}\n',
    "claude": '{\n  "numStartups": 1.0,\n  "mcpServers": {"other": {"command": "x"}}\n}',
    "claude-desktop": '{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  },\n  "theme": "x"\n}\n',
    "cline": '{"mcpServers": {"other": {"transport": {"type": "stdio"}}}}',
    "codex": 'model = "o5" # good\n\n[mcp_servers.other]\ncommand = "x"\n',
    "copilot": '{\n  "mcpServers": {\n    "other": {"tools": ["*"]}\n  }\n}\n',
    "cursor": '{"mcpServers":{"other":{"command":"x"}}}\n',
    "gemini": '{\r\n\t"theme": "Default",\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "x"}\r\n\t}\r\n}\r\n',
    "goose": "GOOSE_MODEL: x\nextensions:\n  other:\n    type: builtin\n\n# end\nZ: 1\n",
    "openclaw": '{\n    "agents": {},\n    "mcp": {\n        "servers": {\n            "other": {}\n        }\n    }\n}\n',
    "opencode": '{\n  "$schema": "x",\n  "mcp": {"other": {"type": "local", "command": ["x"]}}\n}\n',
    "qwen": '{"mcpServers":{"other":{"command":"x"}}, "$version": 4}\n',
    "vscode": '{\n\t// servers\n\t"servers": {\n\t\t"other": {}, // x\n\t},\n\t"inputs": [],\n}\n',
    "windsurf": '{\n  "mcpServers": {\n    "other": {}\n  }\n}\n',
    "zed": '// Zed settings\n//\n{\n  "theme": "One Dark",\n  "context_servers": {\n    "other": {}, // mine\n  },\n}\n',
}


@pytest.fixture(autouse=True)
def _usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AMP_SETTINGS_FILE",
        "CLAUDE_CONFIG_DIR",
        "CLINE_DATA_DIR",
        "CLINE_DIR",
        "CLINE_MCP_SETTINGS_PATH",
        "COPILOT_HOME",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "OPENCLAW_STATE_DIR",
        "OPENCLAW_CONFIG_PATH",
        "QWEN_HOME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(name, raising=False)


def put(home: Path, client: str, text: str) -> Path:
    """Write the file of a client."""
    file = home / FILES[client]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def entry_of(file: Path, name: str) -> dict[str, Any]:
    """Memd's entry in the file of a client, with the command and its arguments where most have them."""
    client = CLIENTS[name]
    entry = entry_in(client.syntax, file.read_text(encoding="utf-8"), client.way)
    assert entry is not None
    command, *arguments = command_of(client, entry)
    return {**entry, "command": command, "args": arguments}


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_an_entry_is_added_once_and_taken_out(run: Run, home: Path, address: Path, client: str) -> None:
    """What else is in the file stays byte by byte, also where the entry changes later."""
    file = put(home, client, OLD[client])
    code, out, err = run("mcp", "install", "--client", client)
    assert code == 0
    assert f"~/{FILES[client]}" in out
    assert f"No memd daemon answers at {address} yet" in err
    entry = entry_of(file, client)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["--socket", str(address)]
    installed = file.read_bytes()
    assert run("mcp", "install", "--client", client).out.endswith("needed no change.\n")
    assert file.read_bytes() == installed
    run("mcp", "install", "--client", client, "--agent", "work", "--session-key", "agent:work:main")
    assert entry_of(file, client)["args"][2:] == ["--agent", "work", "--session-key", "agent:work:main"]
    assert run("mcp", "uninstall", "--client", client).code == 0
    assert file.read_bytes() == OLD[client].encode()


def test_the_rest_of_an_entry_stays_byte_by_byte(run: Run, home: Path) -> None:
    """What somebody wrote on one line stays on one."""
    old = '{\n  "mcpServers": {\n    "memd": {\n      "env": {"A": "b"}, "command": "old"\n    }\n  }\n}\n'
    file = put(home, "claude", old)
    assert run("mcp", "install", "--client", "claude").code == 0
    assert '      "env": {"A": "b"}, "command": "/' in file.read_text(encoding="utf-8")
    assert entry_of(file, "claude")["args"][0] == "--socket"


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_a_missing_file_is_made(run: Run, home: Path, client: str) -> None:
    """For a program that was not started yet; taking out of a missing one makes none."""
    assert run("mcp", "uninstall", "--client", client).code == 0
    assert not (home / FILES[client]).exists()
    assert run("mcp", "install", "--client", client).code == 0
    assert entry_of(home / FILES[client], client)["command"]


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_print_changes_nothing(run: Run, home: Path, client: str) -> None:
    """It prints what could be pasted, and where."""
    code, out, err = run("mcp", "install", "--client", client, "--print")
    assert code == 0
    assert f"This belongs into ~/{FILES[client]}." in err
    assert not (home / FILES[client]).exists()
    pasted = put(home, client, out)
    before = pasted.read_bytes()
    assert run("mcp", "install", "--client", client).out.endswith("needed no change.\n")
    assert pasted.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude", '{\n  // mine\n  "theme": "x"\n}\n'),
        ("goose", "extensions: {other: {type: builtin}}\n"),
        ("zed", '{"context_servers": {"memd": {"command": /* mine */ {"path": "x" /* y */}}}}'),
        ("openclaw", "{ agents: {}, mcp } // JSON5\n"),
        ("cursor", '{"mcpServers": '),
        ("claude", '{"mcpServers": []}'),
        ("claude", '{"mcpServers": {"memd": "x"}}'),
        ("codex", "model = \n"),
        ("codex", "mcp_servers = 1\n"),
    ],
)
@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_file_that_cannot_be_changed_is_left_alone(
    run: Run, home: Path, client: str, text: str, json_wanted: bool
) -> None:
    """With the reason, and the entry to paste."""
    file = put(home, client, text)
    code, out, err = run("mcp", "install", "--client", client, *(["--json"] if json_wanted else []))
    assert code == 1
    assert file.read_bytes() == text.encode()
    if json_wanted:
        error = json.loads(out)["error"]
        assert error["type"] == "not_changed"
        said = error["message"] + error["hint"]
    else:
        assert out == ""
        said = err
    assert f"~/{FILES[client]} was left alone" in said
    assert "Add this to it yourself" in said
    assert "memd-mcp" in said


def test_what_a_person_added_to_the_entry_is_kept(run: Run, home: Path) -> None:
    """Only what starts memd is memd's."""
    file = put(
        home, "cursor", '{"mcpServers": {"memd": {"command": "old", "env": {"A": "b"}, "disabled": true}}}'
    )
    run("mcp", "install", "--client", "cursor")
    entry = entry_of(file, "cursor")
    assert (entry["env"], entry["disabled"]) == ({"A": "b"}, True)
    assert entry["command"] != "old"


def test_a_variable_of_the_client_moves_its_file(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the client itself looks."""
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    run("mcp", "install", "--client", "codex")
    assert entry_of(home / "elsewhere" / "config.toml", "codex")["command"]
    assert not (home / ".codex").exists()


def test_the_outcome_as_json(run: Run, home: Path, address: Path) -> None:
    """For programs that install for others."""
    data = json.loads(run("mcp", "install", "--client", "claude", "--json").out)["data"]
    assert (data["client"], data["file"], data["changed"]) == ("claude", str(home / ".claude.json"), True)
    assert data["command"][1:] == ["--socket", str(address)]


@pytest.mark.parametrize(
    "argv", [["install"], ["install", "--client", "emacs"], ["uninstall", "--client", "codex", "--print"], []]
)
def test_what_makes_no_sense_is_refused(run: Run, argv: list[str]) -> None:
    """With the status for it."""
    assert run("mcp", *argv).code == 2


@pytest.mark.parametrize(("client", "trusted"), [("gemini", True), ("qwen", True), ("zed", None)])
def test_a_client_may_be_told_not_to_ask(run: Run, home: Path, client: str, trusted: bool | None) -> None:
    """Where it has a setting for that; once it is there, it stays."""
    code, _, err = run("mcp", "install", "--client", client, "--trust")
    if trusted is None:
        assert (code, "--trust says nothing to Zed" in err) == (2, True)
        return
    assert entry_of(home / FILES[client], client)["trust"] is True
    assert run("mcp", "install", "--client", client).out.endswith("needed no change.\n")
    assert entry_of(home / FILES[client], client)["trust"] is True


@pytest.mark.parametrize(("client", "said"), [("gemini", "--trust"), ("openclaw", "plugins.slots.memory")])
def test_what_else_a_client_needs_is_told(run: Run, client: str, said: str) -> None:
    """Its tools would not be there, and nobody would know why."""
    assert said in run("mcp", "install", "--client", client).err


@pytest.mark.parametrize("client", ["claude", "codex", "zed", "goose"])
def test_a_link_stays_and_what_it_leads_to_is_changed(run: Run, home: Path, client: str) -> None:
    """As people have it who keep their settings in a repository."""
    real = home / "dotfiles" / "settings"
    real.parent.mkdir()
    real.write_text(OLD[client], encoding="utf-8")
    link = home / FILES[client]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(real)
    assert run("mcp", "install", "--client", client).code == 0
    assert link.is_symlink()
    assert entry_of(real, client)["command"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("client", ["claude", "codex", "zed", "goose"])
def test_a_directory_that_may_not_be_written_to(run: Run, home: Path, client: str) -> None:
    """One message, and the entry to paste."""
    file = put(home, client, OLD[client])
    file.parent.chmod(0o500)
    try:
        code, _, err = run("mcp", "install", "--client", client)
    finally:
        file.parent.chmod(0o700)
    assert (code, "cannot be written" in err, "Add this to it yourself" in err) == (1, True, True)
    assert file.read_bytes() == OLD[client].encode()


# --- status


def _program(home: Path, name: str, script: str) -> None:
    """Put a program on the PATH that does as a script has it."""
    file = home / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture
def bin_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the programs of a test, and with nothing that is installed here."""
    monkeypatch.setenv("PATH", str(home / "bin"))
    return home


def states(run: Run, *argv: str) -> dict[str, tuple[str, str]]:
    """What `mcp status` says of each client: the state, and why."""
    clients = json.loads(run("mcp", "status", "--json", *argv).out)["data"]["clients"]
    return {client["client"]: (client["state"], client["why"]) for client in clients}


def test_what_is_not_installed_is_not_listed(run: Run, bin_only: Path) -> None:
    """Of nothing at all, that is said."""
    assert states(run) == {}
    assert run("mcp", "status").out == "No program is installed that memd-ctl mcp install knows.\n"


@pytest.mark.parametrize(
    ("client", "script", "state", "why"),
    [
        ("claude", "echo 'memd: /x --socket /s - ✔ Connected'", "connected", ""),
        ("claude", "printf '\\033[32mmemd\\033[0m: /x - \\033[1mConnected\\033[0m\\n'", "connected", ""),
        (
            "claude",
            "echo 'other: - Connected'; echo 'memd: /x - Failed to connect'",
            "fails",
            "Failed to connect",
        ),
        ("claude", "echo 'no servers'", "fails", "has no memd"),
        ("claude", "exit 3", "fails", "has no memd"),
        ("claude", "while :; do :; done", "set up", "took longer than 1 s"),
        ("codex", "echo 'memd  /x  -  -  enabled'", "set up", ""),
        ("codex", "echo 'memd  /x  -  -  disabled'", "fails", "disabled"),
        ("goose", "exit 1", "set up", "no list"),
    ],
)
def test_its_own_listing_decides(
    run: Run, bin_only: Path, client: str, script: str, state: str, why: str
) -> None:
    """Where it starts its servers, as connected; one that does not end is ended."""
    _program(bin_only, client, script)
    assert states(run)[client][0] == "no entry"
    assert run("mcp", "install", "--client", client).code == 0
    found = states(run, "--timeout", "1" if "while" in script else "20")[client]
    assert (found[0], why in found[1]) == (state, True)


def test_the_entry_itself_is_looked_at(run: Run, bin_only: Path) -> None:
    """A file that cannot be read, a command that is gone, an editor without a listing."""
    put(bin_only, "cursor", '{"mcpServers": ')
    put(bin_only, "zed", '{"context_servers": {"memd": {"command": "/gone/memd-mcp"}}} // x\n')
    put(bin_only, "vscode", "")
    put(bin_only, "windsurf", f'{{"mcpServers": {{"memd": {{"command": "{sys.executable}"}}}}}}')
    found = states(run)
    assert found["cursor"][0] == "unreadable"
    assert found["zed"] == ("fails", "/gone/memd-mcp is not there")
    assert found["vscode"] == ("no entry", "memd-ctl mcp install --client vscode")
    assert found["windsurf"][0] == "set up"
    lines = run("mcp", "status").out.splitlines()
    assert lines[0].startswith("Cursor    unreadable  ~/.cursor/mcp.json: it is not plain JSON")


@pytest.fixture
def daemon(short: Path, address: Path) -> Iterator[Daemon]:
    """A daemon at the address."""
    daemon = Daemon(short / "d")
    daemon.socket = address
    daemon.write("MEMORY.md", "- We picked the PostgreSQL database.\n")
    with daemon:
        yield daemon


@pytest.mark.parametrize("client", ["claude", "codex"])
async def test_what_was_installed_starts_and_answers(
    run: Run, home: Path, daemon: Daemon, client: str
) -> None:
    """From the file alone, without a PATH and with no variable of memd's."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - it takes a second, in each worker
    from mcp.client.stdio import stdio_client  # noqa: PLC0415 - likewise

    code, _, err = run("mcp", "install", "--client", client)
    assert (code, err) == (0, "")
    entry = entry_of(home / FILES[client], client)
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={"PATH": ""}, cwd="/"
    )
    assert sys.__stderr__ is not None  # else it is the one of the test that first imported it
    async with Client(stdio_client(parameters, errlog=sys.__stderr__)) as connected:
        result = await connected.call_tool("memory_get", {"path": "MEMORY.md"})
    (content,) = result.content
    assert content.type == "text"
    assert json.loads(content.text)["text"] == "- We picked the PostgreSQL database."
    assert os.fspath(daemon.socket) in entry["args"]


def test_writing_is_for_a_private_conversation_that_is_named(run: Run, home: Path) -> None:
    """The entry says who writes; nobody else gets the tool."""
    for flags in ([], ["--session-key", "agent:main:telegram:group:7"]):
        code, _, err = run("mcp", "install", "--client", "cursor", "--write", *flags)
        assert (code, "--session-key agent:main:main" in err) == (2, True)
    assert not (home / FILES["cursor"]).exists()
    assert (
        run("mcp", "install", "--client", "cursor", "--write", "--session-key", "agent:main:main").code == 0
    )
    args = json.loads((home / FILES["cursor"]).read_text())["mcpServers"]["memd"]["args"]
    assert args[-4:] == ["--session-key", "agent:main:main", "--write", "Cursor"]


def test_tokens_are_made_shown_replaced_and_revoked(run: Run, home: Path) -> None:
    """The token alone is on standard output, for a program that reads it."""
    flags = ("--agent", "main", "--session-key", "agent:main:main")
    assert run("mcp", "token", "--list").out == "There is no token.\n"
    code, out, err = run("mcp", "token", *flags)
    assert (code, len(out.strip()) >= 43) == (0, True)
    (file,) = (home / ".config" / "memd" / "mcp-tokens").iterdir()
    assert (file.name in err, "Made it, and kept it in" in err) == (True, True)
    again = run("mcp", "token", *flags)
    assert (again.out, "--rotate replaces it" in again.err) == (out, True)
    assert run("mcp", "token").out != out
    assert run("mcp", "token", *flags, "--rotate").out not in {out, ""}
    assert "agent main, session key agent:main:main" in run("mcp", "token", "--list").out
    assert out.strip() not in run("mcp", "token", "--list", "--json").out
    assert "no longer valid" in run("mcp", "token", *flags, "--revoke").out
    assert "no such token" in run("mcp", "token", *flags, "--revoke").out
    assert not file.exists()


@contextmanager
def served(address: Path, port: str = "0") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and its port."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "memd.ctl",
        "mcp",
        "serve",
        "--socket",
        str(address),
        "--port",
        port,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp, for 1 token\b", line)
        assert found, line
        try:
            yield process, found[1]
        finally:
            process.kill()
            process.communicate()


def pinged(port: str, token: str) -> Any:
    """What a server answers, or its status."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)["result"]
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def test_a_token_outlives_a_server_that_is_killed_and_a_new_one_ends_it(
    run: Run, home: Path, address: Path
) -> None:
    """The next server takes the same port and the same token at once; a token that is replaced is refused without a restart."""
    token = run("mcp", "token").out.strip()
    with served(address) as (_, port):
        assert pinged(port, token) == {}
    with served(address, port) as (_, again):
        assert (again, pinged(port, token)) == (port, {})
        newer = run("mcp", "token", "--rotate").out.strip()
        assert (pinged(port, token), pinged(port, newer)) == (401, {})


def test_the_server_says_where_it_is_and_ends_with_a_signal(run: Run, home: Path, address: Path) -> None:
    """On the loopback alone; a port that is taken is told."""
    token = run("mcp", "token").out.strip()
    with served(address) as (process, port):
        assert pinged(port, token) == {}
        taken = subprocess.run(
            [sys.executable, "-P", "-m", "memd.ctl", "mcp", "serve", "--port", port],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (taken.returncode, "cannot be used" in taken.stderr) == (1, True)
        process.terminate()
        assert process.wait(60) == 0
