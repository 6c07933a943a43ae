"""memd-ctl up and down with a real daemon."""

import contextlib
import json
import os
import signal
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from memd.ctl.atomic_write import Overtaken
from memd_client import Client
from tests.bounds import shipped
from tests.ctl.conftest import Run
from tests.ctl.real import House, house
from tests.wait import until

_SCOPE = ["agents.main.scope.default", "agents.main.scope.rules"]


@pytest.fixture
def ours() -> Iterator[House]:
    """A house whose agent main has a workspace."""
    with house() as made:
        made.make("ws/MEMORY.md", "# We picked PostgreSQL\n")
        made.write_config('[agents.main]\nworkspace = "~/ws"\n')
        yield made


@pytest.fixture
def empty() -> Iterator[House]:
    """A house without a configuration."""
    with house() as made:
        yield made


def test_a_daemon_is_started_and_stopped(ours: House) -> None:
    """It answers at once, in a session of its own; its log is for its owner alone."""
    ran = ours.run("up")
    assert ran.code == 0, ran
    assert ran.out.startswith("Started memd (pid ")
    assert "1 file, 1 chunk searchable now." in ran.out
    pid = ours.daemon
    assert pid is not None
    assert os.getsid(pid) == pid
    assert stat.S_IMODE((ours.state / "memd.log").stat().st_mode) == 0o600
    assert stat.S_IMODE(ours.state.stat().st_mode) == 0o700
    found = ours.run("search", "postgresql")
    assert found.out.splitlines()[0].startswith("MEMORY.md:1-1  ")
    assert ours.run("get", "MEMORY.md") == (0, "# We picked PostgreSQL\n", "")
    assert ours.run("get", "memory/none.md").code == 3
    assert "daemon.started" in ours.run("logs", "-n", "50").out
    down = ours.run("down")
    assert down.code == 0
    assert down.out.startswith(f"Stopped memd (pid {pid}) in ")
    assert ours.daemon is None
    assert ours.run("down").out == "memd is not running.\n"
    assert ours.run("status").code == 69


def test_a_daemon_that_runs_is_left_alone(ours: House) -> None:
    """There is nothing to change."""
    first = ours.data("up")
    assert (first["started"], first["reloaded"], first["changed"], first["files"]) == (True, False, None, 1)
    second = ours.data("up")
    assert (second["started"], second["reloaded"], second["pid"]) == (False, False, first["pid"])
    assert "there is nothing to change" in ours.run("up").out


def test_two_at_once_start_one_daemon(ours: House) -> None:
    """Whoever is slower takes the other's for its own."""
    ran = [ours.ended(command) for command in [ours.start("up", "--json") for _ in range(3)]]
    assert [one.code for one in ran] == [0, 0, 0], ran
    assert {json.loads(one.out)["data"]["pid"] for one in ran} == {ours.daemon}


def test_a_directory_with_a_memory_becomes_the_workspace(empty: House) -> None:
    """The configuration is made where there is none, without asking."""
    empty.make("notes/memory/2026-02-09.md", "# Tea with Anna\n")
    ran = empty.run("up", "notes/")
    assert ran.code == 0, ran
    assert "~/notes is the workspace of main now; ~/.config/memd/config.toml says so." in ran.out
    assert f'workspace = "{empty.home}/notes"' in empty.config.read_text(encoding="utf-8")
    assert empty.data("status")["agents"]["main"]["workspace"] == f"{empty.home}/notes"
    assert empty.run("search", "anna").out.startswith("memory/2026-02-09.md:1-1  ")


def test_a_directory_of_notes_where_there_is_no_workspace(empty: House) -> None:
    """Nothing is missed that nobody has: the directory is the workspace too, and doctor finds nothing wrong with it."""
    empty.make("notes/bread.md", "# Sourdough\n")
    ran = empty.run("up", "notes")
    assert ran.code == 0, ran
    assert "main searches ~/notes now; ~/.config/memd/config.toml says so." in ran.out
    agent = empty.data("status")["agents"]["main"]
    assert (agent["workspace"], agent["extra_paths"]) == (f"{empty.home}/notes", [f"{empty.home}/notes"])
    assert agent["watcher"] == {"ok": True, "reason": None}
    assert empty.run("search", "sourdough").out.startswith(f"{empty.home}/notes/bread.md:1-1  ")
    found = {one["name"]: one for one in json.loads(empty.run("doctor", "--json").out)["data"]}
    assert [name for name, one in found.items() if "notes" in name and not one["ok"]] == []
    assert empty.data("up", "notes")["changed"] is None


@pytest.mark.long
def test_a_directory_without_one_becomes_an_extra_path(ours: House) -> None:
    """The daemon that runs reads the configuration again; it is the same daemon."""
    ours.make("docs/bread.md", "# Sourdough\n")
    pid = ours.begin()
    told = ours.data("up", "~/docs", "--yes")
    assert (told["pid"], told["started"], told["reloaded"], told["changed"]) == (
        pid,
        False,
        True,
        "extra_path",
    )
    assert told["files"] == 2
    assert ours.run("search", "sourdough").out.startswith(f"{ours.home}/docs/bread.md:1-1  ")
    again = ours.data("up", "docs")
    assert (again["reloaded"], again["changed"]) == (False, None)
    assert "main searches ~/docs already." in ours.run("up", "docs").out


@pytest.mark.long
def test_an_agent_is_not_changed_unasked(ours: House) -> None:
    """Off a terminal --yes must be said; on one a person is asked."""
    before = ours.config.read_bytes()
    other = ours.make("other/MEMORY.md")
    refused = ours.run("up", str(other))
    assert refused.code == 2
    assert "--yes" in refused.err
    assert json.loads(ours.run("up", str(other), "--json").out)["error"]["type"] == "usage"
    code, said = ours.run_on_terminal("n\n", "up", str(other))
    assert code == 1
    assert "The workspace of main is ~/ws. Make it ~/other? [y/N]" in said
    assert "Nothing was changed." in said
    assert ours.config.read_bytes() == before
    assert ours.daemon is None
    code, said = ours.run_on_terminal("y\n", "up", str(other))
    assert code == 0, said
    assert "~/other is the workspace of main now" in said
    assert ours.data("status")["agents"]["main"]["workspace"] == str(other)


def test_another_agent_gets_a_workspace_of_its_own(ours: House) -> None:
    """Nobody has to be asked, for none is changed."""
    bob = ours.make("bob/MEMORY.md", "# Bob likes kites\n")
    assert ours.data("up", str(bob), "--agent", "bob")["agents"] == ["bob"]
    assert sorted(ours.data("status")["agents"]) == ["bob", "main"]
    assert ours.run("search", "kites", "--agent", "bob").out.startswith("MEMORY.md:1-1  ")
    assert ours.run("search", "kites", "--agent", "main").out == ""
    docs = ours.make("docs/a.md")
    neither = ours.run("up", str(docs), "--agent", "eve")
    assert neither.code == 2
    assert "cannot be its workspace" in neither.err


def test_what_the_file_says_already_is_put_in_force(ours: House) -> None:
    """Somebody wrote it there by hand, and the daemon did not read it yet."""
    ours.begin()
    docs = ours.make("docs/bread.md", "# Sourdough\n")
    ours.write_config(f'[agents.main]\nworkspace = "~/ws"\nextra_paths = ["{docs}"]\n')
    told = ours.data("up", "docs")
    assert (told["reloaded"], told["changed"], told["files"]) == (True, None, 2)


def test_what_waits_for_a_word_is_told_and_brought_into_force_by_one(ours: House) -> None:
    """Everybody who looks hears of it; what is harmless is in force by itself."""
    ours.begin()
    assert ours.run("reload").out == "memd uses ~/.config/memd/config.toml; nothing had changed.\n"
    ours.write_config(
        '[agents.main]\nworkspace = "~/ws"\ncitations = "off"\nscope = { default = "allow", rules = [] }\n'
    )
    until(lambda: ours.data("status")["config_waiting"] == _SCOPE, 20)
    key = ("--session-key", "agent:main:telegram:group:7", "--json")
    assert ours.data("search", "postgresql", *key)["scope_denied"]
    assert not ours.data("search", "postgresql")["citations"]
    assert "agents.main.scope.default, agents.main.scope.rules: changed in the file" in ours.run("status").out
    assert (
        "has changed since (agents.main.scope.default, agents.main.scope.rules): `memd-ctl reload`"
        in ours.run("up").out
    )
    found = {one["name"]: one for one in json.loads(ours.run("doctor", "--json").out)["data"]}
    assert found["daemon.config"]["detail"].endswith(f"waits for a person's word: {', '.join(_SCOPE)}")
    assert ours.data("reload")["changed"] == _SCOPE
    assert not ours.data("search", "database", "--session-key", "agent:main:telegram:group:7")["scope_denied"]
    assert "there is nothing to change" in ours.run("up").out
    assert ours.data("status")["config_waiting"] == []


def test_a_wrong_configuration_is_refused_by_name(ours: House) -> None:
    """And the daemon goes on; `up` does not say that all is as it should be."""
    ours.begin()
    ours.write_config('[agents.main]\nworkspace = "~/ws"\nscoop = 1\n')
    refused = ours.run("reload")
    assert refused.code == 78
    assert "agents.main.scoop is not a key memd knows" in refused.err
    told = ours.run("up").out
    assert "with its old configuration" in told
    assert "agents.main.scoop is not a key memd knows" in told
    assert ours.run("search", "postgresql").out


def test_an_edit_that_is_made_while_a_question_stands_is_kept(ours: House) -> None:
    """The directory is added to what the file says when the answer comes."""
    docs = ours.make("docs/a.md")
    edit = '[agents.main.scope]\ndefault = "deny"\nrules = []\n'

    def append() -> None:
        with ours.config.open("a", encoding="utf-8") as file:
            file.write(edit)

    code, said = ours.run_on_terminal("y\n", "up", str(docs), meanwhile=append)
    assert code == 0, said
    text = ours.config.read_text(encoding="utf-8")
    assert edit in text
    assert str(docs) in text


def test_a_configuration_that_never_rests_is_left_alone(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some attempts; the person is asked to try again, and no daemon is started."""
    attempts = []

    def overtaken(file: Path, _: str, *, over: bytes) -> NoReturn:
        attempts.append(over)
        raise Overtaken(file)

    monkeypatch.setattr("memd.ctl.commands.up.write_text", overtaken)
    notes = home / "notes"
    notes.mkdir()
    ran = run("up", str(notes), "--yes")
    assert (ran.code, "is being written all the time" in ran.err) == (75, True), ran
    assert attempts == [b""] * shipped("memd.ctl.commands.up._TIMES")


@pytest.mark.parametrize("what", ["directory", "log"])
def test_a_state_directory_that_cannot_be_written_is_told_with_the_way_out(ours: House, what: str) -> None:
    """As the daemon itself would; a file stands where a directory should, or the other way round."""
    if what == "directory":
        ours.make("st", "")
    else:
        (ours.home / "st" / "memd.log").mkdir(parents=True)
    ran = ours.run("up", "--state-dir", str(ours.home / "st"))
    assert ran.code == 78, ran
    assert f"{ours.home / 'st' / 'memd.log'} cannot be written: " in ran.err
    assert "MEMD_STATE_DIR" in ran.err
    assert ours.daemon is None


def test_an_agent_that_cannot_run_is_told(ours: House) -> None:
    """Its index is of a newer memd; the others are searchable all the same."""
    ours.write_config('[agents.main]\nworkspace = "~/ws"\n[agents.late]\nworkspace = "~/ws"\n')
    ours.begin()
    assert ours.run("down").code == 0
    with contextlib.closing(sqlite3.connect(ours.state / "agents" / "late.sqlite")) as store:
        store.execute("PRAGMA user_version = 99999")
    ran = ours.run("up")
    assert ran.code == 0, ran
    assert "1 file, 1 chunk searchable now." in ran.out
    assert "Agent late cannot run: " in ran.err
    assert ran.err.endswith("made anew from your notes. See memd-ctl doctor.\n")


def test_a_wrong_configuration_starts_nothing(ours: House) -> None:
    """The line that is wrong is told, whoever met it."""
    ours.write_config("[agents.main]\nworkspce = 1\n")
    ran = ours.run("up")
    assert ran.code == 78
    assert "exit status 78" in ran.err
    assert "config.toml:4: agents.main.workspce" in ran.err
    before = ours.config.read_bytes()
    ran = ours.run("up", "ws", "--yes")
    assert ran.code == 78
    assert "config.toml:4: agents.main.workspce" in ran.err
    assert ours.config.read_bytes() == before


@pytest.mark.long
def test_a_configuration_that_went_wrong_meanwhile_is_refused(ours: House) -> None:
    """The daemon goes on with the old one, and an earlier complaint of it is no answer."""
    pid = ours.begin()
    good = ours.config.read_text(encoding="utf-8")
    ours.write_config("[agents.main]\nworkspce = 1\n")
    os.kill(pid, signal.SIGHUP)
    until(lambda: ours.data("status")["config_error"], 20)
    assert "The configuration is wrong" in ours.run("status").out
    ours.config.write_text(good, encoding="utf-8")
    docs = ours.make("docs/a.md")
    assert ours.data("up", str(docs), "--yes")["reloaded"] is True
    assert ours.data("status")["config_error"] is None


def test_a_named_configuration_must_be_the_daemons(ours: House) -> None:
    """Changing another file would change nothing, and no answer may look as if that file were in force."""
    ours.begin()
    (ours.home / "my.toml").write_text("", encoding="utf-8")
    for directory in (("ws",), ()):
        ran = ours.run("up", *directory, "--config", "my.toml")
        assert ran.code == 2
        assert "reads ~/.config/memd/config.toml, not ~/my.toml" in ran.err
    assert ours.run("up", "--config", str(ours.config)).code == 0
    assert ours.run("up", "ws", "--config", str(ours.config)).code == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take no such name")
def test_the_name_of_the_home_directory_need_not_be_utf_8(short: Path) -> None:
    """Its paths are shown with escaped bytes, and are known again."""
    odd = short / os.fsdecode(b"h\xe9")
    odd.mkdir()
    ours = House(odd)
    try:
        ours.make(".openclaw/workspace/MEMORY.md", "# We picked PostgreSQL\n")
        ours.write_config("")
        ours.begin()
        shown = ours.data("status")
        assert shown["config"] == f"{short}/h\\xe9/home/.config/memd/config.toml"
        assert shown["agents"]["main"]["workspace"] == f"{short}/h\\xe9/home/.openclaw/workspace"
        for words in (("up",), ("up", str(ours.home / ".openclaw" / "workspace")), ("reload",)):
            ran = ours.run(*words)
            assert ran.code == 0, ran
        assert not (short / "h\\xe9").exists()
        checks = json.loads(ours.run("doctor", "--json", "--timeout", "60").out)["data"]
        assert [one["ok"] for one in checks if one["name"] == "daemon.config"] == [True]
    finally:
        ours.clear()


def test_a_busy_daemon_is_waited_for(ours: House) -> None:
    """It is not taken for none: a file that it does not read stays as it is."""
    pid = ours.begin()
    other = ours.home / "my.toml"
    other.write_text("", encoding="utf-8")
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(3, os.kill, (pid, signal.SIGCONT)).start()
    for timeout in (
        (),
        ("--timeout", "0.001"),
    ):  # the second has less time for the answer than an idle daemon needs
        ran = ours.run("up", "ws", "--config", "my.toml", "--yes", *timeout)
        assert ran.code == 2
        assert "reads ~/.config/memd/config.toml, not ~/my.toml" in ran.err
        assert other.read_text("utf-8") == ""


@pytest.mark.long
def test_a_configuration_that_is_named_but_missing_starts_nothing(ours: House) -> None:
    """Without a directory there is nothing to put into it; with one it is made."""
    assert ours.run("up", "--config", "my.toml").code == 78
    ran = ours.run("up", "ws", "--config", "my.toml")
    assert ran.code == 0, ran
    assert (ours.home / "my.toml").is_file()
    assert ours.data("status")["config"] == str(ours.home / "my.toml")


def test_all_of_it_may_be_elsewhere(ours: House) -> None:
    """Two daemons live beside each other; the hint for what to do next names the socket."""
    ours.begin()
    flags = ["--socket", "k", "--state-dir", "st", "--config", str(ours.config)]
    ran = ours.run("up", *flags)
    assert ran.code == 0, ran
    assert "memd-ctl --socket k --state-dir st search" in ran.out
    assert (ours.home / "st" / "memd.log").is_file()
    assert ours.run("down", *flags).code == 0
    assert ours.daemon is not None


@pytest.mark.rows(2)
@pytest.mark.parametrize("directory", ["none", "ws/MEMORY.md", "/", "~", "."])
def test_what_should_not_be_searched_is_refused(ours: House, directory: str) -> None:
    """Before anything is written or started."""
    before = ours.config.read_bytes()
    ran = ours.run("up", directory, "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert ours.config.read_bytes() == before
    assert ours.daemon is None


def test_a_socket_path_that_is_too_long_is_told_at_once(ours: House) -> None:
    """Rather than by a daemon that ends."""
    ran = ours.run("up", "--socket", "x" * 120)
    assert ran.code == 78
    assert "MEMD_SOCKET" in ran.err


def test_sync_tells_what_is_searchable(ours: House) -> None:
    """Of a real daemon; without a provider there are no vectors to wait for."""
    ours.begin()
    ours.make("ws/memory/2026-02-10.md", "# Kites\n")
    ran = ours.run("sync")
    assert ran.code == 0
    assert ran.out.startswith("2 files, 2 chunks searchable (")
    assert "No vectors: " in ran.out
    assert ours.data("reindex", "--dry-run")["files"] == 2
    assert ours.data("reindex")["agents"] == ["main"]
    assert ours.data("explain", "kites")["candidates"][0]["path"] == "memory/2026-02-10.md"
    with Client(ours.state / "memd.sock") as memd:
        assert memd.search("kites").results
