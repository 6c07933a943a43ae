"""memd-ctl mcp."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

from memd.ctl.arguments import MCP_CLIENTS
from tests.ctl.conftest import Run
from tests.daemon.process import Daemon

FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "openclaw": ".openclaw/openclaw.json",
    "opencode": ".config/opencode/opencode.json",
    "qwen": ".qwen/settings.json",
}
OLD = {
    "claude": '{\n  "numStartups": 1.0,\n  "mcpServers": {"other": {"command": "x"}}\n}',
    "codex": 'model = "o5" # good\n\n[mcp_servers.other]\ncommand = "x"\n',
    "cursor": '{"mcpServers":{"other":{"command":"x"}}}\n',
    "gemini": '{\r\n\t"theme": "Default",\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "x"}\r\n\t}\r\n}\r\n',
    "openclaw": '{\n    "agents": {},\n    "mcp": {\n        "servers": {\n            "other": {}\n        }\n    }\n}\n',
    "opencode": '{\n  "$schema": "x",\n  "mcp": {"other": {"type": "local", "command": ["x"]}}\n}\n',
    "qwen": '{"mcpServers":{"other":{"command":"x"}}, "$version": 4}\n',
}


@pytest.fixture(autouse=True)
def _usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CLAUDE_CONFIG_DIR",
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


def entry_in(file: Path) -> dict[str, Any]:
    """Memd's entry in the file of a client."""
    text = file.read_text(encoding="utf-8")
    told: Any = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    servers = told.get("mcpServers") or told.get("mcp_servers") or told["mcp"]
    entry: dict[str, Any] = servers.get("servers", servers)["memd"]
    if isinstance(entry["command"], list):  # as opencode has it
        command, *arguments = entry["command"]
        return {**entry, "command": command, "args": arguments}
    return entry


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_an_entry_is_added_once_and_taken_out(run: Run, home: Path, address: Path, client: str) -> None:
    """What else is in the file stays byte by byte, also where the entry changes later."""
    file = put(home, client, OLD[client])
    code, out, err = run("mcp", "install", "--client", client)
    assert code == 0
    assert f"~/{FILES[client]}" in out
    assert f"No memd daemon answers at {address} yet" in err
    entry = entry_in(file)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["--socket", str(address)]
    installed = file.read_bytes()
    assert run("mcp", "install", "--client", client).out.endswith("was right.\n")
    assert file.read_bytes() == installed
    run("mcp", "install", "--client", client, "--agent", "work", "--session-key", "agent:work:main")
    assert entry_in(file)["args"][2:] == ["--agent", "work", "--session-key", "agent:work:main"]
    assert run("mcp", "uninstall", "--client", client).code == 0
    assert file.read_bytes() == OLD[client].encode()


def test_the_rest_of_an_entry_stays_byte_by_byte(run: Run, home: Path) -> None:
    """What somebody wrote on one line stays on one."""
    old = '{\n  "mcpServers": {\n    "memd": {\n      "env": {"A": "b"}, "command": "old"\n    }\n  }\n}\n'
    file = put(home, "claude", old)
    assert run("mcp", "install", "--client", "claude").code == 0
    assert '      "env": {"A": "b"}, "command": "/' in file.read_text(encoding="utf-8")
    assert entry_in(file)["args"][0] == "--socket"


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_a_missing_file_is_made(run: Run, home: Path, client: str) -> None:
    """For a program that was not started yet; taking out of a missing one makes none."""
    assert run("mcp", "uninstall", "--client", client).code == 0
    assert not (home / FILES[client]).exists()
    assert run("mcp", "install", "--client", client).code == 0
    assert entry_in(home / FILES[client])["command"]


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_print_changes_nothing(run: Run, home: Path, client: str) -> None:
    """It prints what could be pasted, and where."""
    code, out, err = run("mcp", "install", "--client", client, "--print")
    assert code == 0
    assert f"This belongs into ~/{FILES[client]}." in err
    assert not (home / FILES[client]).exists()
    pasted = put(home, client, out)
    before = pasted.read_bytes()
    assert run("mcp", "install", "--client", client).out.endswith("was right.\n")
    assert pasted.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("gemini", '{\n  // mine\n  "theme": "x"\n}\n'),
        ("openclaw", "{ agents: {}, }\n"),
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
    entry = entry_in(file)
    assert (entry["env"], entry["disabled"]) == ({"A": "b"}, True)
    assert entry["command"] != "old"


def test_a_variable_of_the_client_moves_its_file(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the client itself looks."""
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    run("mcp", "install", "--client", "codex")
    assert entry_in(home / "elsewhere" / "config.toml")["command"]
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
    code, _, err = run("mcp", "install", "--client", client)
    assert (code, err) == (0, "")
    entry = entry_in(home / FILES[client])
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={"PATH": ""}, cwd="/"
    )
    async with McpClient(stdio_client(parameters)) as connected:
        result = await connected.call_tool("memory_get", {"path": "MEMORY.md"})
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text)["text"] == "- We picked the PostgreSQL database."
    assert os.fspath(daemon.socket) in entry["args"]
