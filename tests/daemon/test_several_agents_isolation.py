"""Whatever agents, rules, keys and notes there are: a request sees what a few lines of plain rules say, and nothing else."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Literal

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.agent.agents import Agents
from memd.agent.build import build_agent
from memd.agent.supervisor import AgentSupervisor
from memd.backends.backend import BackendEnvironment
from memd.config.settings import AgentSettings, Config, DaemonSettings, PathMatch, Scope, ScopeRule
from memd.embedding.health_transitions import FallbackThresholds
from memd.embedding.registry import ProviderRegistry
from memd.embedding.running_provider import ProviderParts
from memd.providers.choose import ProviderChoice
from memd.server.handlers import Handlers
from memd.server.requests.control import DaemonControl
from memd.server.requests.status import ProcessFacts
from memd.store.embedding_cache import EmbeddingStore
from memd_client import messages as wire
from tests.fakes import HashingProvider
from tests.unchanging import nothing_changed, unchanging

IDS = ("main", "work", "Home-2")
NOTES = ("MEMORY.md", "user.md", "memory/one.md", "memory/two.md", "memory/deep/memory.md")
SAME = "The lighthouse is the same for everybody.\n"


# --- what is asked, said so that nobody has to take a key apart


class Asker(msgspec.Struct, frozen=True):
    """A session: its key, and what the key means."""

    key: str | None
    agent: str | None = None  # whom the key names
    rest: str = ""
    channel: str | None = None
    chat: Literal["direct", "group", "channel"] | None = None


def sessions(agent: str) -> list[Asker]:
    """Sessions of an agent, of every kind."""
    told: list[tuple[str, str | None, Literal["direct", "group", "channel"] | None]] = [
        ("main", None, "direct"),
        ("telegram:direct:1", "telegram", "direct"),
        ("telegram:group:1", "telegram", "group"),
        ("discord:channel:1", "discord", "channel"),
        ("hook:x", None, None),
    ]
    return [Asker(f"agent:{agent}:{rest}", agent, rest, channel, chat) for rest, channel, chat in told]


ASKERS = [
    Asker(None),
    *(session for agent in (*IDS, "nobody", "MAIN", "../main") for session in sessions(agent)),
    Asker("main", None, "main", None, "direct"),
    Asker("telegram:group:1", None, "telegram:group:1", "telegram", "group"),
    Asker("agent::main", "", "main"),
    Asker("AGENT:work:main", "work", "main"),
]


# --- the worlds they ask in


class Place(msgspec.Struct, frozen=True):
    """An agent: its notes by name, its rules, and whether it reads what others have."""

    notes: tuple[str, ...]
    scope: Scope
    has_shared: bool  # the directory that several agents index
    has_same: bool  # a note that others have word for word, under the same name
    is_inside: bool  # its workspace is in the memory of the first agent


CHANNELS = st.sampled_from([None, "telegram", "discord"])
CHATS: st.SearchStrategy[Literal["direct", "group", "channel"] | None] = st.sampled_from(
    [None, "direct", "group", "channel"]
)
PREFIXES = st.sampled_from([None, None, "telegram:", "Discord:Channel:*", "hook:x", "main"])
ACTIONS: st.SearchStrategy[Literal["allow", "deny"]] = st.sampled_from(["allow", "deny"])
RULES = st.builds(
    ScopeRule, ACTIONS, match=st.builds(PathMatch, channel=CHANNELS, chat_type=CHATS, key_prefix=PREFIXES)
)
SCOPES = st.builds(Scope, default=ACTIONS, rules=st.lists(RULES, max_size=3).map(tuple))
PLACES = st.builds(
    Place,
    notes=st.lists(st.sampled_from(NOTES), unique=True).map(tuple),
    scope=SCOPES,
    has_shared=st.booleans(),
    has_same=st.booleans(),
    is_inside=st.booleans(),
)
WORLDS = st.lists(PLACES, min_size=1, max_size=3).flatmap(
    lambda places: st.permutations(IDS).map(lambda names: dict(zip(names, places, strict=False)))
)


# Mostly sessions that name whom they are of, or nobody: the others end at the first comparison.
REQUESTS = st.lists(
    st.tuples(st.sampled_from([None, None, None, *IDS, "nobody"]), st.sampled_from(ASKERS)),
    min_size=6,
    max_size=12,
)


class Model:
    """What is on disk, and who may see what of it; the rules in their plainest form."""

    def __init__(self, home: Path, world: dict[str, Place]) -> None:
        self.world = world
        self.first = next(iter(world))
        self.shared = home / "shared"
        self.workspaces = {
            name: home / self.first / "memory" / "inner"
            if place.is_inside and name != self.first
            else home / name
            for name, place in world.items()
        }
        self.written: dict[Path, str] = {}
        self._write(self.shared / "common.md", "The lighthouse of all.\n")
        self._write(self.shared / "MEMORY.md", "The lighthouse of all, in private.\n")
        for name, place in world.items():
            for note in place.notes:
                self._write(self.workspaces[name] / note, f"The lighthouse of {name}, in {note}.\n")
            if place.has_same:
                self._write(self.workspaces[name] / "memory" / "same.md", SAME)

    def _write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.written[file] = text

    def indexed(self, name: str) -> dict[str, str]:
        """An agent's notes: path in the index -> text."""
        workspace = self.workspaces[name]
        found = {}
        for file, text in self.written.items():
            if file.is_relative_to(self.shared):
                if self.world[name].has_shared:
                    found[str(file)] = text
            elif file.is_relative_to(workspace / "memory") or file.parent == workspace:
                found[file.relative_to(workspace).as_posix()] = text
        return found

    def meant(self, name: str | None, asker: Asker) -> str:
        """An agent; "denied" or "unknown"."""
        if name is not None and asker.agent is not None and name != asker.agent:
            return "denied"
        wanted = asker.agent if name is None else name
        if wanted is None:
            wanted = self.first if len(self.world) == 1 else "main"
        if wanted not in self.world:
            return "unknown"
        return wanted if self._allowed(self.world[wanted].scope, asker) else "denied"

    @staticmethod
    def _allowed(scope: Scope, asker: Asker) -> bool:
        if asker.key is None:
            return True
        for rule in scope.rules:
            match = rule.match
            if match.channel is not None and match.channel != asker.channel:
                continue
            # Who reads along is not told by every key: a deny rule then counts them in.
            untold = asker.chat is None and rule.action == "deny"
            if match.chat_type is not None and match.chat_type != asker.chat and not untold:
                continue
            if match.key_prefix is not None and not asker.rest.startswith(
                match.key_prefix.lower().removesuffix("*")
            ):
                continue
            return rule.action == "allow"
        return scope.default == "allow"

    def visible(self, agent: str, asker: Asker) -> dict[str, str]:
        """What of an agent's notes a session may see."""
        is_private = asker.key is None or asker.chat == "direct"
        return {
            path: text
            for path, text in self.indexed(agent).items()
            if is_private or Path(path).name.lower() not in {"memory.md", "user.md"}
        }


@asynccontextmanager
async def living(home: Path, model: Model, provider: HashingProvider) -> AsyncIterator[Handlers]:
    """The agents of a world, with everything indexed and embedded, and no socket."""
    (home / "state" / "agents").mkdir(parents=True)
    config = Config(
        daemon=DaemonSettings(),
        agents={
            name: AgentSettings(
                workspace=model.workspaces[name],
                extra_paths=(model.shared,) if place.has_shared else (),
                scope=place.scope,
            )
            for name, place in model.world.items()
        },
        file=None,
    )
    agents = Agents()
    cache = EmbeddingStore(home / "state" / "embeddings.sqlite")
    await cache.open()
    async with asyncio.TaskGroup() as tasks:
        engines = ProviderRegistry(
            ProviderParts(cache, tasks, Random(1), FallbackThresholds()),
            lambda _: ProviderChoice(provider, None),
        )
        fleet = AgentSupervisor(
            agents,
            engines,
            tasks,
            lambda *parts: build_agent(home / "state", BackendEnvironment({}, home), *parts),
            lambda agent: agent.index_service.run(),
        )
        await fleet.follow(config)
        control = DaemonControl(stop=lambda: None, reload=nothing_changed)
        handlers = Handlers(agents, ProcessFacts("0", home / "s", unchanging(config)), control)
        report = await handlers.handle(wire.Sync())
        assert isinstance(report, wire.SyncReport)
        assert report.vectors == "complete", report
        yield handlers
        await fleet.close()
        await engines.close()
    await cache.close()


def scratch() -> Iterator[Path]:
    """A scratch directory for each world."""
    home = Path(tempfile.mkdtemp(prefix="memd-")).resolve()
    try:
        yield home
    finally:
        shutil.rmtree(home)


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(world=WORLDS, requests=REQUESTS)
def test_a_request_sees_its_agents_notes_and_no_others(
    world: dict[str, Place], requests: list[tuple[str | None, Asker]]
) -> None:
    """Hits, candidates, excerpts, counts and errors, whatever session asks and whatever agent it names."""
    for home in scratch():
        asyncio.run(asked_from_every_side(home, Model(home, world), requests))


async def asked_from_every_side(home: Path, model: Model, requests: list[tuple[str | None, Asker]]) -> None:
    provider = HashingProvider()
    async with living(home, model, provider) as handlers:
        await asyncio.gather(*(compare(handlers, model, name, asker) for name, asker in requests))
    sent = [text for request in provider.requests for text in request]
    assert len(sent) == len(set(sent)), "a text that several agents have is embedded once"


async def compare(handlers: Handlers, model: Model, name: str | None, asker: Asker) -> None:
    """One session and one name of an agent, through every request."""
    who: dict[str, Any] = {"agent": name, "session_key": asker.key}
    meant = model.meant(name, asker)
    seen = model.visible(meant, asker) if meant in model.world else {}
    found = await handlers.handle(
        wire.Search(query="lighthouse same everybody", max_results=50, min_score=0.0, **who)
    )
    told = await handlers.handle(wire.Explain(query="lighthouse", max_results=50, min_score=0.0, **who))
    status = await handlers.handle(wire.Status(**who))
    if meant == "unknown":
        is_all = asker.key is None and name is None
        for reply in (found, told, *([] if is_all else [status])):
            assert isinstance(reply, wire.Failure)
            assert reply.code == "unknown_agent"
            if asker.key is not None:
                told_back = reply.message.replace(repr(name), "").replace(repr(asker.agent), "")
                assert not [one for one in ("work", "Home-2") if one in told_back]
        return
    assert isinstance(found, wire.Found)
    assert isinstance(told, wire.Explanation)
    assert isinstance(status, wire.StatusReport)
    assert found.scope_denied is told.found.scope_denied is (meant == "denied")
    # One text is shown once, though it stand in a note of the agent and in one of another that lies inside.
    assert sorted(hit.snippet.strip() for hit in found.results) == sorted(
        {text.strip() for text in seen.values()}
    )
    for hit in found.results:
        assert hit.snippet.strip() == seen[hit.path].strip()
    assert {candidate.path for candidate in told.candidates} == seen.keys()
    assert told.considered == told.by_words == len(seen)
    for path in {path for one in model.world for path in model.indexed(one)}:
        note = await handlers.handle(wire.Get(path=path, **who))
        assert isinstance(note, wire.Note)
        assert note.text == seen.get(path, "").strip()
        assert note.missing is (path not in seen)
    if asker.key is not None or name is not None:
        assert list(status.agents) == ([] if meant == "denied" else [meant])
    if asker.key is not None:
        warmed = await handlers.handle(wire.Warm(session_key=asker.key, agent=name))
        assert isinstance(warmed, wire.SyncReport)
        counted = len(seen) if asker.chat == "direct" else 0
        assert (warmed.files, warmed.chunks) == (counted, counted)
        if meant in model.world:
            assert status.agents[meant].files == counted
