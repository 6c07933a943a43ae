"""Agents as the configuration has them, whatever fails or is given up in between; what they are made of are fakes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
import structlog

from memd.agent.agents import Agents, RunningAgent
from memd.agent.supervisor import AgentSupervisor
from memd.config.settings import AgentSettings, Config, DaemonSettings
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.runtime.threads import NoThread

IDS = ("a", "b", "main")


class _Member:
    """An agent that is open until it is closed."""

    def __init__(self, world: "_World", agent_id: str, settings: AgentSettings) -> None:
        self.id = agent_id
        self.settings = settings
        self.is_open = True
        self._world = world

    async def close(self) -> None:
        self.is_open = False
        await self._world.reached("close", self.id)


class _Provided:
    """What embeds, and for what settings."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings

    def release(self) -> None:
        pass


class _World:
    """A fleet, and the steps at which it is to fail or to stand still."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.agents = Agents()
        self.failures: dict[tuple[str, str], Exception] = {}
        self.standing_still: tuple[str, str] | None = None
        self.stands = asyncio.Event()
        self.fleet = AgentSupervisor(
            self.agents, cast("ProviderRegistry", self), tasks, self._build, _for_ever
        )

    async def reached(self, step: str, agent_id: str) -> None:
        if (step, agent_id) == self.standing_still:
            self.stands.set()
            await asyncio.Event().wait()
        if (failure := self.failures.get((step, agent_id))) is not None:
            raise failure

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        yield

    async def providers_for(self, settings: AgentSettings) -> _Provided:
        await self.reached("providers", settings.workspace.name)
        return _Provided(settings)

    async def _build(self, agent_id: str, settings: AgentSettings, providers: AgentProviders) -> RunningAgent:
        assert providers.settings == settings
        await self.reached("build", agent_id)
        return cast("RunningAgent", _Member(self, agent_id, settings))

    @property
    def serving(self) -> dict[str, float]:
        """Those that answer, and a setting of each."""
        members = cast("dict[str, _Member]", self.agents.all())
        assert all(member.is_open for member in members.values())
        return {agent_id: member.settings.max_file_mb for agent_id, member in members.items()}


async def _for_ever(_: RunningAgent) -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def world() -> AsyncIterator[_World]:
    """One in which three agents run."""
    async with asyncio.TaskGroup() as tasks:
        one = _World(tasks)
        await one.fleet.follow(_all_with(1))
        assert one.serving == dict.fromkeys(IDS, 1)
        yield one
        one.failures.clear()
        await one.fleet.close()


def _all_with(max_file_mb: float) -> Config:
    agents = {
        agent_id: AgentSettings(workspace=Path("/w") / agent_id, max_file_mb=max_file_mb) for agent_id in IDS
    }
    return Config(daemon=DaemonSettings(), agents=agents, file=None)


@pytest.mark.parametrize("agent_id", IDS)
async def test_an_agent_that_cannot_be_closed_keeps_none_from_its_new_settings(
    world: _World, agent_id: str
) -> None:
    """Neither those that were closed before it nor those after it; and the log tells."""
    world.failures["close", agent_id] = RuntimeError("the disk")
    with structlog.testing.capture_logs() as logs:
        await world.fleet.follow(_all_with(2))
    assert world.serving == dict.fromkeys(IDS, 2)
    assert [event["agent"] for event in logs if event["log_level"] == "error"] == [agent_id]


@pytest.mark.parametrize("step", ["providers", "build"])
@pytest.mark.parametrize("failure", [RuntimeError("a bug"), NoThread("no thread can be started")])
async def test_an_agent_that_cannot_be_started_is_left_out_alone(
    world: _World, step: str, failure: Exception
) -> None:
    """Whatever the reason, which is told once; it is tried again, and follows a later configuration as well."""
    world.failures[step, "a"] = failure
    with structlog.testing.capture_logs() as logs:
        await world.fleet.follow(_all_with(2))
        left_out = world.agents.left_out()["a"]
        await left_out.try_again()
    assert world.serving == {"b": 2, "main": 2}
    assert [event["agent"] for event in logs if event["event"] == "agent.left_out"] == ["a"]
    await world.fleet.follow(_all_with(3))
    assert world.serving == {"b": 3, "main": 3}
    world.failures.clear()
    await world.agents.left_out()["a"].try_again()
    assert world.serving == dict.fromkeys(IDS, 3)


@pytest.mark.parametrize("step", ["close", "providers", "build"])
@pytest.mark.parametrize("agent_id", IDS)
@pytest.mark.parametrize("next_mb", [1, 2, 3])
async def test_what_was_given_up_half_way_is_made_up_for_by_the_next_call(
    world: _World, step: str, agent_id: str, next_mb: float
) -> None:
    """Whether that brings the same settings as before, those that were given up, or others; and no stopped agent is asked."""
    world.standing_still = (step, agent_id)
    following = asyncio.create_task(world.fleet.follow(_all_with(2)))
    await world.stands.wait()
    following.cancel()
    await asyncio.wait([following])
    assert agent_id not in world.serving
    world.standing_still = None
    await world.fleet.follow(_all_with(next_mb))
    assert world.serving == dict.fromkeys(IDS, next_mb)
