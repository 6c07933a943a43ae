"""Transcripts that one machine publishes, and another searches and reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import Client
from tests.daemon.chats import AT_ONCE, begun, directory, name_of, say
from tests.daemon.process import Daemon
from tests.daemon.sharing import contents, publisher, reader, whole
from tests.fakes.homes import ClaudeCodeSession
from tests.postgres.conftest import member
from tests.postgres_server import database_with_tables, shared_server
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PRIVATE, GROUP = "agent:alice:main", "agent:alice:discord:group:9"


def _alice(home: Path, admin_dsn: str, sources: str) -> Daemon:
    one = publisher(
        home / "a",
        member(admin_dsn, "alice", "alice/main"),
        more=f", sources = [{sources}]",
        before=f'sources = ["memory", "sessions"]\nsessions = {{ paths = ["{directory(home)}"], {AT_ONCE} }}\n',
    )
    one.write("memory/a.md", "A note about the ferry.\n")
    return one


@pytest.fixture
def session(home: Path) -> ClaudeCodeSession:
    """One in which a secret is said."""
    directory(home).mkdir(parents=True)
    session = begun(home, "Where does the ferry to Aland leave?", f"Use the token {KEY} for the tickets.")
    session.assistant("The ferry leaves from the western harbour at nine.", at=1_772_442_500.0)
    return session


@pytest.fixture
def pair(home: Path, admin_dsn: str, session: ClaudeCodeSession) -> Iterator[tuple[Daemon, Daemon]]:
    """Who publishes notes and the session, and who reads; both run."""
    one = _alice(home, admin_dsn, '"memory", "sessions"')
    other = reader(
        home / "b",
        member(admin_dsn, "bob", "alice/main", may_write=False),
        more='sources = ["memory", "sessions"]\nscope = { default = "allow" }\n',
    )
    with one.start(), other.start():
        until(lambda: len(contents(admin_dsn)) == 2 and whole(one, admin_dsn), 40)
        yield one, other


def test_what_was_said_is_found_and_read_as_where_it_was_said(
    pair: tuple[Daemon, Daemon], session: ClaudeCodeSession, admin_dsn: str
) -> None:
    """The same turns on the same lines, without secrets; and what is said later follows."""
    one, other = pair
    path = name_of(session)
    with one.client() as here, other.client() as there:
        # A server that is slow in answering its first question is left out of that answer.
        until(lambda: not there.search("western harbour", agent="alice").degraded, 40)
        [found] = [
            hit for hit in there.search("western harbour", agent="alice").results if hit.source == "sessions"
        ]
        assert found.path == path
        for start, lines in ((1, 120), (2, 1), (found.start_line, 1), (900, 5)):
            local = here.get(path, agent="main", start_line=start, lines=lines)
            assert there.get(path, agent="alice", start_line=start, lines=lines) == local
        whole_text = there.get(path, agent="alice").text
        assert "western harbour" in whole_text
        assert "REDACTED" in whole_text
        say(session, "Book the cabin with a window, please.")

        def is_found() -> bool:
            return any("cabin" in hit.snippet for hit in there.search("cabin window", agent="alice").results)

        until(is_found, 40)
        assert "cabin with a window" in there.get(path, agent="alice").text
    assert KEY not in str(contents(admin_dsn))


def test_transcripts_there_are_for_private_conversations(
    pair: tuple[Daemon, Daemon], session: ClaudeCodeSession
) -> None:
    """As those that are here; a search of one source has that alone."""
    _, other = pair

    def sources(client: Client, **wanted: str) -> set[str]:
        found = client.search("ferry harbour", min_score=0, **wanted)  # type: ignore[arg-type]
        return {hit.source for hit in found.results}

    with other.client() as there:
        assert sources(there, agent="alice") == {"memory", "sessions"}
        assert sources(there, session_key=PRIVATE) == {"memory", "sessions"}
        assert sources(there, session_key=PRIVATE, source="sessions") == {"sessions"}
        assert sources(there, session_key=GROUP) == {"memory"}
        assert there.get(name_of(session), session_key=GROUP).missing
        assert not there.get(name_of(session), session_key=PRIVATE).missing


def test_transcripts_are_published_only_where_it_is_said(
    home: Path, admin_dsn: str, session: ClaudeCodeSession
) -> None:
    """And leave the server when it is said no more."""
    with _alice(home, admin_dsn, '"memory", "sessions"').start():
        until(lambda: contents(admin_dsn).keys() == {"memory/a.md", name_of(session)}, 40)
    with _alice(home, admin_dsn, '"memory"').start():
        until(lambda: contents(admin_dsn).keys() == {"memory/a.md"}, 40)
