"""Nobody gets what is another's: by any request, named in any way, over the socket, by tools and by hooks."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd_client import Client
from memd_client import messages as wire
from memd_client.tools import Tools
from tests.daemon.process import ROOT, Daemon
from tests.fakes.homes import ClaudeCode, OpenClaw
from tests.server.stranger import Stranger

AT = 1_772_442_000.0  # 2 March 2026
MAIN, WORK, OWNER = (
    "heron",
    "porcupine",
    "walrus",
)  # notes of main; all of work; what of main is for its owner alone
QUESTION = "what does the vault open with"
OPEN = 'scope = { default = "allow", rules = [{ action = "allow" }] }'
GROUP = "agent:main:telegram:group:1"

Ask = Callable[[str | None, str | None], wire.Request]
"""A request, by agent and session key."""


class World(msgspec.Struct, frozen=True):
    """Two agents of one daemon."""

    daemon: Daemon
    paths: tuple[str, ...]  # all names and places of what is work's

    def answered(self, *requests: wire.Request) -> list[wire.Reply]:
        """The answers, in the order of the requests, over one connection."""
        with Stranger(self.daemon.socket) as stranger:
            stranger.greet()
            answers: dict[int, wire.Reply] = {}
            for start in range(0, len(requests), 50):
                piece = requests[start : start + 50]
                stranger.ask(*piece, first=start + 1)
                answers |= stranger.hear_some(len(piece))
        return [answers[number] for number in range(1, len(requests) + 1)]


def write(daemon: Daemon, agent: str, name: str, word: str) -> None:
    """A note that tells what the vault of an agent opens with."""
    file = daemon.home / agent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {name}\n\nThe vault opens with the word {word}.\n")


def write_private(daemon: Daemon) -> None:
    """What of main is for nobody but its owner: curated notes of any agent's, and what was said."""
    for name in ("MEMORY.md", "USER.md", "extra/USER.md", "extra/GEMINI.md", "extra/memory_summary.md"):
        write(daemon, "main", name, OWNER)
    session = OpenClaw(daemon.home / "main").session(at=AT)
    session.user(QUESTION, AT)
    session.assistant(f"The vault opens with the word {OWNER}.", AT)


def paths_of(hit: wire.Hit) -> list[str]:
    """The paths of a hit, and of those that say the same."""
    return [hit.path, *(copy.rpartition("#")[0] for copy in hit.copies)]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Everything is indexed; groups may ask."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch).resolve())
        home = daemon.home
        write(daemon, "main", "memory/a.md", MAIN)
        write(daemon, "main", "extra/b.md", MAIN)
        for name in ("MEMORY.md", "memory/work.md", "extra/c.md"):
            write(daemon, "work", name, WORK)
        said = ClaudeCode(home / "work").session(at=AT)
        said.user(QUESTION, AT)
        said.assistant(f"The vault opens with the word {WORK}.", at=AT)
        (home / "main" / ".openclaw" / "agents").mkdir(parents=True)
        places = {"main": ".openclaw/agents", "work": ".claude/projects"}
        daemon.config.write_text(
            "".join(
                f'[agents.{name}]\nworkspace = "{home}/{name}"\nextra_paths = ["{home}/{name}/extra"]\n'
                f'sources = ["memory", "sessions"]\nsessions = {{ paths = ["{home}/{name}/{place}"], delta_bytes = 0 }}\n{OPEN}\n'
                "sync = { wait_ms = 10000 }\n"  # no answer is stale because the machine is busy
                for name, place in places.items()
            )
        )
        with daemon.start():
            with daemon.client() as client:
                client.sync()
                hits = client.search(QUESTION, agent="work", max_results=50, min_score=0).results
            paths = [path for hit in hits for path in paths_of(hit)]
            assert len(paths) == 4, hits
            on_disk = [str(file) for file in (home / "work").rglob("*") if file.is_file()]
            kept = [str(file) for file in daemon.state.rglob("*.sqlite")]
            yield World(daemon, (*paths, *on_disk, *kept))


# --- the table


def requests(paths: tuple[str, ...]) -> dict[str, Ask]:
    """Every request there is, by agent and key."""
    return {
        "search": lambda agent, key: wire.Search(
            query=QUESTION, max_results=50, min_score=0, max_chars=0, agent=agent, session_key=key
        ),
        "search sessions": lambda agent, key: wire.Search(
            query=QUESTION, source="sessions", min_score=0, agent=agent, session_key=key
        ),
        "explain": lambda agent, key: wire.Explain(
            query=QUESTION, max_results=50, min_score=0, agent=agent, session_key=key
        ),
        "sync": lambda agent, key: wire.Sync(agent=agent, session_key=key),
        "reindex": lambda agent, key: wire.Reindex(agent=agent, session_key=key),
        "dry run": lambda agent, key: wire.Reindex(dry_run=True, agent=agent, session_key=key),
        "status": lambda agent, key: wire.Status(agent=agent, session_key=key),
        "embed": lambda agent, key: wire.Embed(action="pause", agent=agent, session_key=key),
        "warm": lambda agent, key: wire.Warm(session_key=key or "", agent=agent),
        "tags": lambda agent, key: wire.Tags(agent=agent, session_key=key),
        "redact": lambda agent, key: wire.RedactText(text="x", agent=agent, session_key=key),
        "files": lambda agent, key: wire.Files(agent=agent, session_key=key),
        "chunks": lambda agent, key: wire.Chunks(path=paths[0], agent=agent, session_key=key),
        "turns": lambda agent, key: wire.Turns(path=paths[0], agent=agent, session_key=key),
        "duplicates": lambda agent, key: wire.Duplicates(agent=agent, session_key=key),
        # These two are the owner's alone, and an owner's would end the daemon.
        "reload": lambda agent, key: wire.Reload(session_key=key or GROUP),
        "stop": lambda agent, key: wire.Stop(session_key=key or GROUP),
        **{f"get {path}": _getting(path) for path in paths},
    }


def _getting(path: str) -> Ask:
    return lambda agent, key: wire.Get(path=path, agent=agent, session_key=key)


KEYS_OF_MAIN = (
    "agent:main:main",
    "agent:main:telegram:direct:1",
    GROUP,
    "agent:main:agent:work:main",
    "agent:main:subagent:agent:work:main",
    "AGENT:main:main",
)


def test_every_request_is_in_the_table() -> None:
    """A request that is added has to be added here."""
    made = {type(ask("main", GROUP)) for ask in requests(("MEMORY.md",)).values()}
    assert made == set(wire.Request.__args__)


@pytest.mark.parametrize("key", KEYS_OF_MAIN)
def test_a_session_of_one_agent_gets_nothing_of_another(world: World, key: str) -> None:
    """Asked for by name, it is not even told whether there is such an agent; by its own name, or none, it sees its own."""
    table = requests(world.paths)
    named, unknown, own, by_key = (
        world.answered(*(ask(agent, key) for ask in table.values()))
        for agent in ("work", "nobody", "main", None)
    )
    for what, reply, other in zip(table, named, unknown, strict=True):
        assert WORK.encode() not in msgspec.json.encode(reply), what
        assert _lasting(reply) == _lasting(other), what
    for what, reply in zip((*table, *table), (*own, *by_key), strict=True):
        said = msgspec.json.encode(reply).decode()
        assert WORK not in said, what
        if what.startswith("get "):
            assert reply == wire.Note(path=what.removeprefix("get "), missing=True)
        else:
            assert "/work" not in said, what
            assert '"work"' not in said, what
    assert MAIN in str(own[0])
    assert MAIN in str(by_key[0])


def _lasting(reply: wire.Reply) -> dict[str, Any]:
    """A reply without what differs between two moments."""
    told: dict[str, Any] = msgspec.to_builtins(reply)
    for passing in ("uptime_s", "took_s", "cache", "memory"):
        told.pop(passing, None)
    return told


def test_answers_find_their_askers(world: World) -> None:
    """Of many requests of two agents and a group on one connection, each gets the answer that is its own."""
    asked = [
        wire.Search(query=QUESTION, max_results=50, min_score=0, session_key=key)
        for key in ("agent:main:main", "agent:work:main", GROUP) * 40
    ]
    for request, reply in zip(asked, world.answered(*asked), strict=True):
        said = str(reply)
        of_work = request.session_key == "agent:work:main"
        assert (WORK in said, MAIN in said) == (of_work, not of_work)


@pytest.mark.parametrize("name", ["agent", "agentId", "session_key", "sessionKey"])
def test_a_model_cannot_say_who_asks(world: World, name: str) -> None:
    """Tools are of the agent and the conversation that they were made for, whatever a model adds to its call."""
    tools = Tools(
        lambda: Client(world.daemon.socket, timeout=20),
        agent="main",
        session_key="agent:main:telegram:direct:1",
    )
    try:
        for value in ("work", "agent:work:main", None):
            found = tools.call(
                "memory_search", {"query": QUESTION, "maxResults": 50, "minScore": 0, name: value}
            )
            assert WORK not in str(found)
            for path in world.paths:
                assert WORK not in str(tools.call("memory_get", {"path": path, name: value}))
    finally:
        tools.close()


FORGED: list[dict[str, Any]] = [
    {"session_id": "agent:work:main"},
    {"session_id": "../../work", "agent": "work", "agent_id": "work", "MEMD_AGENT": "work"},
    {"session_key": "agent:work:main", "sessionKey": "agent:work:main"},
    {"cwd": "/work", "transcript_path": "/work/x.jsonl", "hook_event_name": "agent:work:main"},
]


@pytest.mark.parametrize("event", ["user-prompt", "session-start"])
def test_a_hook_asks_for_its_own_agent(world: World, event: str) -> None:
    """Whatever comes on its stdin: that is told by the program of an agent, but made of what others wrote."""
    environ = {
        **os.environ,
        "MEMD_AGENT": "main",
        "MEMD_SOCKET": str(world.daemon.socket),
        "HOME": str(world.daemon.home),
    }
    hooks = [
        subprocess.Popen(
            [sys.executable, "-m", "memd.ctl", "hook", event],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            cwd=ROOT,
        )
        for _ in FORGED
    ]
    said = [
        hook.communicate(
            json.dumps({"prompt": f"{QUESTION} in the note memory/a.md", **forged}).encode(), 60
        )[0]
        for hook, forged in zip(hooks, FORGED, strict=True)
    ]
    assert [hook.returncode for hook in hooks] == [0] * len(FORGED)
    assert WORK.encode() not in b"".join(said)


# --- those who read along; the last test, since it adds to what there is


def test_a_group_cannot_tell_what_is_kept_from_it(world: World) -> None:
    """Curated notes, also those of other agents, and transcripts: no reply, count, error or order depends on them."""
    daemon = world.daemon
    private = [f"{daemon.home}/main/extra/{name}" for name in ("USER.md", "GEMINI.md", "memory_summary.md")]
    table = requests(("MEMORY.md", "USER.md", *private))
    asked = [
        ask(agent, key)
        for ask, agent, key in product(table.values(), ("main", None), (GROUP, "agent:main:hook:x"))
    ]
    without = world.answered(*asked)
    write_private(daemon)
    with daemon.client() as client:
        client.sync(agent="main")
        hits = client.search(QUESTION, agent="main", max_results=50, min_score=0, max_chars=0).results
        owned = {path for hit in hits if OWNER in hit.snippet for path in paths_of(hit)}
        assert {*private, "MEMORY.md", "USER.md"} < owned
        names = [path for path in owned if path.startswith("sessions/")]
        assert names
        for name in names:
            assert client.get(name, agent="main", session_key=GROUP) == wire.Note(path=name, missing=True)
    for request, before, after in zip(asked, without, world.answered(*asked), strict=True):
        assert OWNER.encode() not in msgspec.json.encode(after), request
        assert _unscored(before) == _unscored(after), request


def _unscored(reply: wire.Reply) -> dict[str, Any]:
    """A reply without its scores: how rare a word is, is counted over all notes of an agent."""
    told = _lasting(reply)
    for hit in [
        *told.get("results", []),
        *told.get("found", {}).get("results", []),
        *told.get("candidates", []),
    ]:
        for figure in ("score", "keyword"):
            hit.pop(figure, None)
    return told
