"""Tables, roles and policies: what init makes, and that a member reaches nothing of another's, whatever SQL it speaks."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memd.postgres import administration
from memd.postgres.connection import SharedUnavailable, connect, find_state, troubles
from memd.postgres.mirror import Mirror
from tests.bounds import shipped
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer, empty_database

__all__ = ["empty_database"]

MemberDsn = Callable[..., str]
SECRET = "the vault is behind the mill"
TABLES = ("files", "labels", "chunks", "segments", "postings", "vectors", "parts")


def _members(connection: "psycopg.Connection[Any]") -> list[tuple[str, str, bool]]:
    """(memory, role, whether it may write) of all that an administrator sees."""
    return connection.execute(
        "SELECT memories.name, members.member::text, may_write FROM memd.members JOIN memd.memories USING (tenant)"
    ).fetchall()


def _fill(dsn: str, text: str) -> None:
    """Put one file with one chunk into the memory of a member, as one that publishes would."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT tenant FROM memd.memories").fetchone()
        assert row is not None
        values = {"t": row[0], "text": text}
        connection.execute(
            "INSERT INTO memd.files VALUES (%(t)s, 1, 'memory/' || %(text)s || '.md', 0, 0, NULL, 'd', %(text)s)",
            values,
        )
        connection.execute("INSERT INTO memd.labels VALUES (%(t)s, 1, 0, 0, %(text)s, %(text)s)", values)
        connection.execute(
            "INSERT INTO memd.chunks (tenant, id, file_id, kind, start_line, end_line, text, context, hash, tokens)"
            " VALUES (%(t)s, 2, 1, 0, 1, 1, %(text)s, '', 'h', 6)",
            values,
        )
        connection.execute("INSERT INTO memd.segments VALUES (%(t)s, 2, 2, 0, 0, 1)", values)
        connection.execute("INSERT INTO memd.postings VALUES (%(t)s, 2, 0, %(text)s, '')", values)
        connection.execute("INSERT INTO memd.vectors VALUES (%(t)s, 2, 0, '[1,0,0]'::memd.vector)", values)
        connection.execute("INSERT INTO memd.parts VALUES (%(t)s, 2, 0, 0, 3, 'abcd')", values)


@pytest.fixture(scope="module")
def attacked(server: PostgresServer) -> tuple[str, str]:
    """A database in which alice has a memory that holds the secret, and mallory one of her own: the DSNs of admin and mallory.

    All attacks are made on the same one: none of them changes anything.
    """
    admin = server.dsn(server.database())
    _fill(member(admin, "alice", "alice/main"), SECRET)
    mallory = member(admin, "mallory", "mallory/main")
    _fill(mallory, "nothing to see")
    return admin, mallory


@pytest.fixture
def hostile(attacked: tuple[str, str]) -> Iterator["psycopg.Connection[Any]"]:
    """A connection of mallory."""
    with psycopg.connect(attacked[1], autocommit=True) as connection:
        yield connection


@pytest.fixture
def all_seeing(attacked: tuple[str, str]) -> Iterator["psycopg.Connection[Any]"]:
    """A connection of the administrator to the same database."""
    with psycopg.connect(attacked[0], autocommit=True) as connection:
        yield connection


def _refusal(connection: "psycopg.Connection[Any]", sql: str) -> tuple[list[tuple[Any, ...]] | None, str]:
    """The rows of a statement, None where it has none, and what the server says where it refuses."""
    try:
        done = connection.execute(sql)
        return (done.fetchall() if done.description else None), ""
    except psycopg.Error as refused:
        return None, f"{refused} {refused.diag.message_detail} {refused.diag.message_hint}"


def _everything(rows: list[tuple[Any, ...]]) -> str:
    return " ".join(str(value) for row in rows for value in row)


def test_init_makes_what_is_missing_and_nothing_twice(admin_dsn: str) -> None:
    """It tells before what it will do; done again it does nothing."""
    with connect(admin_dsn) as connection:
        planned = administration.plan(connection)
        connection.rollback()
        assert [step.what for step in administration.carry_out(connection)] == [step.what for step in planned]
        assert administration.carry_out(connection) == []
        state = find_state(connection)
    assert (state.version, state.least, state.vector_schema) == (4, 3, "memd")
    assert planned[-1].what == "say that they have version 4"
    # The administrator may look at everything, so it is no role for a daemon.
    assert next(troubles(state)).startswith("the role admin is not bound by row-level security")


def test_tables_of_version_1_are_upgraded(admin_dsn: str) -> None:
    """What is published stays there, and its publisher sends it again, since the keyword index was another one."""
    with connect(admin_dsn) as connection:
        for step in administration.plan(connection):
            if not re.search("version [234]", step.what):
                connection.execute(step.sql)
        connection.execute("INSERT INTO memd.version (version, least) VALUES (1, 1)")
        connection.commit()
        connection.execute("INSERT INTO memd.memories (name) VALUES ('alice/main')")
        connection.execute(
            "INSERT INTO memd.files SELECT tenant, 1, 'a.md', 0, 0, NULL, 'd', 'x' FROM memd.memories"
        )
        connection.commit()
        done = [step.what for step in administration.carry_out(connection)]
        assert done == [
            "let publishers wait",
            "make the tables of version 2, with row-level security",
            "make the tables of version 3, with row-level security",
            "make the tables of version 4, with row-level security",
            "say that they have version 4",
        ]
        assert connection.execute("SELECT path, digest FROM memd.files").fetchall() == [("a.md", b"")]
        assert find_state(connection).least == 3


def test_who_publishes_waits_for_an_upgrade_and_who_searches_does_not(
    member_dsn: MemberDsn, admin_dsn: str, tmp_path: Path
) -> None:
    """A transaction that began before keeps the tables as they are, and one that begins after it knows what they are."""
    file = tmp_path / "alice.dsn"
    file.touch(mode=0o600)
    file.write_text(member_dsn("alice", "alice/main"))
    mirror = Mirror(file, "alice/main", "me")
    mirror.open()
    with connect(admin_dsn) as admin, connect(file.read_text()) as alice:
        admin.execute("UPDATE memd.version SET version = 3, least = 3")
        [waits, *_] = administration.plan(admin)
        assert waits.what == "let publishers wait"
        admin.execute(waits.sql)
        assert alice.execute("SELECT name FROM memd.memories").fetchall() == [("alice/main",)]
        alice.execute("SET LOCAL lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            alice.execute("SELECT FROM memd.memories FOR UPDATE")
        alice.rollback()
        admin.execute("UPDATE memd.version SET version = 99, least = 99")
        admin.commit()
        with pytest.raises(SharedUnavailable, match=r"of a newer memd \(its tables have version 99"):
            mirror.drop("memory/a.md")


@pytest.mark.parametrize(
    ("version", "said"),
    [(99, "its tables have version 99, .*: upgrade memd"), (3, "`memd-ctl shared init` first")],
)
def test_nothing_is_granted_where_the_tables_are_not_those_of_this_memd(
    version: int, said: str, member_dsn: MemberDsn, admin_dsn: str
) -> None:
    """What has to be done comes first: here or there."""
    member_dsn("alice", "alice/main")
    with connect(admin_dsn) as admin:
        admin.execute("UPDATE memd.version SET version = %s", (version,))
        with pytest.raises(SharedUnavailable, match=said):
            administration.grant(admin, "bob", "alice/main", may_write=False, new_password=True)


def test_citus_is_told_to_distribute_by_tenant(admin_dsn: str) -> None:
    """Each table after those that it refers to, all of a memory on one node. Functions of its names stand in for Citus here."""
    with connect(admin_dsn) as connection:
        administration.carry_out(connection)
        connection.execute(
            "CREATE TABLE public.pg_dist_partition (logicalrelid regclass);"
            "CREATE FUNCTION public.create_reference_table(t regclass) RETURNS void LANGUAGE sql AS"
            " 'INSERT INTO public.pg_dist_partition VALUES (t)';"
            "CREATE FUNCTION public.create_distributed_table(t regclass, by text, colocate_with text DEFAULT 'default')"
            " RETURNS void LANGUAGE sql AS 'INSERT INTO public.pg_dist_partition VALUES (t)';"
            "INSERT INTO pg_extension VALUES (1, 'citus', 10, 2200, false, '1')"
        )
        connection.commit()
        done = [step.sql for step in administration.carry_out(connection) if "create_" in step.sql]
        assert administration.carry_out(connection) == []
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'memd'::regnamespace AND relkind = 'r'"
        ).fetchall()
        references = connection.execute(
            "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
        ).fetchall()
    order = [re.findall(r"memd\.\w+", sql)[0] for sql in done]
    assert sorted(order) == sorted(f"memd.{name}" for (name,) in tables)
    assert all(order.index(to) < order.index(of) for of, to in references)
    everywhere = {table for table, sql in zip(order, done, strict=True) if "reference" in sql}
    assert everywhere == {"memd.version", "memd.memories", "memd.members", "memd.vector_indexes"}
    assert all(", 'tenant'" in sql for sql in done if "distributed" in sql)
    assert [sql for sql in done if "colocate_with" in sql] == done[5:]


def test_pgvector_may_be_there_in_another_schema(admin_dsn: str) -> None:
    """As most servers have it."""
    with connect(admin_dsn) as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
        connection.commit()
        assert not [step for step in administration.carry_out(connection) if "pgvector" in step.what]
        assert find_state(connection).vector_schema == "public"


def test_every_table_has_forced_policies_and_a_key_that_begins_with_the_tenant(
    member_dsn: MemberDsn, admin_dsn: str
) -> None:
    """A table that a later version adds is looked at, too."""
    member_dsn("alice", "alice/main")
    with connect(admin_dsn) as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity, pg_get_userbyid(relowner),"
            " (SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]"
            "  WHERE indrelid = pg_class.oid AND indisprimary)"
            " FROM pg_class WHERE relnamespace = 'memd'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
        ).fetchall()
    found = {name: (forced, owner, first) for name, forced, owner, first in rows}
    assert found.pop("version") == (False, "memd_owner", "is_only")
    assert set(found) == {*TABLES, "memories", "members", "vector_indexes"}
    assert set(found.values()) == {(True, "memd_owner", "tenant")}


def test_owner_and_group_cannot_log_in_and_a_member_owns_nothing(
    member_dsn: MemberDsn, admin_dsn: str
) -> None:
    """Nor has any of them a right over others, and a member has only so many connections."""
    member_dsn("alice", "alice/main")
    with connect(admin_dsn) as connection:
        rows = connection.execute(
            "SELECT rolname, rolcanlogin, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication,"
            " EXISTS (SELECT 1 FROM pg_class WHERE relowner = pg_roles.oid), rolconnlimit"
            " FROM pg_roles WHERE rolname LIKE 'memd%'"
        ).fetchall()
    found = {name: values for name, *values in rows}
    assert found["memd_owner"] == [False, False, True, -1]
    assert found["memd_member"] == [False, False, False, -1]
    most = shipped("memd.postgres.administration._CONNECTIONS")
    assert found["memd_user_alice"] == [True, False, False, most]


@pytest.mark.parametrize("table", TABLES)
def test_a_member_sees_its_own_rows_alone(hostile: "psycopg.Connection[Any]", table: str) -> None:
    """By a plain SELECT, by a condition that tells what it meets, by COPY, by a join, by counting."""
    assert hostile.execute(f"SELECT count(*) FROM memd.{table}").fetchone() == (1,)
    rows = hostile.execute(f"SELECT * FROM memd.{table}").fetchall()
    assert "vault" not in _everything(rows)
    with hostile.cursor().copy(f"COPY (SELECT * FROM memd.{table}) TO STDOUT") as copied:
        assert b"vault" not in b"".join(bytes(part) for part in copied)
    with hostile.cursor().copy(f"COPY memd.{table} TO STDOUT") as copied:
        assert b"vault" not in b"".join(bytes(part) for part in copied)


def test_no_function_of_its_own_sees_a_row_before_the_policy(hostile: "psycopg.Connection[Any]") -> None:
    """A cheap function that tells what it is given would be called first, were policies no barrier."""
    told: list[str] = []
    hostile.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    hostile.execute(
        "CREATE FUNCTION pg_temp.tells(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
        " AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
    )
    hostile.execute("SELECT 1 FROM memd.chunks WHERE pg_temp.tells(text)").fetchall()
    assert told == ["nothing to see"]
    hostile.execute("PREPARE look AS SELECT text FROM memd.chunks WHERE pg_temp.tells(text)")
    assert hostile.execute("EXECUTE look").fetchall() == [("nothing to see",)]


@pytest.mark.parametrize(
    "setting",
    [
        "SET row_security = off",
        "SET ROLE memd_member",
        "SET ROLE memd_owner",
        "SET SESSION AUTHORIZATION memd_user_alice",
        "SET ROLE memd_user_alice",
        "SET ROLE admin",
        "SET search_path = pg_temp, memd",
        "SET app.tenant = '1'",
        "SET memd.tenant = '1'",
        "SET session_replication_role = replica",
        "ALTER ROLE CURRENT_USER BYPASSRLS",
        "GRANT memd_user_alice TO CURRENT_USER",
        "ALTER TABLE memd.chunks DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE memd.chunks OWNER TO CURRENT_USER",
        "DROP POLICY granted ON memd.chunks",
        "CREATE POLICY mine ON memd.chunks USING (true)",
        "CREATE OR REPLACE VIEW memd.all_chunks AS SELECT * FROM memd.chunks",
        "CREATE TRIGGER tells BEFORE INSERT ON memd.chunks FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "UPDATE memd.members SET member = current_user",
        "INSERT INTO memd.members SELECT 1, current_user, true",
        "DELETE FROM memd.members",
        "UPDATE memd.memories SET name = 'alice/main'",
        "INSERT INTO memd.memories (name) VALUES ('x')",
        "TRUNCATE memd.chunks",
        "COPY memd.chunks FROM PROGRAM 'id'",
        "SELECT pg_read_file('PG_VERSION')",
        "SELECT lo_import('/etc/passwd')",
    ],
)
def test_no_setting_and_no_statement_opens_what_is_anothers(
    hostile: "psycopg.Connection[Any]", setting: str
) -> None:
    """Most are refused. Where one is allowed, what is seen stays the same or gets less."""
    _, said = _refusal(hostile, setting)
    assert SECRET not in said
    rows, said = _refusal(hostile, "SELECT text FROM memd.chunks")
    # row_security = off is an error where a policy would apply.
    assert rows in (None, [], [("nothing to see",)])
    assert SECRET not in said
    # Nothing of the owner's has changed either.
    hostile.execute("RESET ALL")
    hostile.execute("RESET ROLE")
    assert hostile.execute("SELECT text FROM memd.chunks").fetchall() == [("nothing to see",)]


def test_settings_of_the_client_decide_nothing_in_the_connection_string(
    hostile: "psycopg.Connection[Any]", server: PostgresServer
) -> None:
    """Options of a connection are settings, too."""
    info = hostile.info
    with psycopg.connect(
        info.dsn,
        password=info.password,
        options="-c role=memd_member -c search_path=pg_temp",
        autocommit=True,
    ) as other:
        assert other.execute("SELECT * FROM memd.chunks").fetchall() == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(info.dsn, password=info.password, options="-c role=memd_owner")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("action", ["INSERT", "MOVE", "DELETE", "MERGE"])
def test_nobody_writes_into_the_memory_of_another(
    hostile: "psycopg.Connection[Any]", all_seeing: "psycopg.Connection[Any]", table: str, action: str
) -> None:
    """By no kind of statement. What is refused tells nothing of what is there: a row that exists and one that does not look alike."""
    tenants = dict(all_seeing.execute("SELECT name, tenant FROM memd.memories").fetchall())
    before = all_seeing.execute(f"SELECT * FROM memd.{table} ORDER BY 1").fetchall()
    alice, own = tenants["alice/main"], tenants["mallory/main"]
    columns = {
        "files": "1, path || 'x', kind, written_ns, superseded, digest, content",
        "labels": "file_id, 1, kind, name, value",
        "chunks": "2, file_id, kind, start_line, end_line, text, context, hash, NULL, NULL, NULL, NULL, tokens",
        "segments": "first, last, kind, bits, chunks, gone",
        "postings": "segment, bucket, terms, places",
        "vectors": "chunk_id, kind, vector",
        "parts": "chunk_id, 5, first, last, vector",
    }[table]
    statement = {
        "INSERT": f"INSERT INTO memd.{table} SELECT {alice}, {columns} FROM memd.{table}",
        "MOVE": f"UPDATE memd.{table} SET tenant = {alice} WHERE tenant = {own}",
        "DELETE": f"DELETE FROM memd.{table} WHERE tenant = {alice}",
        "MERGE": f"MERGE INTO memd.{table} USING (SELECT 1) AS one ON {table}.tenant = {alice} WHEN MATCHED THEN DELETE",
    }[action]
    _, said = _refusal(hostile, statement)
    if action in {"INSERT", "MOVE"}:
        assert "row-level security" in said
        assert said.endswith("None None")  # no detail, which could show a row
    assert SECRET not in said
    assert all_seeing.execute(f"SELECT * FROM memd.{table} ORDER BY 1").fetchall() == before


def test_a_reference_does_not_tell_whether_a_row_is_there(hostile: "psycopg.Connection[Any]") -> None:
    """A label of mallory's memory can only name a file of that memory, and what is refused names none."""
    with pytest.raises(psycopg.errors.ForeignKeyViolation) as refused:
        hostile.execute("INSERT INTO memd.labels SELECT tenant, 99, 0, 0, 'a', 'b' FROM memd.memories")
    assert refused.value.diag.message_detail == 'Key is not present in table "files".'


def test_plans_and_statistics_show_no_value_of_another(
    hostile: "psycopg.Connection[Any]", all_seeing: "psycopg.Connection[Any]"
) -> None:
    """pg_stats is empty for tables with policies; EXPLAIN shows estimates of sizes and no value."""
    all_seeing.execute("ANALYZE")
    assert (
        hostile.execute(
            "SELECT * FROM pg_stats WHERE schemaname = 'memd' AND tablename <> 'version'"
        ).fetchall()
        == []
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        hostile.execute("SELECT * FROM pg_statistic")
    plan = hostile.execute(
        "EXPLAIN (ANALYZE, VERBOSE, BUFFERS) SELECT * FROM memd.chunks WHERE text LIKE '%vault%'"
    )
    assert SECRET not in _everything(plan.fetchall())
    shown = hostile.execute("SELECT * FROM pg_stat_activity").fetchall()
    assert SECRET not in _everything(shown)


def test_one_who_may_read_cannot_write(member_dsn: MemberDsn) -> None:
    """It sees all of that memory, and changes nothing of it."""
    _fill(member_dsn("alice", "alice/main"), SECRET)
    with psycopg.connect(member_dsn("bob", "alice/main", may_write=False), autocommit=True) as bob:
        assert bob.execute("SELECT text FROM memd.chunks").fetchall() == [(SECRET,)]
        assert bob.execute("DELETE FROM memd.files").rowcount == 0
        assert bob.execute("UPDATE memd.memories SET tokens = 9").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("INSERT INTO memd.postings SELECT tenant, 2, 1, '', '' FROM memd.memories")


def test_revoked_means_nothing_more_at_once(member_dsn: MemberDsn, admin_dsn: str) -> None:
    """The session that is open ends, also in the middle of a transaction with a cursor; a new one is refused."""
    _fill(member_dsn("alice", "alice/main"), SECRET)
    dsn = member_dsn("bob", "alice/main", may_write=False)
    with psycopg.connect(dsn) as bob:
        bob.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert bob.execute("SELECT count(*) FROM memd.chunks").fetchone() == (1,)
        with connect(admin_dsn) as connection:
            assert administration.revoke(connection, "bob", "alice/main") == 1
        with pytest.raises(psycopg.OperationalError):
            bob.execute("SELECT text FROM memd.chunks")
    with pytest.raises(SharedUnavailable, match=r"not permitted to log in|authentication failed"):
        connect(dsn)


def test_one_of_two_memories_is_revoked(member_dsn: MemberDsn, admin_dsn: str) -> None:
    """The other stays."""
    _fill(member_dsn("alice", "alice/main"), SECRET)
    _fill(member_dsn("carol", "carol/main"), "carol's own")
    member_dsn("bob", "alice/main", may_write=False)
    dsn = member_dsn("bob", "carol/main", may_write=False)
    with connect(admin_dsn) as connection:
        assert administration.revoke(connection, "bob", "alice/main") == 1
        assert administration.revoke(connection, "bob", "alice/main") == 0
        assert ("carol/main", "memd_user_bob", False) in _members(connection)
    with psycopg.connect(dsn) as bob:
        assert bob.execute("SELECT text FROM memd.chunks").fetchall() == [("carol's own",)]


def test_a_password_is_in_no_statement(member_dsn: MemberDsn, admin_dsn: str, server: PostgresServer) -> None:
    """What the server may log or show holds a verifier."""
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("ALTER DATABASE " + admin_dsn.rpartition("/")[2] + " SET log_statement = 'all'")
    dsn = member_dsn("alice", "alice/main")
    password = dict(part.split("=", 1) for part in dsn.split())["password"]
    assert len(password) >= 32
    log = server.log_text()
    assert "CREATE ROLE memd_user_alice" in log or "ALTER ROLE memd_user_alice" in log
    assert password not in log


def test_a_member_keeps_its_password_unless_another_is_asked_for(
    member_dsn: MemberDsn, admin_dsn: str
) -> None:
    """A new one gets one in any case."""
    member_dsn("alice", "alice/main")  # the tables are there now

    def granted(*, new_password: bool) -> str | None:
        with connect(admin_dsn) as connection:
            return administration.grant(
                connection, "newcomer", "alice/main", may_write=False, new_password=new_password
            ).dsn

    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS memd_user_newcomer")
    first = granted(new_password=False)
    assert first is not None
    assert granted(new_password=False) is None
    psycopg.connect(first).close()
    second = granted(new_password=True)
    assert second is not None
    psycopg.connect(second).close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first)


def test_a_member_is_told_all_that_it_needs_to_connect(
    admin_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what the administrator's environment says."""
    with connect(admin_dsn) as connection:
        administration.carry_out(connection)
    known = psycopg.conninfo.conninfo_to_dict(admin_dsn)
    port, name = str(known.pop("port")), str(known.pop("dbname"))
    monkeypatch.setenv("PGPORT", port)
    monkeypatch.setenv("PGDATABASE", name)
    with connect(psycopg.conninfo.make_conninfo("", **known)) as connection:
        made = administration.grant(connection, "alice", "alice/main", may_write=False, new_password=True)
    assert made.dsn is not None
    told = psycopg.conninfo.conninfo_to_dict(made.dsn)
    assert (told["port"], told["dbname"]) == (port, name)


def test_a_role_with_rights_of_its_own_is_no_member(member_dsn: MemberDsn, admin_dsn: str) -> None:
    """Nor is the name of memd's roles enough."""
    member_dsn("alice", "alice/main")
    with connect(admin_dsn) as connection:
        connection.execute("CREATE ROLE memd_user_eve LOGIN SUPERUSER")
        connection.commit()
        try:
            with pytest.raises(SharedUnavailable, match="rights that no member may have"):
                administration.grant(connection, "eve", "alice/main", may_write=False, new_password=True)
            assert [member for _, member, _ in _members(connection)] == ["memd_user_alice"]
        finally:
            connection.rollback()
            connection.execute("DROP ROLE memd_user_eve")


@pytest.mark.parametrize("name", ["", "Bob", "bob smith", "bob;drop", "1bob", "b" * 41, 'bob"'])
def test_a_name_is_a_word(name: str) -> None:
    """It becomes part of the name of a role."""
    with pytest.raises(ValueError, match="no name for a member"):
        administration.role_of(name)


def test_two_administrators_at_a_time(admin_dsn: str) -> None:
    """One waits for the other, and finds nothing to do."""
    with connect(admin_dsn) as one:
        one.execute("SELECT pg_advisory_xact_lock(%s)", (0x6D656D64,))
        with connect(admin_dsn) as other:
            other.execute("SET lock_timeout = '100ms'")
            other.commit()
            with pytest.raises(SharedUnavailable, match="lock timeout"):
                administration.carry_out(_impatient(other))
        one.rollback()
        assert administration.carry_out(one) != []


def test_two_administrators_do_not_build_an_index_at_a_time(admin_dsn: str) -> None:
    """It takes minutes, outside of a transaction, whose lock would end with it."""
    member(admin_dsn, "alice", "alice/main")
    with connect(admin_dsn) as one, connect(admin_dsn) as other:
        one.execute(
            "UPDATE memd.memories SET dimensions = 3, chunks = %s",
            (shipped("memd.postgres.nearest.MOST_COMPARED") + 1,),
        )
        one.commit()
        one.execute("SELECT pg_advisory_lock(%s)", (0x6D656D64 + 1,))
        one.commit()
        other.execute("SET lock_timeout = '100ms'")
        other.commit()
        with pytest.raises(SharedUnavailable, match="lock timeout"):
            administration.carry_out(other)
        one.execute("SELECT pg_advisory_unlock(%s)", (0x6D656D64 + 1,))
        one.commit()
        assert len(administration.carry_out(one)) == 2


def _impatient(connection: "psycopg.Connection[Any]") -> Any:
    """The same connection; its patience of ten seconds is cut to a tenth of one."""

    class Impatient:
        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

        def execute(self, sql: str, *values: Any) -> Any:
            return connection.execute(sql.replace("10s", "100ms"), *values)

    return Impatient()
