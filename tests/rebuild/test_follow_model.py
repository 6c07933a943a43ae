"""An agent's index that follows whoever is to embed."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from memd.config.settings import AgentSettings
from memd.embedding.registry import AgentQueues
from memd.rebuild.cost import RebuildPermission
from memd.rebuild.follow_model import ModelFollower
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.asyncio_utils import ChangeNotifier
from memd.runtime.timing import LONGEST_WAIT_S
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from tests.clock import hastily
from tests.store.conftest import FINGERPRINT


@pytest.mark.parametrize(
    ("failure", "is_again"),
    [
        (StoreUnavailable("the disk is busy"), True),
        (ValueError("nobody foresaw this"), True),
        (StoreDamaged("a page is not what it was"), False),
    ],
)
def test_what_fails_is_tried_again_and_damage_is_mended(failure: Exception, *, is_again: bool) -> None:
    """Neither ends the task: it would take the other agents with it."""
    looks: list[float] = []
    index = Index(Path("/nowhere/main.sqlite"))

    class Bench(ModelFollower):
        async def _adapt(self) -> None:
            looks.append(asyncio.get_running_loop().time())
            if len(looks) == 1:
                raise failure

    async def main() -> None:
        made = Bench(
            "main",
            AgentSettings(workspace=Path("/nowhere")),
            index,
            FINGERPRINT,
            queues=cast("AgentQueues", SimpleNamespace(providers=SimpleNamespace(changes=ChangeNotifier()))),
            rebuilder=cast("Rebuilder", SimpleNamespace()),
            permission=cast("RebuildPermission", SimpleNamespace()),
        )
        task = asyncio.create_task(made.run())
        await asyncio.sleep(10 * LONGEST_WAIT_S)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    with capture_logs():
        hastily(main())
    assert looks == pytest.approx([0.0, LONGEST_WAIT_S] if is_again else [0.0])
    assert index.damage.reason == (None if is_again else str(failure))
