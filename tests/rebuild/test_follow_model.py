"""An agent's index that follows whoever is to embed."""

import asyncio
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.config.settings import AgentSettings
from memd.embedding.registry import AgentQueues
from memd.errors import FatalError
from memd.indexing.pass_scheduler import PassScheduler
from memd.rebuild import follow_model
from memd.rebuild.cost import RebuildPermission
from memd.rebuild.follow_model import ModelFollower
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.timers import LONGEST_WAIT_S
from memd.store.embedding_cache import Space
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.clock import hastily
from tests.store.conftest import FINGERPRINT
from tests.wait import until_async


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

    with capture_logs() as logs:
        hastily(main())
    assert looks == pytest.approx([0.0, LONGEST_WAIT_S] if is_again else [0.0])
    # Only what nobody foresaw is told with its place.
    defects = [one["exc_info"] for one in logs if one["event"] == "sync.adaptation_failed"]
    assert defects == ([failure] if isinstance(failure, ValueError) else [])
    assert index.damage.reason == (None if is_again else str(failure))


class Queue:
    """What embeds for one model."""

    def __init__(self, model: str, confirmation: object = None) -> None:
        self.model = model
        self.known = SimpleNamespace(space=("fake", model, "k"))
        self.confirmations = SimpleNamespace(asked_before_rebuild=lambda _: confirmation)


class Place:
    """What follows a model, with stand-ins for all around it, and what was asked of them."""

    def __init__(self, serving: Space | None, wanted: Fingerprint | None) -> None:
        self.done: list[object] = []
        self.index = SimpleNamespace(space=serving, fingerprint=self.stored, take_vectors=self.take_vectors)
        self.providers = SimpleNamespace(
            changes=ChangeNotifier(),
            wanted=None if wanted is None else wanted.space,
            queue=lambda space: None if space is None else f"queue of {space[1]}",
            hold=lambda spaces: self.done.append(("hold", {space[1] for space in spaces})),
        )
        self.confirmation: object = None  # what is asked before a rebuild
        self.queues = SimpleNamespace(
            suspended=False, providers=self.providers, queue=self.queue, serve=self.serve, leave=self.leave
        )
        self.rebuilder = SimpleNamespace(
            reason=None,
            failure=None,
            changes_space=False,
            keep_current_space=lambda wanted: self.done.append(("keep", wanted.model)),
            request_space=lambda reason, wanted: self.done.append(("want", wanted.model, reason)),
            cancel_attempt=lambda: self.done.append("give up"),
        )
        self.permission = SimpleNamespace(asked=None)
        self.follower = ModelFollower(
            "main",
            AgentSettings(workspace=Path("/nowhere")),
            cast("Index", self.index),
            FINGERPRINT,
            queues=cast("AgentQueues", self.queues),
            rebuilder=cast("Rebuilder", self.rebuilder),
            permission=cast("RebuildPermission", self.permission),
        )

    async def stored(self) -> Fingerprint:
        return FINGERPRINT

    async def take_vectors(self, wanted: Fingerprint) -> None:
        self.done.append(("take", wanted.model))
        self.index.space = wanted.space

    def queue(self, space: Space | None) -> object:
        return None if space is None else Queue(space[1], self.confirmation)

    def serve(self, queue: Any, _: object) -> None:
        self.done.append(("serve", queue.model))

    async def leave(self, but: Collection[Any] = ()) -> None:
        kept = {getattr(one, "model", one) for one in but if one is not None}
        self.done.append(("leave all but", kept))

    async def adapted(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """What is done when the model is looked at once."""
        monkeypatch.setattr(
            follow_model,
            "wanted_fingerprint",
            lambda _, space: msgspec.structs.replace(FINGERPRINT, model=space[1]),
        )
        monkeypatch.setattr(follow_model, "space_of", lambda space: space)
        task = asyncio.create_task(self.follower.run())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return self.done


OTHER = msgspec.structs.replace(FINGERPRINT, model="other")


@pytest.mark.parametrize(
    ("serving", "wanted", "expected"),
    [
        (
            FINGERPRINT.space,
            FINGERPRINT,
            [("keep", "m"), ("hold", {"m"}), ("serve", "m"), ("leave all but", {"m", "queue of m"})],
        ),
        (
            None,
            FINGERPRINT,
            [
                ("take", "m"),
                ("keep", "m"),
                ("hold", {"m"}),
                ("serve", "m"),
                ("leave all but", {"m", "queue of m"}),
            ],
        ),
        (
            FINGERPRINT.space,
            OTHER,
            [
                ("want", "other", "the embedding model changed from fake/m to fake/other"),
                ("hold", {"m"}),
                ("serve", "m"),
                ("leave all but", {"m", "queue of other"}),
            ],
        ),
        (FINGERPRINT.space, None, [("hold", {"m"}), ("serve", "m"), ("leave all but", {"m"})]),
        (None, None, [("hold", set()), ("leave all but", set())]),
    ],
)
async def test_an_index_gets_the_vectors_that_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
    serving: Space | None,
    wanted: Fingerprint | None,
    expected: list[object],
) -> None:
    """In itself where it has none, in one beside it where it has others; whoever embeds neither is left."""
    assert await Place(serving, wanted).adapted(monkeypatch) == expected


@pytest.mark.parametrize(("asked", "is_given_up"), [("m", False), ("other", True), (None, False)])
async def test_a_rebuild_that_asked_another_queue_is_given_up(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, is_given_up: bool
) -> None:
    """Nobody can confirm there any more what it waits for."""
    place = Place(FINGERPRINT.space, FINGERPRINT)
    queues = {name: Queue(name) for name in ("m", "other")}
    place.providers.queue = lambda space: queues["m"] if space is not None and space[1] == "m" else None
    place.permission.asked = None if asked is None else queues[asked]
    assert ("give up" in await place.adapted(monkeypatch)) is is_given_up


@pytest.mark.parametrize("changes_space", [False, True])
async def test_where_vectors_rest_nothing_is_built_for_another_model(
    monkeypatch: pytest.MonkeyPatch, changes_space: bool
) -> None:
    """And nobody embeds."""
    place = Place(FINGERPRINT.space, OTHER)
    place.queues.suspended, place.rebuilder.changes_space = True, changes_space
    given_up = [("keep", "m")] if changes_space else []
    assert await place.adapted(monkeypatch) == [*given_up, ("leave all but", set())]


@pytest.mark.parametrize(
    ("rebuilder", "confirmation", "is_served"),
    [
        ({}, None, True),
        ({"reason": "the chunking changed"}, None, False),
        ({"reason": "the chunking changed", "failure": "the disk is full"}, None, True),
        ({"reason": "the model changed", "changes_space": True}, None, True),
        ({"reason": "the chunking changed"}, "40 texts", True),
    ],
)
def test_an_index_that_is_about_to_be_replaced_gets_no_vectors(
    rebuilder: dict[str, object], confirmation: object, is_served: bool
) -> None:
    """Unless that may take long, or answers by meaning until the other can."""
    place = Place(FINGERPRINT.space, FINGERPRINT)
    vars(place.rebuilder).update(rebuilder)
    place.confirmation = confirmation
    place.follower.wake_queue()
    assert place.done == ([("serve", "m")] if is_served else [])


async def test_what_ends_the_daemon_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time mends a fatal error."""
    place = Place(None, FINGERPRINT)

    async def fail(_: Fingerprint) -> None:
        raise FatalError("there is no index", exit_code=1)

    place.index.take_vectors = fail
    monkeypatch.setattr(follow_model, "wanted_fingerprint", lambda *_: FINGERPRINT)
    with pytest.raises(FatalError):
        await asyncio.wait_for(place.follower.run(), 20)


async def test_the_queue_looks_after_each_pass_and_each_new_index() -> None:
    """Of a new index the model is looked at again, too."""
    place = Place(FINGERPRINT.space, FINGERPRINT)
    passes = SimpleNamespace(succeeded=ChangeNotifier())
    place.rebuilder.replaced = ChangeNotifier()
    task = asyncio.create_task(place.follower.keep_queue_awake(cast("PassScheduler", passes)))
    await asyncio.sleep(0)
    for number, changed in enumerate((passes.succeeded, place.rebuilder.replaced, passes.succeeded), 1):
        changed.notify()
        await until_async(lambda number=number: place.done == [("serve", "m")] * number)  # type: ignore[misc]
    task.cancel()
    await asyncio.wait([task])
