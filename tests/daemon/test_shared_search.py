"""A memory that one daemon publishes and others search, beside the same files in an index of their own."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.postgres import administration
from memd.postgres.connection import connect
from memd_client import Client, RequestFailed
from tests.daemon.process import Daemon
from tests.daemon.sharing import are_same, publisher, reader, whole
from tests.postgres.conftest import member
from tests.postgres_server import database_with_tables, running_server, shared_server
from tests.recall.__main__ import TOP
from tests.recall.texts import notes, questions
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

OWNER = "agent:alice:main"
GROUP = "agent:alice:discord:group:9"


@pytest.fixture
def pair(home: Path, admin_dsn: str) -> Iterator[tuple[Daemon, Daemon]]:
    """Who publishes, with a few notes, and who reads; neither is started."""
    one = publisher(
        home / "a", member(admin_dsn, "alice", "alice/main"), more=', sources = ["memory", "curated"]'
    )
    one.write("MEMORY.md", "The vault is behind the mill.\n")
    one.write("memory/2026-11-02.md", "# Billing\n\nWe chose PostgreSQL for billing.\n")
    one.write(
        "memory/ops/deploy.md",
        "---\ntags: [ops]\nstatus: done\n---\n\nDeploys go out on Thursday. 部署在星期四。\n",
    )
    one.write("memory/old.md", "---\nstatus: archived\n---\n\nDeploys went out on Monday.\n")
    other = reader(home / "b", member(admin_dsn, "bob", "alice/main", may_write=False))
    try:
        yield one, other
    finally:
        one.__exit__(None, None, None)
        other.__exit__(None, None, None)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_question_is_answered_as_from_an_index_of_the_same_files(home: Path, admin_dsn: str) -> None:
    """Questions by words, meaning, time, tags and names, in two languages: the same hits, lines, windows and scores.

    Where the two hundredth candidate is as near as the next one, which of them it is depends on the order in which files came; no
    two chunks are equally near here.
    """
    one = publisher(
        home / "a",
        member(admin_dsn, "alice", "alice/main"),
        more=', sources = ["memory", "curated"]',
        entry="tests.daemon.untied",
    )
    for path, text in notes().items():
        one.write(path, text)
    other = reader(home / "b", member(admin_dsn, "bob", "alice/main", may_write=False))
    asked = [question for question in questions() if question.source != "sessions"]
    assert len(asked) > 300
    differ = list[str]()
    with one.start(), other.start():
        until(lambda: whole(one, admin_dsn), 120)
        with one.client() as here, other.client() as there:
            for question in asked:
                local, shared = (
                    client.search(
                        question.text,
                        agent=agent,
                        max_results=TOP,
                        now=question.now,
                        tags=question.tags,
                        source="memory",
                    )
                    for client, agent in ((here, "main"), (there, "alice"))
                )
                assert shared.backend == "postgres", shared.fallback_reason
                differ += [question.text] if not are_same(local, shared) else []
            for question in asked[::7]:
                for mode in ("keyword", "vector"):
                    local, shared = (
                        client.search(question.text, agent=agent, mode=mode, max_results=TOP, source="memory")
                        for client, agent in ((here, "main"), (there, "alice"))
                    )
                    differ += [f"{mode}: {question.text}"] if not are_same(local, shared) else []
    assert differ == []


def test_filters_names_and_scope_hold_there_as_here(pair: tuple[Daemon, Daemon], admin_dsn: str) -> None:
    """Tags, properties, globs, times, quotations and names with marks; in a group conversation not the owner's own file."""
    one, other = pair
    one.write(
        "memory/names.md",
        'The key is memory.search.query in release 2026.1.10, said Ann: "ship it on Friday".\n',
    )
    one.write("memory/boiler.md", "The boiler was repaired by Marchetti on Friday.\n")
    with one.start(), other.start():
        until(lambda: whole(one, admin_dsn), 40)
        with one.client() as here, other.client() as there:
            for text, arguments in (
                ("deploys", {"tags": ["ops"]}),
                ("deploys", {"properties": {"status": "archived"}}),
                ("deploys", {"path": ["memory/ops/**"]}),
                ("deploys", {"path": ["!memory/ops/**"]}),
                ("billing", {"since": "2026-11-01", "until": "2026-11-03"}),
                ("billing", {"since": "2026-11-03"}),
                ("what happened on 2026-11-02", {}),
                ("deploys", {"sort": "time"}),
                ("memory.search.query", {}),
                ("2026.1.10", {}),
                ('"ship it on Friday"', {}),
                ("部署在星期四", {}),
                ("search query memory", {"mode": "keyword"}),
                ("vault", {}),
                ("what did marcheti repair", {}),
                ("what did marcheti repair", {"mode": "keyword", "path": ["memory/boiler.md"]}),
                ('"ship it on Friday", said Marcehtti', {}),
                ("nothing of this kind zebra", {}),
                ("?!", {}),
            ):
                assert are_same(
                    here.search(text, agent="main", **arguments),
                    there.search(text, agent="alice", **arguments),
                ), text
            misspelt = there.search("what did marcheti repair", agent="alice", mode="keyword").results
            assert [(hit.path, hit.weak) for hit in misspelt[:1]] == [("memory/boiler.md", False)]
            assert [hit.path for hit in there.search("vault", session_key=OWNER).results][:1] == ["MEMORY.md"]
            assert "MEMORY.md" not in {hit.path for hit in there.search("vault", session_key=GROUP).results}


@pytest.mark.long
def test_lines_are_read_there_and_scope_holds(pair: tuple[Daemon, Daemon], admin_dsn: str) -> None:
    """Get and explain, as of a file that is here."""
    one, other = pair
    with one.start(), other.start():
        until(lambda: whole(one, admin_dsn), 40)
        with one.client() as here, other.client() as there:
            path = "memory/2026-11-02.md"
            local, shared = here.get(path, agent="main"), there.get(path, agent="alice")
            assert (shared.text, shared.start_line, shared.end_line) == (
                local.text,
                local.start_line,
                local.end_line,
            )
            assert (
                there.get(path, agent="alice", start_line=3, lines=1).text
                == "We chose PostgreSQL for billing."
            )
            assert there.get("memory/nowhere.md", agent="alice").text == ""
            assert there.get("MEMORY.md", session_key=GROUP).text == ""
            assert there.get("MEMORY.md", session_key=OWNER).text == "The vault is behind the mill."
            told = there.explain("what did we choose for billing?", agent="alice")
            expected = here.explain("what did we choose for billing?", agent="main")
            assert (told.found.backend, told.found.fallback) == ("postgres", False)
            assert [one.path for one in told.candidates] == [one.path for one in expected.candidates]
            assert "postgresql" in there.explain("who chose Postgersql?", agent="alice").terms


def test_what_is_written_here_is_found_there(pair: tuple[Daemon, Daemon], admin_dsn: str) -> None:
    """And what is deleted here is not; each search sees the server as it is then."""
    one, other = pair

    def found(client: Client, text: str) -> set[str]:
        return {hit.path for hit in client.search(text, agent="alice", mode="keyword").results}

    with one.start(), other.start(), other.client() as there:
        until(lambda: whole(one, admin_dsn), 40)
        file = one.write("memory/lighthouse.md", "The lighthouse keeper is called Marta.\n")
        until(lambda: found(there, "lighthouse keeper") == {"memory/lighthouse.md"}, 20)
        file.unlink()
        until(lambda: not found(there, "lighthouse keeper"), 20)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_server_that_is_away_costs_its_time_once(home: Path) -> None:
    """The answer names it, status too; get says so instead of that there is no such file; and it comes back by itself."""
    with running_server() as server:
        admin = server.dsn(server.database())
        one = publisher(home / "a", member(admin, "alice", "alice/main"))
        one.write("memory/a.md", "The lighthouse keeper is called Marta.\n")
        other = reader(home / "b", member(admin, "bob", "alice/main", may_write=False))
        with one.start(), other.start(), other.client() as there:
            until(lambda: whole(one, admin), 40)
            until(lambda: there.search("lighthouse", agent="alice").results, 20)
            server.stop(signal.SIGQUIT)
            away = there.search("lighthouse", agent="alice")
            assert (away.results, away.backend, away.fallback_from) == ([], "builtin", "postgres")
            assert away.fallback_reason is not None
            assert away.fallback_reason.startswith("PostgreSQL: ")
            with pytest.raises(RequestFailed, match="cannot be read just now: PostgreSQL: "):
                there.get("memory/a.md", agent="alice")
            assert there.status().agents["alice"].backend_fallback is not None
            server.start()
            until(lambda: there.search("lighthouse", agent="alice").results, 60)
            assert there.search("who keeps it?", agent="alice").mode == "hybrid"
            assert there.get("memory/a.md", agent="alice").text == "The lighthouse keeper is called Marta."


def refusal(client: Client) -> RequestFailed | None:
    """Return why a note cannot be read; None: for a reason that passes."""
    with pytest.raises(RequestFailed) as refused:
        client.get("memory/2026-11-02.md", agent="alice")
    return None if "just now" in str(refused.value) else refused.value


def test_who_was_revoked_finds_nothing_at_once(pair: tuple[Daemon, Daemon], admin_dsn: str) -> None:
    """Neither by search nor by get, and nothing was kept on that machine."""
    one, other = pair
    with one.start(), other.start(), other.client() as there:
        until(lambda: whole(one, admin_dsn), 40)
        assert there.search("billing", agent="alice").results
        with connect(admin_dsn) as admin:
            administration.revoke(admin, "bob", "alice/main")
        revoked = there.search("billing", agent="alice")
        assert (revoked.results, revoked.fallback_from) == ([], "postgres")
        # The first connections that it takes may be those that were cut.
        refused = until(lambda: refusal(there), 20)
        assert refused is not None
        assert "2026-11-02.md cannot be read: " in str(refused)
        assert refused.hint == "memd-ctl doctor"
        assert other.stop() == 0
    kept = b"".join(file.read_bytes() for file in other.state.rglob("*") if file.is_file())
    assert b"PostgreSQL for billing" not in kept


@pytest.mark.long
def test_nobody_searches_a_memory_that_is_not_granted(
    pair: tuple[Daemon, Daemon], home: Path, admin_dsn: str
) -> None:
    """Though there are others at the same server."""
    one, _ = pair
    carol = reader(home / "c", member(admin_dsn, "carol", "carol/main"))
    with one.start(), carol.start(), carol.client() as there:
        until(lambda: whole(one, admin_dsn), 40)
        found = there.search("billing", agent="alice")
        assert found.results == []
        assert "alice/main is not granted to this role" in (found.fallback_reason or "")
