"""An agent with notes of its own that includes a memory on a server: one answer, scope, filters, and the server away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client.messages import Found
from tests.daemon.process import Daemon
from tests.daemon.sharing import including, publisher, whole
from tests.postgres.conftest import member
from tests.postgres_server import database_with_tables, shared_server
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

NAME = "team:alice/main"
OWNER = "agent:main:main"
GROUP = "agent:main:discord:group:9"


def _alice(home: Path, admin_dsn: str) -> Daemon:
    one = publisher(
        home / "a", member(admin_dsn, "alice", "alice/main"), more=', sources = ["memory", "curated"]'
    )
    one.write("MEMORY.md", "The vault of Alice is behind the mill.\n")
    one.write("memory/2026-11-02.md", "# Billing\n\nWe chose PostgreSQL for billing.\n")
    one.write("memory/ops/deploy.md", "---\ntags: [ops]\n---\n\nDeploys go out on Thursday.\n")
    one.write("memory/same.md", "The kettle in the kitchen must be descaled each month by whoever uses it.\n")
    return one


def _bob(home: Path, admin_dsn: str, *, more: str = "") -> Daemon:
    dsn = member(admin_dsn, "bob", "alice/main", may_write=False)
    other = including(home / "b", dsn, more=more)
    other.write("memory/2026-11-03.md", "# Billing\n\nThe invoices of billing are sent on Fridays.\n")
    other.write(
        "memory/same.md", "The kettle in the kitchen must be descaled each month by whoever uses it.\n"
    )
    return other


@pytest.fixture
def pair(home: Path, admin_dsn: str) -> Iterator[tuple[Daemon, Daemon]]:
    """Who publishes, and who has notes and includes these; both run, and all is there."""
    one, other = _alice(home, admin_dsn), _bob(home, admin_dsn)
    with one.start(), other.start():
        until(lambda: whole(one, admin_dsn), 40)
        with other.client() as client:
            client.sync()
            until(lambda: client.search("billing").mode == "hybrid", 20)
        yield one, other


def _paths(found: Found) -> list[str]:
    return [hit.path for hit in found.results]


def test_both_are_in_one_answer(pair: tuple[Daemon, Daemon]) -> None:
    """In the order of their scores, each with where it is from; what both have takes one place."""
    _, other = pair
    with other.client() as client:
        found = client.search("which database did we choose for billing, and when are its invoices sent?")
        own, included = "memory/2026-11-03.md", f"{NAME}/memory/2026-11-02.md"
        assert {own, included} <= set(_paths(found))
        assert [hit.score for hit in found.results] == sorted(
            (hit.score for hit in found.results), reverse=True
        )
        assert {hit.path: hit.memory for hit in found.results if hit.path in {own, included}} == {
            own: None,
            included: NAME,
        }
        assert found.degraded == []
        cited = next(hit for hit in found.results if hit.path == included)
        assert cited.citation == f"{included}#L{cited.start_line}-L{cited.end_line}"

        # A name that the included memory alone has, with a letter too few.
        assert f"{NAME}/memory/2026-11-02.md" in _paths(client.search("why Postgresl", mode="keyword"))

        kettle = client.search("who must descale the kettle in the kitchen?").results[0]
        assert {kettle.path, *(copy.partition("#")[0] for copy in kettle.copies)} == {
            "memory/same.md",
            f"{NAME}/memory/same.md",
        }


@pytest.mark.long
def test_a_score_is_that_of_the_memory_alone(pair: tuple[Daemon, Daemon]) -> None:
    """What is included has the score that it has where it is published."""
    one, other = pair
    asked = "we chose PostgreSQL for billing"
    with one.client() as alices, other.client() as bobs:
        there = {hit.path: hit.score for hit in alices.search(asked, min_score=0).results}
        here = {hit.path: hit.score for hit in bobs.search(asked, min_score=0).results if hit.memory == NAME}
    assert here
    for path, score in here.items():
        assert score == pytest.approx(there[path.removeprefix(f"{NAME}/")], abs=0.002)


@pytest.mark.long
def test_more_results_only_append(pair: tuple[Daemon, Daemon]) -> None:
    """As of one memory."""
    _, other = pair
    with other.client() as client:
        every = _paths(client.search("billing deploys kettle vault", max_results=10, min_score=0))
        assert len(every) >= 4
        for count in range(1, len(every)):
            assert (
                _paths(client.search("billing deploys kettle vault", max_results=count, min_score=0))
                == every[:count]
            )


@pytest.mark.long
def test_filters_hold_for_both(pair: tuple[Daemon, Daemon]) -> None:
    """Paths are matched with and without the name of the memory; the newest first goes across memories."""
    _, other = pair
    with other.client() as client:
        assert _paths(client.search("deploys", tags=["ops"])) == [f"{NAME}/memory/ops/deploy.md"]
        both = _paths(client.search("billing", path="memory/2026-*.md"))
        assert sorted(both) == ["memory/2026-11-03.md", f"{NAME}/memory/2026-11-02.md"]
        assert _paths(client.search("billing", path=f"{NAME}/memory/2026-*.md")) == [
            f"{NAME}/memory/2026-11-02.md"
        ]
        newest = client.search("billing", sort="time", path="memory/2026-*.md")
        assert _paths(newest) == ["memory/2026-11-03.md", f"{NAME}/memory/2026-11-02.md"]
        assert _paths(client.search("billing", until="2026-11-02", since="2026-11-02")) == [
            f"{NAME}/memory/2026-11-02.md"
        ]


def test_get_and_explain_go_by_the_path_of_the_hit(pair: tuple[Daemon, Daemon]) -> None:
    """A path there that is none is missing, as here."""
    _, other = pair
    with other.client() as client:
        note = client.get(f"{NAME}/memory/2026-11-02.md", start_line=3)
        assert note.text == "We chose PostgreSQL for billing."
        assert client.get("memory/2026-11-03.md", start_line=3).text.startswith("The invoices")
        assert client.get(f"{NAME}/memory/nowhere.md").missing
        assert client.get(f"{NAME}x/memory/2026-11-02.md").missing
        told = client.explain("which database did we choose for billing?")
        assert {one.path for one in told.candidates} >= {
            "memory/2026-11-03.md",
            f"{NAME}/memory/2026-11-02.md",
        }
        assert next(one.place for one in told.candidates if one.cut is None) == 1


def test_a_group_sees_nothing_of_it(pair: tuple[Daemon, Daemon]) -> None:
    """Neither by search nor by get; a private conversation sees all that is published, its owner too."""
    _, other = pair
    asked = "what is behind the mill, and what did we choose for billing?"
    with other.client() as client:
        for key in (None, OWNER):
            found = client.search(asked, session_key=key, agent="main", min_score=0, max_results=20)
            assert {f"{NAME}/MEMORY.md", f"{NAME}/memory/2026-11-02.md"} <= set(_paths(found))
            assert "behind the mill" in client.get(f"{NAME}/MEMORY.md", session_key=key, agent="main").text
        found = client.search(asked, session_key=GROUP, min_score=0, max_results=20)
        assert not found.scope_denied
        assert _paths(found)
        assert all(hit.memory is None and not hit.path.startswith(NAME) for hit in found.results)
        for path in ("MEMORY.md", "memory/2026-11-02.md"):
            assert client.get(f"{NAME}/{path}", session_key=GROUP).missing
        told = client.explain(asked, session_key=GROUP)
        assert not any(one.path.startswith(NAME) for one in told.candidates)


@pytest.mark.long
def test_a_group_sees_notes_of_it_where_the_configuration_says_so(home: Path, admin_dsn: str) -> None:
    """And no more than notes."""
    one = _alice(home, admin_dsn)
    other = _bob(home, admin_dsn, more=", in_groups = true")
    with one.start(), other.start(), other.client() as client:
        until(lambda: whole(one, admin_dsn), 40)
        asked = "what is behind the mill, and what did we choose for billing?"
        found = client.search(asked, session_key=GROUP, min_score=0, max_results=20)
        assert f"{NAME}/memory/2026-11-02.md" in _paths(found)
        assert f"{NAME}/MEMORY.md" not in _paths(found)
        assert client.get(f"{NAME}/memory/2026-11-02.md", session_key=GROUP).text
        assert client.get(f"{NAME}/MEMORY.md", session_key=GROUP).missing
