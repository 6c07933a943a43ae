"""Which agent a request means, and what an agent is made of and gives back."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memd.agent.agents import (
    Agents,
    AgentUnavailable,
    ForeignSession,
    LeftOut,
    RunningAgent,
    UnknownAgent,
)
from memd.config.settings import AgentSettings
from memd.providers.provider import Identity, space_of
from memd_client.session_key import parse
from tests.clock import run_hastily

SETTINGS = AgentSettings(workspace=Path("/w"))
WANTED = Identity("fake", "m", "k", 8)


async def nothing() -> None:
    """Try again, in vain."""


def running(agent_id: str, **parts: Any) -> RunningAgent:
    """An agent of stand-ins."""
    usual = dict.fromkeys(("index", "backend", "index_service", "pending", "providers"), cast("Any", None))
    return RunningAgent(agent_id, SETTINGS, roots=(), **(usual | parts))


def agents_of(*there: str, left_out: Iterable[str] = ()) -> Agents:
    agents = Agents()
    agents.swap(
        {agent_id: running(agent_id) for agent_id in there},
        {agent_id: LeftOut(SETTINGS, "its disk is away", nothing) for agent_id in left_out},
    )
    return agents


async def meant(agents: Agents, name: str | None, key: str | None) -> str:
    return (await agents.meant_by(name, None if key is None else parse(key))).id


@pytest.mark.parametrize(
    ("there", "name", "key", "expected"),
    [
        (("work",), None, None, "work"),  # the only one
        (("work", "main"), None, None, "main"),
        (("work", "main"), "work", None, "work"),
        (("work", "main"), None, "agent:work:main", "work"),
        (("work", "main"), "work", "agent:work:main", "work"),
        (("work", "main"), "work", "telegram:direct:4711", "work"),  # a key that names none
        (("work", "main"), None, "telegram:direct:4711", "main"),
    ],
)
async def test_a_request_means_the_agent_that_it_names(
    there: tuple[str, ...], name: str | None, key: str | None, expected: str
) -> None:
    """By its name, else by its session, else there is one alone, or main."""
    assert await meant(agents_of(*there), name, key) == expected


@pytest.mark.parametrize(
    ("there", "name", "key", "failure", "told"),
    [
        (("a", "b"), None, None, UnknownAgent, "several agents are configured and none is main: name one of a, b"),
        (("a", "b"), None, "x", UnknownAgent, "several agents are configured and none is main: use a session key that names one"),
        (("b", "a"), "c", None, UnknownAgent, "there is no agent 'c'; the configuration has: a, b"),
        (("a", "b"), None, "agent:c:main", UnknownAgent, "there is no agent 'c'"),
        ((), None, None, UnknownAgent, "several agents are configured and none is main: name one of none"),
        (("a",), "x" * 100, None, UnknownAgent, f"there is no agent {'x' * 80!r}; the configuration has: a"),
        (("a", "b"), "a", "agent:b:main", ForeignSession, "the session belongs to another agent"),
        (("a", "b"), "a", "agent:c:main", ForeignSession, "the session belongs to another agent"),
    ],
)  # fmt: skip
async def test_what_means_no_agent_is_told(
    there: tuple[str, ...], name: str | None, key: str | None, failure: type[Exception], told: str
) -> None:
    """Which others there are only to who has no session: one of a conversation is not told."""
    with pytest.raises(failure) as raised:
        await meant(agents_of(*there), name, key)
    assert str(raised.value) == told


async def test_one_that_cannot_run_is_meant_all_the_same() -> None:
    """It counts among those that are configured, and the reason is told."""
    agents = agents_of("a", left_out=["main"])
    assert await meant(agents, "a", None) == "a"
    for name, key in (("main", None), (None, "agent:main:main"), (None, None)):
        with pytest.raises(AgentUnavailable, match="agent main cannot run: its disk is away") as raised:
            await meant(agents, name, key)
        assert (raised.value.agent_id, raised.value.left_out) == ("main", agents.left_out()["main"])
    with pytest.raises(AgentUnavailable):  # not the other one, because that alone runs
        await meant(agents_of(left_out=["b"]), None, None)


@run_hastily
async def test_nobody_waits_where_nothing_has_changed_yet() -> None:
    """Nor for an agent."""
    agents = agents_of("a")
    async with asyncio.timeout(60):
        await agents.wait_until_unchanging()
        with pytest.raises(UnknownAgent):
            await meant(agents, "b", None)


@pytest.mark.parametrize("becomes", ["another", "gone", "left out"])
async def test_a_request_waits_while_its_agent_changes(becomes: str) -> None:
    """The others are not disturbed, and nobody waits once it is over."""
    agents = agents_of("a", "b")
    with agents.held({"b", "new"}):
        assert await meant(agents, "a", None) == "a"
        waiting = [
            asyncio.ensure_future(agents.meant_by(name, None)) for name in ("b", "new")
        ]  # one that is to come, too
        free = asyncio.ensure_future(agents.wait_until_unchanging())
        for _ in range(9):
            await asyncio.sleep(0)
        assert not any(one.done() for one in (*waiting, free))
        after = {"a": running("a"), "new": running("new")}
        if becomes == "another":
            after["b"] = running("b")
        out = {"b": LeftOut(SETTINGS, "no room", nothing)} if becomes == "left out" else {}
        agents.swap(after, out)
    async with asyncio.timeout(60):
        await free
        assert await waiting[1] is after["new"]
        if becomes == "another":
            assert await waiting[0] is after["b"]
        else:
            with pytest.raises(UnknownAgent if becomes == "gone" else AgentUnavailable):
                await waiting[0]
        with pytest.raises(UnknownAgent):
            await meant(agents, "never", None)


@pytest.mark.parametrize("failing", [None, "backend", "index_service", "index"])
async def test_all_of_an_agent_is_closed_though_a_part_fails(failing: str | None) -> None:
    """What serves, then what writes, then what they work on."""
    closed: list[str] = []

    def closing(name: str) -> Any:
        async def close() -> None:
            closed.append(name)
            if name == failing:
                raise OSError(name)

        return SimpleNamespace(close=close, stop=close)

    agent = running("a", **{name: closing(name) for name in ("backend", "index_service", "index")})
    if failing is None:
        await agent.close()
    else:
        with pytest.raises(OSError, match=failing):
            await agent.close()
    assert closed == ["backend", "index_service", "index"]


@pytest.mark.parametrize("embeds", [False, True])
@pytest.mark.parametrize("rests", [False, True])
def test_chunks_get_vectors_where_somebody_embeds_and_they_do_not_rest(embeds: bool, rests: bool) -> None:
    """Else they are not waited for."""
    agent = running(
        "a", providers=SimpleNamespace(embeds=embeds), index_service=SimpleNamespace(vectors_suspended=rests)
    )
    assert agent.embeds is (embeds and not rests)


def test_who_embeds_is_told_by_what_is_wanted_and_by_what_there_is() -> None:
    """While the model changes both embed: the new one, and that of the index."""
    asked: list[object] = []

    def queue(space: object) -> object:
        asked.append(space)
        return wanted

    wanted: object = "of the new model"
    sync = SimpleNamespace(queue="of the index", queues=frozenset({"of the index"}))
    providers = SimpleNamespace(wanted=WANTED, queue=queue)
    agent: Any = running("a", index_service=sync, providers=providers)
    assert agent.queue == "of the new model"
    assert agent.queues == {"of the index", "of the new model"}
    assert asked[0] == space_of(WANTED)
    wanted = None
    assert (agent.queue, agent.queues) == (None, {"of the index"})
    providers.wanted = None
    assert (agent.queue, agent.queues) == ("of the index", {"of the index"})


def test_the_agents_of_this_moment_are_told() -> None:
    """With what their searches hold in memory."""
    agents = Agents()
    assert (agents.all(), agents.left_out(), agents.vectors()) == ({}, {}, {})
    one = running("a", index=SimpleNamespace(memory="vectors of a"))
    by_id = {"a": one}
    agents.swap(by_id, {"b": LeftOut(SETTINGS, "no room", nothing)})
    by_id.clear()  # the map is its own
    assert (agents.all(), list(agents.left_out())) == ({"a": one}, ["b"])
    assert cast("object", agents.vectors()) == {"a": "vectors of a"}
    agents.swap({})
    assert (agents.all(), agents.left_out()) == ({}, {})
