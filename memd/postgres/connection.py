"""Connects to the PostgreSQL server of a shared memory: reads and checks DSNs, checks the server, and shortens errors."""

import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from memd.errors import TransientError

if TYPE_CHECKING:
    import psycopg

VERSION = 4  # of the tables in memd/postgres/sql
LEAST_KNOWN = 3  # the least version that a memd must know to use them
# Columns for check_tables. Connections outlive migrations: each transaction asks.
TABLES = "(SELECT version FROM memd.version), (SELECT least FROM memd.version)"
CONNECT_S = 5  # timeout of a connection attempt
# After sleep or a change of network, dead connections remain: the system gives them up after half a minute.
_NOTICES = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_MAX_DSN_BYTES = 10_000
_SECURE = frozenset({"require", "verify-ca", "verify-full"})
# pgvector 0.8.3 and 0.8.4 fix indexes damaged by VACUUM; with older versions, a later index would lose rows.
LEAST_PGVECTOR = (0, 8, 4)
LEAST_SERVER = 150_000  # before version 15, every role may create objects in the schema public


# SQLSTATEs, by their beginnings, of what the server refuses each time: a feature that it lacks, a wrong role, password, database
# or schema, a right or a table that is missing, writing to a replica.
_FOR_GOOD = ("0A", "0L", "0P", "25006", "28", "3D", "3F", "42")
# Likewise for a failed login, for which libpq gives no SQLSTATE.
_NO_LOGIN = re.compile(
    r"authentication failed|no password supplied|(?:role|database) .* does not exist|not permitted to log in|pg_hba\.conf"
    r"|permission denied for database|does not support SSL|certificate"
)


class SharedUnavailable(TransientError):
    """A shared memory cannot be used now; the message is one line without a password."""


class SharedRefused(SharedUnavailable):
    """A shared memory cannot be used until somebody changes the configuration, the server or the rights there."""

    needs_person = True


class DriverMissing(SharedRefused):
    """psycopg is not installed."""


class SharedState(msgspec.Struct, frozen=True):
    """The state of a server, and the rights of the connection's role."""

    server: int  # such as 180004 for 18.4
    vector: str | None  # the version of pgvector; None: not installed in the database
    vector_schema: str  # the schema of its types and operators; "": not installed
    role: str
    bypasses: bool  # the role is a superuser, or bypasses row-level security
    is_replica: bool  # the server is read-only: a standby, or configured so
    version: int | None  # of the tables; None: there are none
    least: int  # the least version that a memd must know to use them


def read_dsn(file: Path) -> str:
    """Read a DSN from a file that only its owner can read.

    Raises:
        SharedRefused: it cannot be read.
    """
    try:
        with file.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(_MAX_DSN_BYTES)
    except OSError as error:
        raise SharedRefused(f"{file} cannot be read: {error.strerror}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SharedRefused(f"{file} holds a password and can be read by others: run `chmod 600 {file}`")
    try:
        dsn = data.decode().strip()
    except UnicodeDecodeError:
        dsn = ""
    if not dsn or "\n" in dsn:
        raise SharedRefused(f"{file} must hold one line: a connection string of PostgreSQL")
    return dsn


def parameters(dsn: str) -> dict[str, Any]:
    """Parse a DSN, and add memd's parameters.

    Raises:
        SharedRefused: it is invalid, psycopg is not installed, or the connection would be unencrypted over a network.
    """
    psycopg = driver()
    try:
        found: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        # The error's own message is left out, since it may quote a password.
        raise SharedRefused(
            "the DSN is no connection string of PostgreSQL, such as postgresql://user:password@host/database"
        ) from None
    mode = found.get("sslmode")
    if not is_local(found):
        if mode is not None and mode not in _SECURE:
            raise SharedRefused(
                f"the DSN has sslmode={mode}, and its server is not on this machine: write sslmode=verify-full, or require"
            )
        found.setdefault("sslmode", "require")
    return {"connect_timeout": CONNECT_S, "application_name": "memd"} | _NOTICES | found


def is_local(found: Mapping[str, Any]) -> bool:
    """Return whether all hosts of a connection are this machine."""
    hosts = str(found.get("hostaddr") or found.get("host") or "").split(",")
    return all(map(_is_loopback, hosts))


def _is_loopback(host: str) -> bool:
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def driver() -> Any:
    """Import psycopg on first use.

    Raises:
        DriverMissing.
    """
    try:
        import psycopg  # noqa: PLC0415  nobody else needs it
        import psycopg.conninfo  # noqa: PLC0415  likewise
    except ImportError as error:
        raise DriverMissing(
            'psycopg is not there, or finds no libpq: pip install "memd-daemon[postgres]"'
        ) from error
    return psycopg


def connect(dsn: str) -> "psycopg.Connection[Any]":
    """Connect.

    Raises:
        SharedRefused: the DSN, the role or the encryption must be changed.
        SharedUnavailable: the server cannot be reached now.
    """
    # Statements are not prepared: behind a pooler, the next transaction may use another session.
    wanted = parameters(dsn)
    with errors_told():
        made: psycopg.Connection[Any] = driver().connect(**wanted, prepare_threshold=None)
    # A service file or the environment may override the host of the DSN.
    if not made.pgconn.ssl_in_use and not _is_loopback(made.info.hostaddr or made.info.host):
        made.close()
        raise SharedRefused(
            "the server is not on this machine, and the connection would not be encrypted: write sslmode=verify-full, or require"
        )
    return made


def abandon(connection: "psycopg.Connection[Any]") -> None:
    """Shut a connection down, so that a thread waiting on it fails at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as one:
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def errors_told(denied: str = "was this role revoked, or granted only reading?") -> Iterator[None]:
    """Convert errors of psycopg within the block to a SharedUnavailable, or SharedRefused, with a message of one line.

    Args:
        denied: Why the role may lack a right.

    Raises:
        SharedRefused: instead of an error that the same statement would have again.
        SharedUnavailable: instead of any other error.
    """
    psycopg = driver()
    try:
        yield
    except psycopg.Error as error:
        raise _converted(error, denied) from error


def _converted(error: Any, denied: str) -> SharedUnavailable:
    """Return the error for one of psycopg, with the server's message without quoted row values."""
    code = error.sqlstate
    if code is not None:
        primary = error.diag.message_primary or "it gives no reason"
        # A primary message may quote a value that was sent, which must not reach a log.
        told = f"PostgreSQL: {_without_quotes(primary)} ({denied if code == '42501' else code})"
        return SharedRefused(told) if code.startswith(_FOR_GOOD) else SharedUnavailable(told)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason is given"]
    said = next((line for line in reversed(lines) if "FATAL:" in line), lines[0])
    hint = " (is the password right, or was the member revoked?)" if "authentication failed" in said else ""
    told = f"PostgreSQL: {re.sub(r'^.*FATAL: *', '', said)}"[:300] + hint
    return SharedRefused(told) if _NO_LOGIN.search(said) else SharedUnavailable(told)


def _without_quotes(text: str) -> str:
    return re.sub(r'"[^"]{60,}"', '"..."', text)[:200]


def find_state(connection: "psycopg.Connection[Any]") -> SharedState:
    """Query the state of the server.

    Raises:
        SharedUnavailable: it does not answer.
    """
    with errors_told():
        row = connection.execute(
            "SELECT current_setting('server_version_num')::int,"
            " pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, current_user::text,"
            " (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user),"
            " to_regclass('memd.version') IS NOT NULL AND has_table_privilege('memd.version', 'SELECT'),"
            " EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'memd')"
        ).fetchone()
        assert row is not None
        server, is_replica, role, bypasses, is_readable, is_made = row
        vector, vector_schema = connection.execute(
            "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
            " WHERE extname = 'vector'"
        ).fetchone() or (None, "")
        if is_made and not is_readable and not bypasses:
            raise SharedRefused("PostgreSQL: this role is no member of the shared memory")
        tables = (
            connection.execute("SELECT version, least FROM memd.version").fetchone() if is_readable else None
        )
    version, least = tables or (None, 0)
    return SharedState(
        server,
        vector,
        vector_schema,
        role,
        bypasses=bool(bypasses),
        is_replica=is_replica,
        version=version,
        least=least,
    )


def check(state: SharedState) -> None:
    """Check that a member may use the server.

    Raises:
        SharedRefused: it must not be used; the message says what to do.
    """
    for trouble in troubles(state):
        raise SharedRefused(trouble)


def troubles(state: SharedState) -> Iterator[str]:
    """Return why a member must not use a server, the most important reason first."""
    if state.bypasses:
        yield f"the role {state.role} is not bound by row-level security: use the DSN that `memd-ctl shared grant` wrote"
    if state.server < LEAST_SERVER:
        yield f"the server is PostgreSQL {state.server // 10_000}; memd needs 15 or newer"
    if state.vector is None:
        yield "the database lacks the extension vector (pgvector): an administrator runs `memd-ctl shared init`"
    elif version_of(state.vector) < LEAST_PGVECTOR:
        yield f"the database has pgvector {state.vector}; memd needs 0.8.4 or newer: ALTER EXTENSION vector UPDATE"
    if state.version is None:
        yield "the database holds no shared memory yet: an administrator runs `memd-ctl shared init`"
    elif state.least > VERSION:
        yield _of_newer(state.version)
    elif state.version < VERSION:
        yield f"the shared memory is of an older memd (version {state.version} of its tables): an administrator runs `memd-ctl shared init`"


def check_tables(version: int, least: int) -> None:
    """Check that the tables are not of a newer memd by now.

    Args:
        version: Their version.
        least: The least version that a memd must know to use them.

    Raises:
        SharedRefused: this memd must not use them.
    """
    if least > VERSION:
        raise SharedRefused(_of_newer(version))


def _of_newer(version: int) -> str:
    return f"the shared memory is of a newer memd (its tables have version {version}, this one knows {VERSION}): upgrade memd"


def quoted(name: str) -> str:
    """Quote an identifier for a statement."""
    return '"' + name.replace('"', '""') + '"'


def version_of(text: str) -> tuple[int, ...]:
    """Parse a version into numbers."""
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


class MemorySummary(msgspec.Struct, frozen=True):
    """A published memory."""

    name: str
    may_write: bool
    files: int
    chunks: int
    vectors: int  # chunks with vectors
    publisher: str | None  # the publishing installation
    published_at: str | None  # ISO 8601; None: never


def summaries(connection: "psycopg.Connection[Any]") -> list[MemorySummary]:
    """Return the memories that the connection's role may use, by name.

    Raises:
        SharedUnavailable.
    """
    with errors_told():
        rows = connection.execute(
            "SELECT name, (SELECT bool_or(may_write) FROM memd.members WHERE members.tenant = memories.tenant),"
            " (SELECT count(*) FROM memd.files WHERE files.tenant = memories.tenant), chunks,"
            " (SELECT count(*) FROM memd.vectors WHERE vectors.tenant = memories.tenant), publisher,"
            " to_char(published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            " FROM memd.memories ORDER BY name"
        ).fetchall()
    return [MemorySummary(*row) for row in rows]
