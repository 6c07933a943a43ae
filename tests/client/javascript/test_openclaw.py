"""OpenClaw itself, from nothing: two commands, and its memory is memd's; one more, and it is as before."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd
from memd.ctl.config.from_openclaw import imported
from memd.ctl.integrations.openclaw import OpenClawPlaces
from memd_client.session_key import parse
from tests.client.javascript.compare import (
    command_of_openclaw,
    damaged,
    free_port,
    gateway,
    invoked,
    notes_of,
    on_workspace,
    with_gateway,
)
from tests.clients.conversation import Called, Exchange, ModelRequest, Reply, Step, ToolCall, ToolResult
from tests.clients.house import House, house_of
from tests.clients.install import CACHE, installed, versions
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS
from tests.wait import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
]  # OpenClaw is installed the first time, and takes its time

OPENCLAW = PROGRAMS["openclaw"]
FACT = "The staging database is PostgreSQL 17 on the host heron."
USER = "Ada wants short answers."


@pytest.fixture
def model() -> Iterator[StandInModel]:
    """The model that OpenClaw asks."""
    with StandInModel() as listening:
        yield listening


@pytest.fixture
def house(model: StandInModel) -> Iterator[House]:
    """A home with OpenClaw and its workspace."""
    command, node = command_of_openclaw()
    with house_of(OPENCLAW, command, node, model.url, None) as made:
        made.write(".openclaw/workspace/MEMORY.md", f"# Memory\n\n{FACT}\n")
        made.write(".openclaw/workspace/USER.md", f"# User\n\n- {USER}\n")
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
    # OpenClaw's own files are in the prompt, as without memd.
    assert all(text in requests[0].texts("system") for text in ("memory_search", FACT, USER))

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


GROUP = "agent:main:telegram:group:-1001987654321"
TOKEN = "ghp_" + "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xYzAbC"


def test_a_gateway_that_runs_follows_and_an_agent_writes_where_that_is_wanted(
    house: House, model: StandInModel
) -> None:
    """Installed while it runs, and uninstalled: each is in force without a restart. What is written has no secret."""
    config = house.home / ".openclaw" / "openclaw.json"
    port = free_port()
    with_gateway(house, port)
    before = config.read_bytes()
    with gateway(house, command_of_openclaw()[0]):
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
        # What is too long is not written, nor what a group says; and a group is not told.
        for key, text, why in (
            ("main", "x" * 2001, "2,001 characters"),
            (GROUP, "A fact.", "others read along"),
        ):
            refused = invoked(port, "memory_append", key, text=text)
            assert (refused["written"], why in refused["error"]) == (False, True), refused
        assert note.read_text() == line
        assert invoked(port, "memory_search", GROUP, query="staging")["scopeDenied"] is True
        assert invoked(port, "memory_get", GROUP, path="MEMORY.md")["status"] == "not_found"
        assert "heron" in invoked(port, "memory_get", path="MEMORY.md")["text"]

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


KEYS = """
import { readdirSync } from "node:fs";

const made = {};
for (const name of readdirSync(".").filter((one) => /^session-(key|chat-type)[\\w-]*\\.mjs$/.test(one))) {
  for (const one of Object.values(await import(`${process.cwd()}/${name}`))) if (typeof one === "function") made[one.name] ??= one;
}
const channels = ["telegram", "discord", "slack", "whatsapp", "signal", "imessage", "msteams", "matrix", "irc", "webchat", "zalouser", "Odd Name", ""];
const usual = ["4711", "-1001987654321", "C0123ABCD", "+49301234567", "ada@example.org", "120363@g.us", "!room:example.org"];
const odd = ["direct", "main", "a:direct:b", "x:group:y", "direct:5", "dm", "subagent", "cron:1", "explicit:2", "", " ", "数据"];
const rows = [];
for (const channel of channels) for (const peerId of [...usual, ...odd]) for (const accountId of [undefined, "work", "direct"])
  for (const peerKind of ["direct", "group", "channel"]) for (const dmScope of ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]) {
    const base = made.buildAgentPeerSessionKey({ agentId: "main", channel, accountId, peerKind, peerId, dmScope });
    const thread = made.resolveThreadSessionKeys({ baseSessionKey: base, threadId: "1777" }).sessionKey;
    const isUsual = usual.includes(peerId) && /^[a-z]+$/.test(channel) && accountId !== "direct";
    for (const key of [base, thread]) rows.push([key, peerKind, isUsual, made.deriveSessionChatTypeFromKey(key)]);
  }
console.log(JSON.stringify(rows));
"""


def test_no_key_of_a_group_is_private() -> None:
    """Of the keys that OpenClaw itself makes of channels, kinds of chats and peers; and those of usual direct messages are."""
    (node, _), _ = command_of_openclaw()
    dist = installed(OPENCLAW.package, versions()["openclaw"], CACHE) / "openclaw" / "dist"
    done = subprocess.run(
        [node, "--input-type=module"],
        input=KEYS,
        cwd=dist,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    rows = json.loads(done.stdout)
    assert len(rows) > 5000
    told = [key for key, kind, _, _ in rows if kind != "direct" and parse(key).chat_type == "direct"]
    assert told == []
    # OpenClaw's own reading of a key is never stricter.
    assert [
        key for key, *_, seen in rows if seen in {"group", "channel"} and parse(key).is_owner_private
    ] == []
    lost = {
        key for key, kind, usual, _ in rows if kind == "direct" and usual and not parse(key).is_owner_private
    }
    assert lost == set()


def test_both_memories_live_on_one_workspace(house: House, model: StandInModel) -> None:
    """OpenClaw's own in one gateway, memd's in another: edits are found by both, and nothing of either is damaged."""
    command, node = command_of_openclaw()
    workspace = house.home / ".openclaw" / "workspace"
    with house_of(OPENCLAW, command, node, model.url, None) as own:
        with_gateway(own, free_port(), memory={"search": {"provider": "none"}})
        with_gateway(house, free_port())
        on_workspace(own, workspace, "none")
        assert house.memd("up").status == 0
        assert house.memd("openclaw", "install").status == 0
        with gateway(own, command), gateway(house, command):
            for word in ("walrus", "flamingo"):
                house.write(f".openclaw/workspace/memory/{word}.md", f"The {word} is called Wanda.\n")
                before = notes_of(workspace)
                assert own.program("memory", "index", "--agent", "main").status == 0
                for one in (own, house):
                    found = one.program("memory", "search", word)
                    assert f"memory/{word}.md" in found.out, found
                assert notes_of(workspace) == before
        house.memd("down")
        assert damaged(own.home) == damaged(house.home) == []


def leaves(schema: dict[str, Any], name: str) -> Iterator[str]:
    """The names of the values that a JSON schema describes; a key is one, however it is written."""
    kinds = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    tables = [one for one in (schema, *kinds) if "properties" in one]
    if not tables or name.endswith("apiKey"):
        yield name
        return
    for table in tables:
        for key, value in table["properties"].items():
            yield from leaves(value, f"{name}.{key}" if name else key)


VALUES: dict[str, Any] = {
    "citations": "on",
    "search.enabled": False,
    "search.sources": ["memory", "sessions"],
    "search.extraPaths": ["~/more"],
    "search.provider": "gemini",
    "search.remote.baseUrl": "https://embed.example/v1",
    "search.remote.apiKey": "${KEY}",
    "search.remote.headers": {"X-Team": "a"},
    "search.fallback": "voyage",
    "search.outputDimensionality": 512,
    "search.query.maxResults": 9,
    "search.query.minScore": 0.4,
    "search.cache.enabled": False,
    "search.store.vector.enabled": False,
}


def test_each_setting_of_its_memory_is_taken_over_or_named(house: House) -> None:
    """Of the schema that OpenClaw itself prints; and the page on configuration has them all."""
    printed = house.program("config", "schema").out
    memory = json.loads(printed[printed.index("{") :])["properties"]["memory"]
    names = sorted(set(leaves(memory, "")))
    assert len(names) >= 20
    page = Path(memd.__path__[0], "docs", "configuration.md").read_text("utf-8")
    assert [name for name in names if f"`{name}`" not in page] == []
    home = house.home
    places = OpenClawPlaces(home / ".openclaw", home / ".openclaw" / "openclaw.json")

    def told(search: dict[str, Any], **others: Any) -> tuple[dict[str, Any], list[str]]:
        config = {"memory": {"search": {"provider": "openai", "model": "m", **search}, **others}}
        return imported(config, places, {}, home)

    usual = told({})
    for name in names:
        if name == "search.experimental.sessionMemory":  # counts beside sources alone
            assert (
                told({"sources": ["memory", "sessions"], "experimental": {"sessionMemory": False}}) == usual
            )
            continue
        first, *ways = name.split(".")
        value = VALUES.get(
            name, "x" if name.endswith(("odel", "ype", "ath", "tokenizer", "modalities")) else True
        )
        for way in reversed(ways[1:] if first == "search" else []):
            value = {way: value}
        changed = told({ways[0]: value}) if first == "search" else told({}, **{first: value})
        assert changed != usual, name


def test_a_main_session_that_groups_talk_in_does_not_see_memory_md(house: House) -> None:
    """Whatever memd's scope lets groups have: notes alone. A direct message beside it does, and earlier talks are for neither."""
    house.write(".openclaw/workspace/memory/a.md", "The heron has a nest.\n")
    house.write(
        ".config/memd/config.toml",
        '[agents.main]\nworkspace = "~/.openclaw/workspace"\nprovider = "none"\n[agents.main.scope]\ndefault = "allow"\n',
    )
    port = free_port()
    with_gateway(house, port, session={"groupScope": "main"}, tools={"sessions": {"visibility": "self"}})
    for words in (("up",), ("openclaw", "install")):
        assert house.memd(*words).status == 0
    with gateway(house, command_of_openclaw()[0]):

        def found(*key: str) -> set[str]:
            return {hit["path"] for hit in invoked(port, "memory_search", *key, query="heron")["results"]}

        assert found() == {"memory/a.md"}
        assert found("agent:main:telegram:direct:4711") == {"MEMORY.md", "memory/a.md"}
        assert invoked(port, "memory_get", path="MEMORY.md")["status"] == "not_found"
        assert invoked(port, "memory_search", query="heron", corpus="sessions")["scopeDenied"] is True
