"""An agent that is built from real parts."""

import asyncio
from pathlib import Path

import pytest

from memd.agent.build import build_agent, keep
from memd.backends.backend import BackendEnvironment
from memd.config.settings import AgentSettings
from tests.embedding.supplies import silent
from tests.wait import until_async


async def test_a_backend_that_cannot_be_prepared_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure shows in status, and edits are indexed all the same."""
    (tmp_path / "state" / "agents").mkdir(parents=True)
    (tmp_path / "workspace").mkdir()
    settings = AgentSettings(workspace=tmp_path / "workspace")
    around = BackendEnvironment({}, tmp_path)
    agent = await build_agent(tmp_path / "state", around, "main", settings, silent(settings))

    async def fails() -> None:
        raise ValueError("nobody foresaw this")

    monkeypatch.setattr(agent.backend, "warm", fails)
    keeping = asyncio.create_task(keep(agent))
    told = await until_async(lambda: agent.sync.health.maintenance)
    assert told is not None
    assert told.startswith("preparing the backend failed")
    assert "ValueError" in told
    (settings.workspace / "MEMORY.md").write_text("Still here.\n")
    await agent.sync.wait_for_pass(agent.sync.request())
    assert (await agent.index.counts()).files == 1
    assert not keeping.done()
    keeping.cancel()
    await asyncio.wait([keeping])
    await agent.close()
