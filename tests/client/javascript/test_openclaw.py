"""OpenClaw itself, from nothing: two commands, and its memory is memd's; one more, and it is as before."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.client.javascript.compare import gateway
from tests.clients.conversation import Called, Exchange, ModelRequest, Reply, Step, ToolCall, ToolResult
from tests.clients.house import House, house_of
from tests.clients.install import CACHE, installed, system, versions
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS
from tests.wait import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
]  # OpenClaw is installed the first time, and takes its time

OPENCLAW = PROGRAMS["openclaw"]
FACT = "The staging database is PostgreSQL 17 on the host heron."


@pytest.fixture
def model() -> Iterator[StandInModel]:
    """The model that OpenClaw asks."""
    with StandInModel() as listening:
        yield listening


@pytest.fixture
def house(model: StandInModel) -> Iterator[House]:
    """A home with OpenClaw and its workspace."""
    kind, version = f"node-{system()}", versions()
    node = installed(kind, version["node"], CACHE) / kind / "bin"
    executable = installed(OPENCLAW.package, version["openclaw"], CACHE) / OPENCLAW.executable
    with house_of(OPENCLAW, [str(node / "node"), str(executable)], node, model.url, None) as made:
        made.write(".openclaw/workspace/MEMORY.md", f"# Memory\n\n{FACT}\n")
        made.write(
            ".config/memd/config.toml",
            '[agents.main]\nworkspace = "~/.openclaw/workspace"\nprovider = "none"\n',
        )
        yield made


class Talk(Exchange, frozen=True):
    """An exchange that calls tools of OpenClaw's own, one after the other."""

    def reply(self, request: ModelRequest) -> Reply:
        """What the model says next."""
        done = sum(isinstance(item, Called) for item in request.since(self.prompt))
        return self.steps[done](request) if done < len(self.steps) else self.answer


def calling(name: str, **arguments: object) -> Step:
    """Call a tool of OpenClaw's own, through another one where it is not offered by itself."""

    def step(request: ModelRequest) -> ToolCall:
        offered = next((tool for tool in request.tools if tool.name == name), None)
        if offered is not None:
            return ToolCall(offered, arguments)
        wrapper = next(tool for tool in request.tools if tool.name == "tool_call")
        return ToolCall(wrapper, {"id": name, "args": arguments})

    return step


def test_two_commands_make_memd_its_memory_and_one_undoes_it(house: House, model: StandInModel) -> None:
    """Its commands and its model are answered by memd, also when that is gone; afterwards the file is the same."""
    config = house.home / ".openclaw" / "openclaw.json"
    config.write_text(f"// mine\n{config.read_text()}")
    before = config.read_bytes()
    for words in (("up",), ("openclaw", "install")):
        ended = house.memd(*words)
        assert ended.status == 0, ended
    status = house.program("memory", "status")
    assert "memd 0." in status.out, status
    found = house.program("memory", "search", "on which host is the staging database?")
    assert "MEMORY.md:1-3" in found.out, found
    assert house.memd("openclaw", "status").out.strip().endswith("OpenClaw's memory is memd's.")

    search = calling("memory_search", query="host of the staging database")
    talk = Talk(
        "On which host is the staging database?",
        "On heron.",
        (search, calling("memory_get", path="MEMORY.md")),
    )
    model.expect(talk)
    said = house.program(*OPENCLAW.ask(talk.prompt, False))
    assert "On heron." in said.out, said
    requests = model.requests_for(talk)
    replies = [item.text for item in requests[-1].since(talk.prompt) if isinstance(item, ToolResult)]
    assert len(replies) == 2
    assert all('"_memd"' in reply and "heron" in reply for reply in replies)
    assert "memory_search" in requests[0].texts("system")

    house.kill_daemon()
    gone = Talk("Which version is that database?", "I cannot look it up.", (search,))
    model.expect(gone)
    said = house.program(*OPENCLAW.ask(gone.prompt, True))
    assert "I cannot look it up." in said.out, said
    last = model.requests_for(gone)[-1].since(gone.prompt)
    reply = next(json.loads(item.text) for item in last if isinstance(item, ToolResult))
    assert "memd-ctl up" in reply["result"]["details"]["action"]

    assert house.memd("openclaw", "uninstall").status == 0
    assert config.read_bytes() == before
    assert not (house.home / ".openclaw" / "extensions").exists()
    assert "memd" not in house.program("memory", "status").out


TOKEN = "ghp_" + "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xYzAbC"


def test_a_gateway_that_runs_follows_and_an_agent_writes_where_that_is_wanted(
    house: House, model: StandInModel
) -> None:
    """Installed while it runs, and uninstalled: each is in force without a restart. What is written has no secret."""
    config = house.home / ".openclaw" / "openclaw.json"
    said = json.loads(config.read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    auth = {"mode": "token", "token": "t" * 32}
    config.write_text(
        json.dumps({**said, "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": auth}})
    )
    before = config.read_bytes()
    kind, version = f"node-{system()}", versions()
    node = installed(kind, version["node"], CACHE) / kind / "bin" / "node"
    executable = installed(OPENCLAW.package, version["openclaw"], CACHE) / OPENCLAW.executable
    with gateway(house, [str(node), str(executable)]):
        log = house.home / "gateway.log"

        def applied() -> int:
            return log.read_text(errors="replace").count("config hot reload applied")

        for words in (("up",), ("openclaw", "install", "--write")):
            ended = house.memd(*words)
            assert ended.status == 0, ended
        until(lambda: applied() == 1, 120)
        search = calling("memory_search", query="host of the staging database")
        text = f"Ada asked for the host of staging: heron. {TOKEN}"
        talk = Talk(
            "On which host is the staging database?",
            "On heron.",
            (search, calling("memory_append", text=text)),
        )
        model.expect(talk)
        answered = house.program("agent", "--agent", "main", "-m", talk.prompt)
        assert "On heron." in answered.out, answered
        found, written = (
            item.text
            for item in model.requests_for(talk)[-1].since(talk.prompt)
            if isinstance(item, ToolResult)
        )
        assert "openclaw:memd:memory_search" in found
        assert "heron" in found
        assert "openclaw:memd:memory_append" in written
        (note,) = (house.home / ".openclaw" / "workspace" / "memory").glob("*.md")
        line = note.read_text()
        assert "OpenClaw (agent:main:main) wrote: Ada asked for the host of staging: heron." in line
        assert TOKEN not in line

        assert house.memd("openclaw", "uninstall").status == 0
        assert config.read_bytes() == before
        until(lambda: applied() == 2, 120)
        again = Talk("And now?", "It is its own.", (search,))
        model.expect(again)
        answered = house.program("agent", "--agent", "main", "-m", again.prompt)
        assert "It is its own." in answered.out, answered
        (own,) = (
            item.text
            for item in model.requests_for(again)[-1].since(again.prompt)
            if isinstance(item, ToolResult)
        )
        assert "openclaw:memory-core:memory_search" in own
