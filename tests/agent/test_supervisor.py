"""Agents as the configuration has them, whatever fails or is given up in between; what they are made of are fakes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from memd.agent.agents import Agents, RunningAgent
from memd.agent.supervisor import AgentSupervisor
from memd.config.settings import AgentSettings, Config, DaemonSettings
from memd.embedding.registry import AgentProviders, ProviderRegistry
from memd.runtime.threads import NoThread
from memd.runtime.timers import LONGEST_WAIT_S
from memd.sources.root_links import ChangedLink
from memd.store.errors import StoreDamaged, StoreUnavailable
from tests.clock import hastily, now_s, run_hastily
from tests.wait import until_async

IDS = ("a", "b", "main")


class _Member:
    """An agent that is open until it is closed."""

    def __init__(self, world: "_World", agent_id: str, settings: AgentSettings) -> None:
        self.id = agent_id
        self.settings = settings
        self.is_open = True
        self.moved = asyncio.Event()  # its tasks have noticed that its roots lead elsewhere
        self.link: ChangedLink | None = None  # so it is, and they have not
        self.has_forgotten = False  # where they led
        self.index_service = self  # of which the supervisor asks that
        self._world = world

    async def changed_link(self) -> ChangedLink | None:
        return self.link

    async def forget_links(self) -> None:
        self.has_forgotten = True
        raise StoreUnavailable("the disk is full")  # which keeps it from nothing

    async def close(self) -> None:
        self.is_open = False
        await self._world.reached("close", self.id)


class _Provided:
    """What embeds, and for what settings."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self.released = 0

    def release(self) -> None:
        self.released += 1


class _World:
    """A fleet, and the steps at which it is to fail or to stand still."""

    def __init__(self, tasks: asyncio.TaskGroup, **how: int) -> None:
        self.agents = Agents()
        self.provided: list[_Provided] = []
        self.built: list[str] = []
        self.kept_alive: list[str] = []
        self.failures: dict[tuple[str, str], Exception] = {}
        self.standing_still: tuple[str, str] | None = None
        self.stands = asyncio.Event()
        self.fleet = AgentSupervisor(
            self.agents, cast("ProviderRegistry", self), tasks, self._build, self._keep, **how
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
        self.provided.append(_Provided(settings))
        return self.provided[-1]

    async def _keep(self, agent: RunningAgent) -> None:
        self.kept_alive.append(agent.id)
        try:
            await cast("_Member", agent).moved.wait()
        finally:
            self.kept_alive.remove(agent.id)

    async def _build(self, agent_id: str, settings: AgentSettings, providers: AgentProviders) -> RunningAgent:
        assert providers.settings == settings
        self.built.append(agent_id)
        await self.reached("build", agent_id)
        return cast("RunningAgent", _Member(self, agent_id, settings))

    @property
    def serving(self) -> dict[str, float]:
        """Those that answer, and a setting of each."""
        members = cast("dict[str, _Member]", self.agents.all())
        assert all(member.is_open for member in members.values())
        return {agent_id: member.settings.max_file_mb for agent_id, member in members.items()}


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
    """Whatever the reason, which is told once, with the stack of a fault of memd; it is tried again, and follows a later configuration as well."""
    world.failures[step, "a"] = failure
    with structlog.testing.capture_logs() as logs:
        await world.fleet.follow(_all_with(2))
        left_out = world.agents.left_out()["a"]
        await left_out.try_again()
    assert world.serving == {"b": 2, "main": 2}
    told = [(event["agent"], event.get("exc_info")) for event in logs if event["event"] == "agent.left_out"]
    assert told == [("a", failure if isinstance(failure, RuntimeError) else None)]
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
    assert following.cancelled()
    assert agent_id not in world.serving
    world.standing_still = None
    await world.fleet.follow(_all_with(next_mb))
    assert world.serving == dict.fromkeys(IDS, next_mb)


def _held(world: _World) -> list[str]:
    """Whose providers were not given back, nor given back twice."""
    assert all(one.released <= 1 for one in world.provided)
    return sorted(one.settings.workspace.name for one in world.provided if not one.released)


async def test_the_main_agent_is_begun_first(world: _World) -> None:
    """It is what most requests mean."""
    assert world.built == ["main", "a", "b"]


async def test_only_what_changed_is_stopped_and_started(world: _World) -> None:
    """What is gone gives back all that it had."""
    changed = dict(_all_with(1).agents)
    del changed["a"]
    changed["b"] = _all_with(2).agents["b"]
    await world.fleet.follow(Config(daemon=DaemonSettings(), agents=changed, file=None))
    assert world.serving == {"b": 2, "main": 1}
    assert world.built[3:] == ["b"]
    assert _held(world) == sorted(world.kept_alive) == ["b", "main"]
    assert world.agents.left_out() == {}


async def test_all_is_given_back_at_the_end(world: _World) -> None:
    """Also what one has that cannot run."""
    world.failures["build", "a"] = NoThread("no thread can be started")
    await world.fleet.follow(_all_with(2))
    assert _held(world) == ["a", "b", "main"]  # one embeds with what it got, whenever it can begin
    members = world.agents.all().values()
    await world.fleet.close()
    assert (_held(world), world.kept_alive) == ([], [])
    assert not any(cast("_Member", member).is_open for member in members)


async def test_no_more_agents_run_than_there_are_files_for() -> None:
    """The reason says what to do; when one goes, one that waits has its place."""
    async with asyncio.TaskGroup() as tasks:
        world = _World(tasks, most=2)
        await world.fleet.follow(_all_with(1))
        assert set(world.serving) == {"main", "a"}
        left_out = world.agents.left_out()["b"]
        assert "more than 2 agents: raise `ulimit -n`" in left_out.reason
        await left_out.try_again()
        assert set(world.serving) == {"main", "a"}
        fewer = {agent_id: one for agent_id, one in _all_with(1).agents.items() if agent_id != "a"}
        await world.fleet.follow(Config(daemon=DaemonSettings(), agents=fewer, file=None))
        assert "b" in world.agents.left_out()
        await world.agents.left_out()["b"].try_again()
        assert (set(world.serving), world.agents.left_out()) == ({"main", "b"}, {})
        await world.fleet.close()


async def test_one_that_is_being_started_has_its_place() -> None:
    """However long its disk takes."""
    async with asyncio.TaskGroup() as tasks:
        world = _World(tasks, most=2)
        world.standing_still = ("build", "main")
        following = asyncio.create_task(world.fleet.follow(_all_with(1)))
        await world.stands.wait()
        for _ in range(9):
            await asyncio.sleep(0)
        assert world.built == ["main", "a"]
        following.cancel()
        await asyncio.wait([following])
        await world.fleet.close()


async def test_one_that_cannot_be_started_takes_no_place() -> None:
    """Others have it, and it waits until one of them goes."""
    async with asyncio.TaskGroup() as tasks:
        world = _World(tasks, most=2)
        world.failures["build", "main"] = NoThread("no thread can be started")
        await world.fleet.follow(_all_with(1))
        assert (set(world.serving), set(world.agents.left_out())) == ({"a", "b"}, {"main"})
        world.failures.clear()
        await world.agents.left_out()["main"].try_again()
        assert (set(world.serving), set(world.agents.left_out())) == ({"a", "b"}, {"main"})
        await world.fleet.close()


@run_hastily
async def test_who_waits_for_one_to_be_tried_again_is_told_that_it_is_gone() -> None:
    """While the configuration that has it no more is followed, nothing is tried."""
    async with asyncio.TaskGroup() as tasks:
        world = _World(tasks)
        world.failures["build", "a"] = NoThread("no thread can be started")
        await world.fleet.follow(_all_with(1))
        closes, goes_on = asyncio.Event(), asyncio.Event()

        async def close() -> None:
            closes.set()
            await goes_on.wait()

        cast("_Member", world.agents.all()["b"]).close = close  # type: ignore[method-assign]
        only_main = Config(daemon=DaemonSettings(), agents={"main": _all_with(1).agents["main"]}, file=None)
        following = asyncio.create_task(world.fleet.follow(only_main))
        await closes.wait()
        trying = asyncio.create_task(_awaited(world.agents.left_out()["a"].try_again()))
        await asyncio.sleep(0)
        goes_on.set()
        async with asyncio.timeout(60):
            await asyncio.gather(following, trying)
        assert (set(world.serving), world.agents.left_out()) == ({"main"}, {})
        await world.fleet.close()


async def _awaited(what: Awaitable[None]) -> None:
    await what


def test_one_that_cannot_run_is_tried_again_less_and_less_often() -> None:
    """By itself; nobody has to ask. What has changed of the reason is told."""
    tried: list[float] = []

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            world = _World(tasks)
            build = world.fleet._build  # noqa: SLF001 - to see when

            async def noted(agent_id: str, *of: Any) -> RunningAgent:
                if agent_id == "a":
                    tried.append(now_s())
                return await build(agent_id, *of)

            world.fleet._build = noted  # noqa: SLF001 - as said
            world.failures["build", "a"] = NoThread("no thread")
            with structlog.testing.capture_logs() as logs:
                await world.fleet.follow(_all_with(1))
                await asyncio.sleep(9 * LONGEST_WAIT_S)
                world.failures["build", "a"] = StoreDamaged("page 7")
                await asyncio.sleep(2 * LONGEST_WAIT_S)
            assert [one["reason"] for one in logs if one["event"] == "agent.left_out"] == [
                "no thread",
                "page 7",
            ]
            assert world.agents.left_out()["a"].reason == "page 7"
            world.failures.clear()
            await asyncio.sleep(2 * LONGEST_WAIT_S)
            assert (world.serving["a"], world.agents.left_out()) == (1, {})
            count = len(tried)
            await asyncio.sleep(9 * LONGEST_WAIT_S)
            assert len(tried) == count
            await world.fleet.close()

    hastily(main())
    waits = [later - earlier for earlier, later in pairwise(tried)]
    assert waits[0] <= 2
    assert LONGEST_WAIT_S / 2 <= max(waits) <= LONGEST_WAIT_S + 0.001
    assert waits[:5] == sorted(waits[:5])


def _member(world: _World, agent_id: str) -> _Member:
    return cast("_Member", world.agents.all()[agent_id])


@pytest.mark.parametrize("by_request", [False, True])
async def test_an_agent_whose_roots_lead_elsewhere_is_started_again_alone(
    world: _World, by_request: bool
) -> None:
    """By itself, or where somebody asks; requests that mean it wait for it, and however often the roots move, it follows."""
    others = {agent_id: _member(world, agent_id) for agent_id in ("b", "main")}
    for _ in range(3):
        before = _member(world, "a")
        if by_request:
            before.link = ChangedLink(Path("/w"), Path("/one"), None)
            await world.fleet.resolve_again()
        else:
            before.moved.set()
        async with asyncio.timeout(60):
            await world.agents.replaced(cast("RunningAgent", before))
        assert (await world.agents.meant_by("a", None)).id == "a"
        assert not before.is_open
        assert before.has_forgotten is by_request
    assert others == {agent_id: _member(world, agent_id) for agent_id in others}
    assert world.serving == dict.fromkeys(IDS, 1)
    assert sorted(world.built) == ["a", "a", "a", "a", "b", "main"]


async def test_an_agent_that_cannot_be_started_again_with_its_new_roots_is_left_out(world: _World) -> None:
    """It is tried again, as any that cannot be started."""
    world.failures["build", "a"] = NoThread("no thread can be started")
    _member(world, "a").moved.set()
    await until_async(lambda: "a" in world.agents.left_out())
    world.failures.clear()
    await world.agents.left_out()["a"].try_again()
    assert world.serving == dict.fromkeys(IDS, 1)


@pytest.mark.parametrize("agent_id", IDS)
async def test_the_end_waits_for_no_agent_that_is_being_started_again(world: _World, agent_id: str) -> None:
    """And no agent is started after it."""
    world.standing_still = ("build", agent_id)
    _member(world, agent_id).moved.set()
    await world.stands.wait()
    for other in world.agents.all():
        if other != agent_id:
            _member(world, other).moved.set()
    async with asyncio.timeout(60):
        await world.fleet.close()
    assert world.kept_alive == []
    assert len(world.built) == len(IDS) + 1
