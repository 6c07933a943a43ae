"""Where a DSN stands and what it may say; every trouble is one line, and none has the password in it."""

import re
import sys
from pathlib import Path

import msgspec
import pytest

from memd.postgres import connection
from memd.postgres.administration import _tables
from memd.postgres.connection import (
    LEAST_PGVECTOR,
    SharedState,
    SharedUnavailable,
    check,
    check_tables,
    connect,
    find_state,
    parameters,
    read_dsn,
    troubles,
)
from memd.postgres.mirror import Mirror
from memd.postgres.shared_index import SharedIndex
from memd.postgres.snapshots import SharedConnections
from tests.bounds import shipped
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer, unused_port

PASSWORD = "swordfish-7731"
SOUND = SharedState(
    180004, "0.8.5", "memd", "memd_user_bob", bypasses=False, is_replica=False, version=4, least=3
)


def _file(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    file = tmp_path / "team.dsn"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_dsn_is_one_line(tmp_path: Path) -> None:
    """Blanks around it are none of it."""
    assert read_dsn(_file(tmp_path, "postgresql://u:p@localhost/db\n")) == "postgresql://u:p@localhost/db"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "one line"),
        ("one\ntwo\n", 0o600, "one line"),
        ("postgresql://localhost/db", 0o640, "chmod 600"),
        ("postgresql://localhost/db", 0o604, "chmod 600"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, mode: int, said: str) -> None:
    """It says what to do."""
    with pytest.raises(SharedUnavailable, match=said):
        read_dsn(_file(tmp_path, text, mode))


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    """The name is in the message."""
    with pytest.raises(SharedUnavailable, match=r"nowhere\.dsn cannot be read: No such file"):
        read_dsn(tmp_path / "nowhere.dsn")
    most = shipped("memd.postgres.connection._MAX_DSN_BYTES")
    assert len(read_dsn(_file(tmp_path, "x" * (most + 5)))) == most


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{PASSWORD}@host:notaport/db",
        f"postgresql//u:{PASSWORD}@host/db",
        f"password={PASSWORD} hos=x",
        PASSWORD,
    ],
)
def test_what_is_no_dsn_is_not_quoted(dsn: str) -> None:
    """It may be a password alone."""
    with pytest.raises(SharedUnavailable) as refused:
        connect(dsn)
    assert PASSWORD not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("host", ["db.example.org", "10.0.0.7", "localhost,db.example.org"])
def test_memory_goes_over_no_network_in_the_clear(host: str) -> None:
    """Encryption is asked for, and a DSN that does without is refused."""
    assert parameters(f"host={host} dbname=d")["sslmode"] == "require"
    assert parameters(f"host={host} dbname=d sslmode=verify-full")["sslmode"] == "verify-full"
    for mode in ("disable", "allow", "prefer"):
        with pytest.raises(SharedUnavailable, match=f"sslmode={mode}, and its server is not on this machine"):
            parameters(f"host={host} dbname=d sslmode={mode}")


@pytest.mark.parametrize(
    "host", ["", "localhost", "127.0.0.1", "::1", "/run/postgresql", "127.0.0.1,localhost"]
)
def test_on_this_machine_it_need_not_be_encrypted(host: str) -> None:
    """A socket or the loopback."""
    assert "sslmode" not in parameters(f"host='{host}' dbname=d")


def test_nobody_there() -> None:
    """One line with the reason."""
    with pytest.raises(SharedUnavailable, match="refused") as refused:
        connect(f"postgresql://u:{PASSWORD}@127.0.0.1:{unused_port()}/db")
    assert "\n" not in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_wrong_password_and_wrong_database(server: PostgresServer) -> None:
    """The server's own words, without what was sent."""
    with pytest.raises(
        SharedUnavailable, match=r"password authentication failed for user .* or was the member revoked\?"
    ) as refused:
        connect(f"postgresql://admin:{PASSWORD}@127.0.0.1:{server.port}/postgres")
    assert PASSWORD not in str(refused.value)
    with pytest.raises(SharedUnavailable, match='database "nowhere" does not exist'):
        connect(server.dsn("nowhere"))


def test_a_database_without_anything(server: PostgresServer) -> None:
    """What is missing is said one by one."""
    with connect(server.dsn(server.database())) as made:
        state = find_state(made)
    said = list(troubles(state))
    assert len(said) == 3
    assert "lacks the extension vector" in said[1]
    assert "holds no shared memory yet" in said[2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP EXTENSION vector CASCADE", "lacks the extension vector (pgvector): an administrator runs"),
        ("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'", "the database has pgvector 0.7.4; memd needs 0.8.4"),
        ("UPDATE memd.version SET version = 99, least = 99", "is of a newer memd (its tables have version 99"),
        ("UPDATE memd.version SET version = 0, least = 0", "is of an older memd (version 0 of its tables): an administrator runs"),
        ("DELETE FROM memd.version", "holds no shared memory yet: an administrator runs"),
        ("DROP SCHEMA memd CASCADE", "lacks the extension vector"),
        ("UPDATE memd.memories SET name = 'alice/other'", "alice/main is not granted to this role: an administrator runs"),
    ],
)  # fmt: skip
async def test_what_a_server_lacks_is_one_line_for_who_publishes_and_who_searches(
    admin_dsn: str, tmp_path: Path, change: str, said: str
) -> None:
    """The same line, and what to do is in it."""
    file = _file(tmp_path, member(admin_dsn, "alice", "alice/main"))
    with connect(admin_dsn) as admin:
        admin.execute(change)
    searching = SharedConnections(file, "alice/main", 30.0)
    with pytest.raises(SharedUnavailable) as unread:
        await SharedIndex(searching).refresh()
    with pytest.raises(SharedUnavailable) as unpublished:
        Mirror(file, "alice/main", "me").open()
    for refused in (unread, unpublished):
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


async def test_a_server_that_only_reads_is_searched_and_not_published_to(
    admin_dsn: str, tmp_path: Path
) -> None:
    """Like a standby, it takes no writing; the line names what to do."""
    dsn = member(admin_dsn, "alice", "alice/main") + " options='-c default_transaction_read_only=on'"
    file = _file(tmp_path, dsn)
    searching = SharedConnections(file, "alice/main", 30.0)
    assert (await SharedIndex(searching).refresh()).chunks == 0
    searching.close()
    with pytest.raises(SharedUnavailable, match=r"the server only reads .*: the DSN must name the primary"):
        Mirror(file, "alice/main", "me").open()


def test_what_is_sound_has_no_trouble() -> None:
    """Every version here is the least that is allowed, or above."""
    check(SOUND)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bypasses": True}, "not bound by row-level security"),
        ({"server": 140011}, "is PostgreSQL 14; memd needs 15"),
        ({"vector": "0.8.3"}, "pgvector 0.8.3; memd needs 0.8.4"),
        ({"vector": "0.7.4"}, "pgvector 0.7.4"),
        ({"version": 5, "least": 5}, "newer memd .*this one knows 4.: upgrade memd"),
        ({"version": 3, "least": 3}, "older memd"),
    ],
)
def test_one_trouble_is_one_line(changes: dict[str, object], said: str) -> None:
    """It says what to do."""
    with pytest.raises(SharedUnavailable, match=said):
        check(msgspec.structs.replace(SOUND, **changes))


def test_tables_of_a_newer_memd_may_serve_this_one() -> None:
    """As long as they say so."""
    check(msgspec.structs.replace(SOUND, version=5, least=3))


def test_the_least_versions() -> None:
    """Below these is what damages an index, or lets everybody make objects."""
    assert LEAST_PGVECTOR == (0, 8, 4)
    least = shipped("memd.postgres.connection.LEAST_SERVER")
    check(msgspec.structs.replace(SOUND, server=least))
    with pytest.raises(SharedUnavailable, match="memd needs 15"):
        check(msgspec.structs.replace(SOUND, server=least - 1))
    assert shipped("memd.postgres.connection.CONNECT_S") == 5


def test_the_tables_tell_which_memd_may_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 4 has one index more than 3."""
    least = shipped("memd.postgres.connection.LEAST_KNOWN")
    *_, last = _tables(msgspec.structs.replace(SOUND, version=None))
    [(version, told)] = re.findall(r"VALUES \((\d+), (\d+)\)", last.sql)
    monkeypatch.setattr(connection, "VERSION", least)
    check_tables(int(version), int(told))
    monkeypatch.setattr(connection, "VERSION", least - 1)
    with pytest.raises(SharedUnavailable, match="newer memd"):
        check_tables(int(version), int(told))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the command that installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SharedUnavailable, match=r'pip install "memd-daemon\[postgres\]"'):
        connection.driver()


def test_where_a_connection_leads_counts_and_not_only_what_the_dsn_says(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the host here, which might be any: memory does not go there in the clear."""
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    dsn = f"user=admin password='correct horse' port={server.port} dbname=postgres"
    connect(dsn).close()
    monkeypatch.setattr("memd.postgres.connection._is_loopback", lambda host: not host)
    with pytest.raises(SharedUnavailable, match="would not be encrypted"):
        connect(dsn)


def test_a_dead_connection_is_given_up_after_half_a_minute() -> None:
    """Whether it is asked or not; a DSN may say otherwise."""
    found = parameters("host=team.example.org")
    asked_s = int(found["keepalives_idle"]) + int(found["keepalives_interval"]) * int(
        found["keepalives_count"]
    )
    assert asked_s == int(found["tcp_user_timeout"]) / 1000 == 30
    assert int(found["keepalives_interval"]) < int(found["keepalives_idle"])
    assert parameters("host=team.example.org keepalives_idle=60")["keepalives_idle"] == "60"
