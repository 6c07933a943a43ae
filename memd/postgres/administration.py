"""Administration of a server: creates its tables, and grants members access to memories."""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from memd.postgres.connection import (
    LEAST_KNOWN,
    LEAST_PGVECTOR,
    LEAST_SERVER,
    VERSION,
    SharedRefused,
    SharedState,
    SharedUnavailable,
    driver,
    errors_told,
    find_state,
    quoted,
    version_of,
)
from memd.postgres.nearest import MOST_COMPARED

if TYPE_CHECKING:
    import psycopg

# Roles without login: the owner of the tables, and the rights of members.
OWNER, MEMBERS = "memd_owner", "memd_member"
_PREFIX = "memd_user_"  # prefix of members' login roles
_LOCK = 0x6D656D64  # the advisory lock for changes of the tables
_CONNECTIONS = 20  # per member
_errors_told = partial(errors_told, "is this role an administrator of the database?")
# Each follows the tables that it refers to.
_ON_EVERY_NODE = ("version", "memories", "members", "vector_indexes")
_BY_TENANT = ("files", "labels", "chunks", "segments", "postings", "vectors", "parts")
_MOST_DIMENSIONS = 2_000  # the limit of an indexed vector
MEMBER = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Step(msgspec.Struct, frozen=True):
    """A change of a server."""

    what: str  # a description for people
    sql: str
    # Run outside of the transaction of the others, since it may take minutes.
    is_apart: bool = False


class MemoryGrant(msgspec.Struct, frozen=True):
    """The result of a grant."""

    role: str
    dsn: str | None  # with a new password; None: the role has one already


def plan(connection: "psycopg.Connection[Any]") -> list[Step]:
    """Return the missing steps in order; () if nothing is missing.

    Raises:
        SharedRefused: the server does not support them.
    """
    state = find_state(connection)
    _check_server(state)
    steps: list[Step] = []
    with _errors_told():
        for role, meaning in ((OWNER, "owns the tables"), (MEMBERS, "has the rights of members")):
            steps += _role(connection, role, meaning)
        if steps or not _has_role(connection, OWNER):
            steps.append(Step(f"act as {OWNER}", f"GRANT {OWNER} TO CURRENT_USER"))
        if not _exists(connection, "SELECT 1 FROM pg_namespace WHERE nspname = 'memd'"):
            steps.append(Step("make the schema memd", f"CREATE SCHEMA memd AUTHORIZATION {OWNER}"))
        if state.vector is None:
            steps.append(
                Step(
                    "install pgvector",
                    f"CREATE EXTENSION vector SCHEMA memd VERSION '{_pgvector(connection)}'",
                )
            )
        elif version_of(state.vector) < LEAST_PGVECTOR:
            steps.append(
                Step("update pgvector", f"ALTER EXTENSION vector UPDATE TO '{_pgvector(connection)}'")
            )
        indexes = list(_vector_indexes(connection, state)) if state.version == VERSION else []
        return [*steps, *_tables(state), *_distribution(connection), *indexes]


def _check_server(state: SharedState) -> None:
    """Check that the tables can be created.

    Raises:
        SharedRefused: they cannot.
    """
    if state.is_replica:
        raise SharedRefused("the server is a replica, which only reads: name the primary")
    if state.server < LEAST_SERVER:
        raise SharedRefused(f"the server is PostgreSQL {state.server // 10_000}; memd needs 15 or newer")
    if state.version is not None and state.version > VERSION:
        raise SharedRefused(
            f"its tables have version {state.version}, and this memd knows {VERSION}: upgrade memd"
        )


def _tables(state: SharedState) -> Iterator[Step]:
    """Return the migrations that were not run yet."""
    at = state.version or 0
    if 0 < at < VERSION:
        # Each transaction of a publisher locks a row there first. Searches go on.
        yield Step(
            "let publishers wait",
            f"SET LOCAL ROLE {OWNER};\nLOCK memd.memories IN EXCLUSIVE MODE;\nRESET ROLE",
        )
    for number, sql in _migrations():
        if number > at:
            yield Step(
                f"make the tables of version {number}, with row-level security",
                f"SET LOCAL search_path = pg_catalog, memd, {quoted(state.vector_schema or 'memd')};\n"
                f"SET LOCAL ROLE {OWNER};\n{sql}\nRESET ROLE",
            )
    if at < VERSION:
        yield Step(
            f"say that they have version {VERSION}",
            f"SET LOCAL ROLE {OWNER};\nINSERT INTO memd.version (version, least) VALUES ({VERSION}, {LEAST_KNOWN})"
            " ON CONFLICT (is_only) DO UPDATE SET version = excluded.version, least = excluded.least;\nRESET ROLE",
        )


def _distribution(connection: "psycopg.Connection[Any]") -> Iterator[Step]:
    """If Citus is installed, distribute the tables that it does not manage yet.

    Small tables that all others refer to are replicated to each node. The others are distributed by tenant, so that a memory is
    on one node, each table after those that it refers to.
    """
    if not _exists(connection, "SELECT 1 FROM pg_extension WHERE extname = 'citus'"):
        return
    known = {
        name
        for (name,) in connection.execute(
            "SELECT relname FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrelid"
            " WHERE relnamespace = to_regnamespace('memd')"
        )
    }
    for table in (one for one in _ON_EVERY_NODE if one not in known):
        yield Step(f"have {table} on every node", f"SELECT create_reference_table('memd.{table}')")
    first, *_ = _BY_TENANT
    for table in (one for one in _BY_TENANT if one not in known):
        beside = "" if table == first else f", colocate_with => 'memd.{first}'"
        yield Step(
            f"distribute {table} by tenant",
            f"SELECT create_distributed_table('memd.{table}', 'tenant'{beside})",
        )


def _vector_indexes(connection: "psycopg.Connection[Any]", state: SharedState) -> Iterator[Step]:
    """Return steps for missing vector indexes of large memories.

    Each memory has its own index, so that searches read no vectors of other memories. Only an administrator creates them: members
    have no right to, and a function that granted it would let them keep the server busy.
    """
    schema = quoted(state.vector_schema)
    rows = connection.execute(
        "SELECT m.tenant, m.name, m.dimensions, m.chunks, i.indisvalid, EXISTS (SELECT 1 FROM memd.vector_indexes v"
        "  WHERE v.tenant = m.tenant AND v.dimensions = m.dimensions)"
        " FROM memd.memories m LEFT JOIN pg_index i"
        "  ON i.indexrelid = to_regclass(format('memd.vectors_%%s_%%s', m.tenant, m.dimensions))"
        " WHERE m.dimensions <= %s AND m.chunks > %s ORDER BY m.tenant",
        (_MOST_DIMENSIONS, MOST_COMPARED),
    ).fetchall()
    for tenant, name, dimensions, chunks, is_valid, has_mean in rows:
        index = f"vectors_{tenant}_{dimensions}"
        if is_valid is False:
            yield Step(
                f"drop the half index of the vectors of {name}",
                f"DROP INDEX CONCURRENTLY memd.{index}",
                is_apart=True,
            )
        if not is_valid:
            yield Step(
                f"index the vectors of {name}, some {chunks:,}, which takes a while",
                f"CREATE INDEX CONCURRENTLY {index} ON memd.vectors USING hnsw"
                f" ((vector::{schema}.vector({dimensions})) {schema}.vector_ip_ops)"
                f" WHERE tenant = {tenant} AND {schema}.vector_dims(vector) = {dimensions}",
                is_apart=True,
            )
        if not is_valid or not has_mean:
            yield Step(
                f"note the mean of the vectors of {name}",
                f"DELETE FROM memd.vector_indexes WHERE tenant = {tenant};\n"
                "INSERT INTO memd.vector_indexes (tenant, kind, dimensions, count, mean)"
                f" SELECT tenant, kind, {dimensions}, count(*), {schema}.avg(vector) FROM memd.vectors"
                f" WHERE tenant = {tenant} AND {schema}.vector_dims(vector) = {dimensions} GROUP BY tenant, kind",
                is_apart=True,
            )


def carry_out(connection: "psycopg.Connection[Any]") -> list[Step]:
    """Run missing steps, all but vector indexes in one transaction; return what was done.

    Raises:
        SharedUnavailable: nothing was done, or not all indexes were created.
    """
    with _errors_told(), connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '10s'")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        steps = plan(connection)
        for step in steps:
            if not step.is_apart:
                connection.execute(step.sql)
    apart = [step for step in steps if step.is_apart]
    if apart:
        _carry_out_apart(connection, apart)
    return steps


def _carry_out_apart(connection: "psycopg.Connection[Any]", steps: Sequence[Step]) -> None:
    with _errors_told():
        connection.commit()
        before, connection.autocommit = connection.autocommit, True
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK + 1,))
            connection.execute(f"SET ROLE {OWNER}")
            for step in steps:
                connection.execute(step.sql)
        finally:
            if not connection.closed:
                connection.execute("RESET ROLE")
                connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK + 1,))
                connection.autocommit = before


def _role(connection: "psycopg.Connection[Any]", role: str, meaning: str) -> Iterator[Step]:
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole FROM pg_roles WHERE rolname = %s",
        (role,),
    ).fetchone()
    if row is None:
        yield Step(f"make the role {role}, which {meaning}", f"CREATE ROLE {role} NOLOGIN")
    elif row[0]:
        raise SharedRefused(
            f"there is a role {role} that can log in, or has rights over others: it is not memd's"
        )


def _has_role(connection: "psycopg.Connection[Any]", role: str) -> bool:
    return _exists(
        connection,
        "SELECT 1 FROM pg_roles WHERE rolname = current_user AND pg_has_role(oid, %s, 'MEMBER')",
        role,
    )


def _pgvector(connection: "psycopg.Connection[Any]") -> str:
    """Return the newest version of pgvector on the server.

    Raises:
        SharedRefused: none is new enough.
    """
    found = [
        name
        for (name,) in connection.execute(
            "SELECT version FROM pg_available_extension_versions WHERE name = 'vector'"
        )
    ]
    newest = max(found, key=version_of, default=None)
    if newest is None or version_of(newest) < LEAST_PGVECTOR:
        has = "lacks the extension vector (pgvector)" if newest is None else f"has pgvector {newest}"
        raise SharedRefused(
            f"the server {has}; memd needs pgvector 0.8.4 or newer: install its package there"
        )
    return str(newest)


def _migrations() -> list[tuple[int, str]]:
    found = [one for one in files("memd.postgres").joinpath("sql").iterdir() if one.name.endswith(".sql")]
    return sorted((int(one.name[:3]), one.read_text("utf-8")) for one in found)


def _exists(connection: "psycopg.Connection[Any]", sql: str, *values: object) -> bool:
    return connection.execute(sql, values).fetchone() is not None


@contextmanager
def _as_owner(connection: "psycopg.Connection[Any]") -> Iterator[None]:
    """Return a transaction in which the table of members may be changed."""
    with _errors_told(), connection.transaction():
        state = find_state(connection)
        _check_server(state)
        if state.version != VERSION:
            raise SharedRefused("run `memd-ctl shared init` first: the tables are not those of this memd")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(f"SET LOCAL ROLE {OWNER}")
        yield


def grant(
    connection: "psycopg.Connection[Any]",
    member: str,
    memory: str,
    *,
    may_write: bool,
    new_password: bool,
) -> MemoryGrant:
    """Grant a member access to a memory; both are created if they do not exist.

    A new writer takes the memory over: the next installation that publishes becomes its publisher.

    Args:
        connection: The administrator's connection.
        member: The member's name.
        memory: The memory's name.
        may_write: Whether the member may publish it.
        new_password: Whether an existing role gets another password.

    Raises:
        SharedUnavailable: nothing was changed.
    """
    role = role_of(member)
    password = secrets.token_urlsafe(24)
    with _errors_told(), connection.transaction():
        with _as_owner(connection):
            connection.execute(
                "INSERT INTO memd.memories (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", (memory,)
            )
            connection.execute(
                "INSERT INTO memd.members (tenant, member, may_write) SELECT tenant, %s, %s FROM memd.memories"
                " WHERE name = %s ON CONFLICT (tenant, member) DO UPDATE SET may_write = excluded.may_write",
                (role, may_write, memory),
            )
            if may_write:
                connection.execute("UPDATE memd.memories SET publisher = NULL WHERE name = %s", (memory,))
        connection.execute("RESET ROLE")
        is_there = _is_members(connection, role)
        has_password = is_there and not new_password
        if not has_password:
            # The statement contains a verifier, so that the password is in no log of the server.
            verifier = connection.pgconn.encrypt_password(
                password.encode(), role.encode(), b"scram-sha-256"
            ).decode()
            action = "ALTER" if is_there else "CREATE"
            connection.execute(
                f"{action} ROLE {role} LOGIN PASSWORD '{verifier}' CONNECTION LIMIT {_CONNECTIONS}"
            )
        connection.execute(f"GRANT {MEMBERS} TO {role}")
    return MemoryGrant(role, None if has_password else dsn_of(connection, role, password))


def _is_members(connection: "psycopg.Connection[Any]", role: str) -> bool:
    """Return whether a member's role exists.

    Raises:
        SharedRefused: it has rights that no member may have.
    """
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication FROM pg_roles WHERE rolname = %s",
        (role,),
    ).fetchone()
    if row is not None and row[0]:
        raise SharedRefused(f"the role {role} has rights that no member may have")
    return row is not None


def can_log_in(connection: "psycopg.Connection[Any]", member: str) -> bool:
    """Return whether a member has a password.

    Raises:
        SharedUnavailable.
    """
    with _errors_told():
        return _exists(
            connection, "SELECT 1 FROM pg_roles WHERE rolname = %s AND rolcanlogin", role_of(member)
        )


def role_of(member: str) -> str:
    """Return the login role of a member.

    Raises:
        ValueError: the name is invalid.
    """
    if not MEMBER.fullmatch(member):
        raise ValueError(f"{member!r} is no name for a member: a-z, digits and _, at most 40, a letter first")
    return _PREFIX + member


def dsn_of(connection: "psycopg.Connection[Any]", role: str, password: str) -> str:
    """Return the DSN of a role on the server of a connection."""
    psycopg = driver()
    kept = ("host", "hostaddr", "port", "dbname", "sslmode", "sslrootcert", "channel_binding")
    known = connection.info.get_parameters()
    same = {name: known[name] for name in kept if known.get(name)}
    same |= {"port": str(connection.info.port), "dbname": connection.info.dbname}
    made: str = psycopg.conninfo.make_conninfo("", **same, user=role, password=password)
    return made


def revoke(connection: "psycopg.Connection[Any]", member: str, memory: str | None) -> int:
    """Revoke a member's access to a memory, or to all; return the number of revoked memories.

    The member's next statement finds nothing. Its sessions are terminated, since an open transaction may still see its snapshot. A
    member without any memory cannot log in.

    Raises:
        SharedUnavailable: nothing was revoked, or sessions could not be terminated, as the message says.
    """
    role = role_of(member)
    with _errors_told(), connection.transaction():
        with _as_owner(connection):
            taken = connection.execute(
                "DELETE FROM memd.members USING memd.memories WHERE memories.tenant = members.tenant"
                " AND members.member = %s AND (%s::text IS NULL OR memories.name = %s)",
                (role, memory, memory),
            ).rowcount
            has_more = _exists(connection, "SELECT 1 FROM memd.members WHERE member = %s", role)
        connection.execute("RESET ROLE")
        is_there = _is_members(connection, role)
        if is_there and not has_more:
            connection.execute(f"ALTER ROLE {role} NOLOGIN PASSWORD NULL")
    connection.commit()
    if is_there:
        try:
            with _errors_told(), connection.transaction():
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
                )
        except SharedUnavailable as failure:
            raise type(failure)(
                f"the rights of {member} are gone, but its open sessions could not be ended: {failure}"
            ) from failure
    return taken
