"""What doctor says of the servers of shared memories."""

from pathlib import Path

import pytest

from memd.config.load import parse
from memd.config.settings import Config
from memd.ctl.doctor.shared import ServerLook, check, look
from memd.inspection.probe import ProbeResult
from memd.postgres.connection import MemorySummary
from tests.ctl.doctor.context import CONTEXT, by_name
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer, empty_database, shared_server, unused_port

__all__ = ["empty_database", "shared_server"]


def _config(dsn_file: Path, agents: str = "") -> Config:
    return parse(
        f'[shared.team]\ndsn_file = "{dsn_file}"\n{agents}', Path("/home/ann/c.toml"), Path("/home/ann")
    )


PUBLISHES = '[agents.main]\nredact = { mode = "all" }\npublish = { to = "team", memory = "alice/main" }\n'
INCLUDES = '[agents.main]\ninclude = ["team:alice/main"]\n'
SEARCHES = '[agents.alice]\nbackend = "postgres"\nshared = { server = "team", memory = "alice/main" }\n'


def _dsn(tmp_path: Path, dsn: str) -> Path:
    file = tmp_path / "team.dsn"
    file.write_text(dsn)
    file.chmod(0o600)
    return file


def test_a_real_server_with_all_that_is_needed(tmp_path: Path, admin_dsn: str) -> None:
    """It says what the role may use."""
    config = _config(_dsn(tmp_path, member(admin_dsn, "alice", "alice/main")), PUBLISHES)
    found = by_name([*check(config, ProbeResult(tuple(look(config.shared))), CONTEXT)])
    assert found["shared.team"].ok
    assert found["shared.team"].detail == "memd_user_alice may use alice/main"


def test_the_administrators_dsn_is_none_for_a_daemon(tmp_path: Path, admin_dsn: str) -> None:
    """Its role sees everything."""
    member(admin_dsn, "alice", "alice/main")
    config = _config(_dsn(tmp_path, admin_dsn), PUBLISHES)
    found = by_name([*check(config, ProbeResult(tuple(look(config.shared))), CONTEXT)])
    assert "not bound by row-level security" in found["shared.team"].detail


def test_a_server_that_is_away_or_has_nothing(tmp_path: Path, server: PostgresServer, admin_dsn: str) -> None:
    """One line, with what to do."""
    for dsn, said in (
        (f"postgresql://u:swordfish@127.0.0.1:{unused_port()}/x", "refused"),
        (admin_dsn, "holds no shared memory yet"),
    ):
        config = _config(_dsn(tmp_path, dsn), SEARCHES)
        [found] = check(config, ProbeResult(tuple(look(config.shared))), CONTEXT)
        assert not found.ok
        assert said in found.detail
        assert "swordfish" not in found.detail


@pytest.mark.parametrize(
    ("agents", "seen", "said"),
    [
        (SEARCHES, {}, "alice/main is not granted to memd_user_bob"),
        (INCLUDES, {}, "alice/main is not granted to memd_user_bob"),
        (INCLUDES, {"may_write": False}, ""),
        (PUBLISHES, {"may_write": False}, "for reading only"),
        (PUBLISHES, {"may_write": True, "is_replica": True}, "a replica"),
        (SEARCHES, {"may_write": False}, ""),
        (SEARCHES, {"may_write": False, "is_replica": True}, ""),
    ],
)
def test_what_agents_are_to_do_must_be_granted(agents: str, seen: dict[str, bool], said: str) -> None:
    """Reading for those that search, also from a replica; writing for those that publish."""
    memories = (
        (MemorySummary("alice/main", seen["may_write"], 1, 1, 1, None, None),) if "may_write" in seen else ()
    )
    looked = ServerLook("team", (), "memd_user_bob", seen.get("is_replica", False), memories)
    [found] = check(_config(Path("/team.dsn"), agents), ProbeResult((looked,)), CONTEXT)
    assert found.ok is not bool(said)
    assert said in found.detail


def test_a_look_without_an_end(tmp_path: Path) -> None:
    """It is wrong, and says so; where nothing is shared there is nothing to say."""
    config = _config(tmp_path / "team.dsn")
    [found] = check(config, ProbeResult((), timed_out=True, reason="has not answered"), CONTEXT)
    assert not found.ok
    assert list(check(config, None, CONTEXT)) == []
