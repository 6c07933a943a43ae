"""How long those wait who have files indexed."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from memd.agent.agents import Agents, RunningAgent
from memd.config.settings import AgentSettings
from memd.server.requests.sync import RequestDeadline, sync
from memd.server.scope import Caller
from memd.sources.root_links import ChangedLink
from memd.store.chunks import Counts
from memd_client import messages as wire
from tests.clock import hastily, now_s


async def _after(seconds: float, result: int | Exception) -> int:
    await asyncio.sleep(seconds)
    if isinstance(result, Exception):
        raise result
    return result


@pytest.mark.parametrize(
    ("timeout_ms", "expected"), [(1500, [[1, 2], None]), (900, [None, None]), (None, [[1, 2], [3]])]
)
def test_a_caller_waits_so_long_in_all(timeout_ms: int | None, expected: list[list[int] | None]) -> None:
    """Over several waits; what is left after the first is what the second has."""

    async def waits() -> tuple[list[list[int] | None], float]:
        deadline = RequestDeadline(timeout_ms)
        found = [await deadline.gather(_after(1, 1), _after(0.5, 2)), await deadline.gather(_after(1, 3))]
        return found, now_s()

    found, ended_s = hastily(waits())
    assert found == expected
    assert ended_s == pytest.approx(2.0 if timeout_ms is None else timeout_ms / 1000, abs=0.1)


def test_a_failure_is_raised_once_all_have_ended() -> None:
    """Nobody is left waiting for what another failed at."""

    async def fails() -> float:
        with pytest.raises(ValueError, match="first"):
            await RequestDeadline(5000).gather(
                _after(1, ValueError("first")), _after(2, ValueError("second"))
            )
        return now_s()

    assert hastily(fails()) == pytest.approx(2.0, abs=0.1)


class _Linked:
    """An agent of which a configured path may lead elsewhere, and its index service."""

    id = "main"
    embeds = False
    vectors_suspended = True
    settings = AgentSettings(workspace=Path("/nowhere"))
    missing = ()

    def __init__(self, link: ChangedLink | None) -> None:
        self.link = link
        self.index_service = self
        self.requests = 0

    async def changed_link(self) -> ChangedLink | None:
        return self.link

    def request(self, *, force: bool) -> int:
        assert not force
        self.requests += 1
        return 1

    async def counts(self) -> Counts:
        return Counts(0, 0, 0, 0, 0, 0, 0)


class _Owner:
    """A caller that means every agent."""

    key = None

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    async def agents_to_change(self, name: str | None, denial: str) -> list[RunningAgent]:
        assert name is None
        assert denial
        return list(self._agents.all().values())

    def means_all(self, _: str | None) -> bool:
        return False


@pytest.mark.parametrize("leads_elsewhere", [True, False])
async def test_an_agent_whose_symlink_leads_elsewhere_is_waited_for(leads_elsewhere: bool) -> None:
    """The pass is one over the new directory; one whose symlink leads nowhere is asked as it is."""
    link = ChangedLink(Path("/link"), Path("/one"), Path("/other") if leads_elsewhere else None)
    before, after, agents = _Linked(link), _Linked(None), Agents()
    agents.swap({"main": cast("RunningAgent", before)})
    asked = asyncio.create_task(sync(wire.Sync(wait=False), cast("Caller", _Owner(agents)), agents))
    for _ in range(20):
        await asyncio.sleep(0)
    assert asked.done() is not leads_elsewhere
    agents.swap({"main": cast("RunningAgent", after)})
    await asked
    assert (before.requests, after.requests) == ((0, 1) if leads_elsewhere else (1, 0))
