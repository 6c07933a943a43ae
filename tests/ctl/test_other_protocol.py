"""What everybody hears where client and daemon are of versions that do not understand each other."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd_client import AsyncClient, Client, ProtocolMismatch
from memd_client.mcp.server import Answers
from memd_client.messages import PROTOCOL
from memd_client.tools import AsyncTools, Tools
from tests.client.scripted_server import Peer, serving
from tests.ctl.conftest import Run
from tests.ctl.hooked import SILENT, hook

OLDER, NEWER = PROTOCOL - 1, PROTOCOL + 1
CALLS = (("memory_search", {"query": "lighthouse"}), ("memory_get", {"path": "MEMORY.md"}))


def of(protocol: int) -> Callable[[Peer], None]:
    """A daemon of another protocol; whether the client goes at once is its own affair."""

    def script(peer: Peer) -> None:
        hello = peer.greet(protocol)
        assert hello.protocol == PROTOCOL
        peer.wait_for_end()

    return script


@pytest.mark.parametrize(
    ("theirs", "mends"),
    [
        (OLDER, ("Upgrade memd-daemon", "memd-ctl service restart")),
        (NEWER, ("Upgrade memd-client", "start the program again")),
    ],
)
def test_programs_hear_which_side_is_to_be_updated(
    address: Path, theirs: int, mends: tuple[str, ...]
) -> None:
    """Both clients raise, and the tools of both, and of MCP, say the same in a reply that a model can read."""
    with serving(address, of(theirs)), Client(address) as client, pytest.raises(ProtocolMismatch) as failed:
        client.search("lighthouse")
    told = [str(failed.value)]

    async def ask() -> list[str]:
        async with AsyncClient(address) as asking:
            with pytest.raises(ProtocolMismatch) as mismatch:
                await asking.status()
        return [str(mismatch.value)]

    with serving(address, of(theirs)):
        told += asyncio.run(ask())
    for name, arguments in CALLS:
        with serving(address, of(theirs)):
            told.append(_readable(Tools(lambda: Client(address)).call(name, arguments)))
        with serving(address, of(theirs)):
            told.append(
                _readable(asyncio.run(AsyncTools(lambda: AsyncClient(address)).call(name, arguments)))
            )
    for name, arguments in (*CALLS, ("memory_status", {})):
        with serving(address, of(theirs)):
            told.append(_readable(asyncio.run(_over_mcp(address, name, arguments))))
    for one in told:
        assert all(word in one for word in (f"protocol {PROTOCOL}", f"speaks {theirs}", *mends)), one


def _readable(reply: dict[str, Any]) -> str:
    assert (reply["results"], reply["disabled"]) == ([], True)
    return f"{reply['error']} {reply['action']}"


async def _over_mcp(address: Path, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async with AsyncClient(address) as client:
        answers = Answers(client, agent=None, session_key=None, max_chars=None)
        result = await answers.call(name, arguments)
    [content] = result["content"]
    assert result["isError"]
    reply: dict[str, Any] = json.loads(content["text"])
    return reply


@pytest.mark.parametrize(
    ("theirs", "mends"), [(OLDER, "memd-ctl service restart"), (NEWER, "upgrade this one")]
)
@pytest.mark.parametrize(
    "command", [["search", "x"], ["get", "MEMORY.md"], ["status"], ["sync"], ["embed", "pause"]]
)
def test_a_person_hears_what_to_do(
    run: Run, address: Path, command: list[str], theirs: int, mends: str
) -> None:
    """In words on stderr, and as one document for programs."""
    with serving(address, of(theirs)):
        ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert mends in ran.err
    with serving(address, of(theirs)):
        ran = run(*command, "--json")
    failed = json.loads(ran.out)["error"]
    assert (ran.code, failed["type"]) == (1, "protocol_mismatch")
    assert mends in failed["hint"]


@pytest.mark.parametrize(
    "command", [["mcp", "install", "--client", "cursor"], ["hook", "install", "--client", "claude"]]
)
def test_what_was_installed_is_not_told_as_a_failure(
    run: Run, home: Path, address: Path, command: list[str]
) -> None:
    """The file is written; that the daemon is another one is a remark."""
    if command[0] == "mcp":
        with serving(address, of(NEWER)):
            printed = run(*command, "--print")
        assert (printed.code, "memd" in printed.out) == (0, True)
    with serving(address, of(NEWER)):
        ran = run(*command)
    assert ran.code == 0
    assert "says so" in ran.out
    assert f"the daemon speaks {NEWER}" in ran.err
    assert any("memd" in file.read_text(encoding="utf-8") for file in home.glob(".c*/*.json"))


@pytest.mark.parametrize("event", ["session-start", "user-prompt", "session-end"])
def test_an_agent_hears_nothing_of_it(address: Path, event: str) -> None:
    """A hook is silent."""
    with serving(address, of(NEWER)):
        assert hook(event, address, {"prompt": "where is the lighthouse, please?"}) == SILENT
