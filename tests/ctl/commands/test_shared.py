"""memd-ctl shared, against a real server."""

import json
from pathlib import Path

import psycopg
import pytest

from memd.ctl.failures import BAD_CONFIG, BUSY, NOT_FOUND, USAGE
from tests.ctl.conftest import Run
from tests.postgres_server import empty_database, shared_server, unused_port

__all__ = ["empty_database", "shared_server"]


@pytest.fixture
def admin_file(admin_dsn: str, home: Path) -> Path:
    """Where the administrator keeps the DSN."""
    file = home / "admin.dsn"
    file.write_text(admin_dsn + "\n")
    file.chmod(0o600)
    return file


def test_from_an_empty_database_to_a_member_and_back(run: Run, home: Path, admin_file: Path) -> None:
    """What would be done is said first; status shows what the role of this machine may use."""
    admin = ("--admin-dsn-file", str(admin_file))
    planned = run("shared", "init", *admin)
    assert planned.code == 0
    assert "make the schema memd" in planned.out
    assert "Nothing has changed" in planned.out
    printed = run("shared", "init", *admin, "--print")
    assert "CREATE SCHEMA memd AUTHORIZATION memd_owner;" in printed.out
    assert "FORCE ROW LEVEL SECURITY" in printed.out
    assert run("shared", "init", *admin, "--print").out == printed.out  # it has changed nothing either
    assert "Done:" in run("shared", "init", *admin, "--yes").out
    assert run("shared", "init", *admin, "--yes").out == "Everything exists already.\n"

    out = home / "bob.dsn"
    granted = run("shared", "grant", "bob", "alice/main", "read", "--dsn-file", str(out), *admin)
    assert granted.code == 0, granted.err
    assert granted.out.startswith("bob may search alice/main. ~/bob.dsn has the DSN")
    assert out.stat().st_mode & 0o777 == 0o600
    assert "memd_user_bob" in out.read_text()
    again = run("shared", "grant", "bob", "carol/main", "write", *admin, "--json")
    assert json.loads(again.out)["data"] == {
        "role": "memd_user_bob",
        "memory": "carol/main",
        "rights": "write",
        "dsn_file": None,
    }

    config = home / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[shared.team]\ndsn_file = "~/bob.dsn"\n')
    status = run("shared", "status")
    assert status.code == 0, status.err
    assert "as memd_user_bob" in status.out
    assert "alice/main: may search; 0 files, 0 chunks; never published" in status.out
    assert "carol/main: may publish; 0 files" in status.out
    assert json.loads(run("shared", "status", "--json").out)["data"]["memories"][0]["name"] == "alice/main"

    checked = {one["name"]: one for one in json.loads(run("doctor", "--json").out)["data"]}
    assert checked["shared.team"]["detail"] == "memd_user_bob may use alice/main, carol/main"

    assert run("shared", "revoke", "bob", "alice/main", *admin).out == "bob may no longer use alice/main.\n"
    assert "alice/main" not in run("shared", "status").out
    assert run("shared", "revoke", "bob", *admin).code == 0
    assert run("shared", "revoke", "bob", *admin).code == NOT_FOUND
    refused = run("shared", "status")
    assert refused.code == BAD_CONFIG
    assert "memd_user_bob" in refused.err
    assert len(refused.err.strip().splitlines()) == 2  # what is wrong, and what to do


def test_init_on_the_machine_that_publishes(run: Run, home: Path, admin_file: Path) -> None:
    """One command from an empty database to a DSN that may publish what the configuration says; done again it changes nothing."""
    config = home / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        '[agents.main]\npublish = { to = "team", memory = "ann/main" }\nredact = { mode = "all" }\n'
        '[shared.team]\ndsn_file = "~/team.dsn"\n'
    )
    init = ("shared", "init", "--member", "ann", "--admin-dsn-file", str(admin_file), "--yes")
    own = "let ann publish ann/main, and write the connection string to ~/"
    assert own in run(*(one for one in init if one != "--yes")).out
    assert own in run(*init).out
    dsn = (home / "team.dsn").read_text()
    assert "ann/main: may publish" in run("shared", "status").out
    assert run(*init).out == "Everything exists already.\n"
    assert (home / "team.dsn").read_text() == dsn


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ('publish = { to = "team", memory = "ann/main" }', 'set mode = "all"'),
        ('publish = { to = "others", memory = "a" }\nredact = { mode = "all" }', "a table [shared.others]"),
        ('publish = { to = "team" }\nredact = { mode = "all" }', "memory must be a name such as alice/main"),
        ('publish = { to = "team", memory = "../x" }\nredact = { mode = "all" }', "memory must be a name"),
        ('publish = { memory = "a" }\nredact = { mode = "all" }', "to must name a server"),
        (
            'publish = { to = "postgresql://a:b@db/memd", memory = "a" }\nredact = { mode = "all" }',
            "to must name a server, a table [shared.team]",
        ),
        (
            'publish = { to = "team", memory = "a", sources = ["sessions"] }\nredact = { mode = "all" }',
            "must be among the sources of this agent, which lack sessions",
        ),
        ('backend = "postgres"', 'backend = "postgres" needs shared ='),
        ('backend = "postgres"\nshared = { server = "others", memory = "a" }', "needs shared ="),
        ('backend = "postgres"\nshared = { server = "team", memory = "a b" }', "needs shared ="),
        ('shared = { server = "team", memory = "a" }', "shared says nothing without"),
    ],
)
def test_what_cannot_be_published_or_searched(run: Run, home: Path, agent: str, said: str) -> None:
    """Above all nothing that may hold secrets."""
    config = home / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[agents.main]\n{agent}\n[shared.team]\ndsn_file = "~/team.dsn"\n')
    ran = run("config", "check")
    assert ran.code == BAD_CONFIG
    assert said in ran.err


def test_a_file_that_is_there_is_not_replaced(run: Run, home: Path, admin_file: Path) -> None:
    """It may be the DSN of somebody else; --force replaces it, and the old password ends."""
    admin = ("--admin-dsn-file", str(admin_file))
    run("shared", "init", *admin, "--yes")
    out = home / "bob.dsn"
    grant = ("shared", "grant", "bob", "alice/main", "read", "--dsn-file", str(out), *admin)
    assert run(*grant).code == 0
    first = out.read_text()
    assert run(*grant).code == USAGE
    assert out.read_text() == first
    assert run(*grant, "--force").code == 0
    assert out.read_text() != first
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first)
    psycopg.connect(out.read_text()).close()


@pytest.mark.parametrize(
    "words",
    [
        ["grant", "Bob", "alice/main", "read"],
        ["grant", "bob", "../main", "read"],
        ["grant", "bob", "alice/main", "own"],
        ["grant", "newcomer", "alice/main", "read"],  # a new member without a file for the DSN
        ["revoke", "bob smith"],
    ],
)
def test_what_is_no_name_is_a_mistake(run: Run, admin_file: Path, words: list[str]) -> None:
    """Nothing is made."""
    ran = run("shared", *words, "--admin-dsn-file", str(admin_file))
    assert ran.code == USAGE, ran.err
    assert "ERROR" not in ran.err


def test_before_init_nobody_can_be_granted_anything(run: Run, home: Path, admin_file: Path) -> None:
    """It names the command."""
    ran = run(
        *(
            "shared",
            "grant",
            "bob",
            "a/b",
            "read",
            "--dsn-file",
            str(home / "o"),
            "--admin-dsn-file",
            str(admin_file),
        )
    )
    assert ran.code == BAD_CONFIG
    assert "memd-ctl shared init" in ran.err
    assert not (home / "o").exists()


def test_what_the_server_refuses_for_good_is_no_matter_of_trying_again(
    run: Run, home: Path, admin_file: Path
) -> None:
    """A role without rights, a wrong password, a role or a database that is missing, a file that is missing."""
    admin = ("--admin-dsn-file", str(admin_file))
    assert run("shared", "init", *admin, "--yes").code == 0
    member = home / "bob.dsn"
    assert run("shared", "grant", "bob", "a/b", "read", "--dsn-file", str(member), *admin).code == 0
    dsn = admin_file.read_text().strip()
    password = psycopg.conninfo.conninfo_to_dict(dsn)["password"]
    for text, said in (
        (member.read_text(), "administrator"),
        (psycopg.conninfo.make_conninfo(dsn, password=f"not {password}"), "authentication failed"),
        (psycopg.conninfo.make_conninfo(dsn, user="nobody_here"), "nobody_here"),
        (psycopg.conninfo.make_conninfo(dsn, dbname="nowhere"), 'database "nowhere" does not exist'),
        (psycopg.conninfo.make_conninfo(dsn, sslmode="require"), "does not support SSL"),
        ("nonsense", "no connection string"),
        ("", "one line"),
    ):
        file = home / "other.dsn"
        file.write_text(text)
        file.chmod(0o600)
        ran = run("shared", "grant", "carol", "a/b", "read", "--dsn-file", str(home / "carol.dsn"),
                  "--admin-dsn-file", str(file))  # fmt: skip
        assert (ran.code, said in ran.err) == (BAD_CONFIG, True), ran.err
        assert "memd-ctl help shared" in ran.err
        assert not (home / "carol.dsn").exists()
    missing = run("shared", "init", "--admin-dsn-file", str(home / "missing.dsn"))
    assert missing.code == BAD_CONFIG
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE memd.version SET version = 99, least = 99")
    newer = run("shared", "init", *admin)
    assert (newer.code, "upgrade memd" in newer.err) == (BAD_CONFIG, True)


def test_status_without_a_server_in_the_configuration(run: Run) -> None:
    """It says what to add."""
    ran = run("shared", "status")
    assert ran.code == USAGE
    assert "[shared.team] dsn_file" in ran.err


def test_a_server_that_is_away(run: Run, home: Path) -> None:
    """One line, and no password in it."""
    file = home / "admin.dsn"
    file.write_text(f"postgresql://admin:swordfish@127.0.0.1:{unused_port()}/x")
    file.chmod(0o600)
    ran = run("shared", "init", "--admin-dsn-file", str(file))
    assert ran.code == BUSY
    assert "refused" in ran.err
    assert "swordfish" not in ran.err + ran.out


def test_faults_of_the_table_of_a_server(run: Run, home: Path) -> None:
    """As of every other table."""
    config = home / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    for text, said in (
        ("[shared.team]\n", "shared.team needs the key dsn_file"),
        ("[shared.team]\ndsn_file = 7\n", "shared.team.dsn_file must be a path in quotes"),
        ('[shared."my team"]\ndsn_file = "x"\n', "is not a name"),
        ('[shared.team]\ndsn_file = "x"\npassword = "p"\n', "shared.team.password is not a key memd knows"),
        ("shared = 1\n", "shared must hold a table for each server"),
    ):
        config.write_text(text)
        ran = run("config", "check")
        assert ran.code == BAD_CONFIG
        assert said in ran.err
    config.write_text('[shared.team]\ndsn_file = "team.dsn"\n')
    assert run("config", "check").code == 0
    shown = json.loads(run("config", "show", "--json").out)["data"]
    assert shown["shared"]["team"]["dsn_file"] == str(config.parent / "team.dsn")
