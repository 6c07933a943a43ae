import signal
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.daemon.fresh import PATIENT
from tests.daemon.process import ROOT, Daemon
from tests.wait import until

TIMEOUT_S = 30.0


def test_written_note_is_found_and_read(daemon: Daemon) -> None:
    """What was written before the start is found after it, and can be read where the hit says."""
    daemon.write("memory/2026-02-09.md", "# Monday\n\nWe picked PostgreSQL for the ledger.\n")
    daemon.start()
    with daemon.client() as client:
        assert client.sync().vectors == "complete"
        [hit] = client.search("which database for the ledger?").results
        assert hit.path == "memory/2026-02-09.md"
        note = client.get(hit.path, start_line=3, lines=1)
    assert note.text == "We picked PostgreSQL for the ledger."


def test_what_was_just_written_is_found_by_the_very_next_search(daemon: Daemon) -> None:
    """A new note, an edit and a first MEMORY.md are each in the results of the search that follows at once."""
    daemon.configure(PATIENT)
    daemon.start()
    with daemon.client() as client:
        client.sync()
        note = daemon.write("memory/new.md", "The greenhouse needs tomatoes.\n")
        assert client.search("greenhouse").results
        for number in range(20):
            note.write_text(f"The greenhouse needs item{number}.\n", encoding="utf-8")
            found = client.search(f"item{number}")
            assert [hit.snippet for hit in found.results[:1]] == [f"The greenhouse needs item{number}."]
            assert not found.stale
        daemon.write("MEMORY.md", "- The owl is called Archimedes.\n")
        assert client.search("owl").results
        note.unlink()
        assert not client.search("greenhouse").results


def test_a_time_zone_that_nothing_can_compute_with_gives_way_to_utc(home: Path) -> None:
    """Searches answer, and the log says what to set."""
    daemon = Daemon(home, forked=False)
    daemon.write("memory/2026-02-09.md", "We picked PostgreSQL for the ledger.\n")
    with daemon.start(environ={"TZ": "XXX-25"}), daemon.client() as client:
        client.sync()
        assert client.search("which database for the ledger, yesterday?", now="2026-02-10").results
        assert client.search("ledger").results
        (warned,) = [line for line in daemon.printed().splitlines() if "daemon.time_zone_unusable" in line]
    assert "TZ is 'XXX-25', which is 24 hours or more from UTC" in warned
    assert "set TZ, or the setting timezone, to a zone such as Europe/Berlin" in warned


def test_stops_cleanly_on_sigterm(daemon: Daemon) -> None:
    """SIGTERM ends it with status 0, and takes the socket away."""
    daemon.start()
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    assert daemon.stop() == 0
    assert not daemon.socket.exists()
    assert "daemon.stopped" in daemon.printed()


def test_takes_over_the_socket_of_a_killed_daemon(daemon: Daemon) -> None:
    """After a SIGKILL the next one starts on the same socket, with everything that was there."""
    daemon.write("MEMORY.md", "- The cat is called Mochi.\n")
    daemon.start()
    with daemon.client() as client:
        client.sync()
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start()
    with daemon.client() as client:
        assert client.search("cat called").results


def test_reload_takes_up_an_extra_path_and_refuses_a_broken_file(daemon: Daemon) -> None:
    """SIGHUP brings what the file says now into force; a broken file keeps the old settings and status says why."""
    daemon.start()
    extra = daemon.home / "extra"
    extra.mkdir()
    (extra / "a.md").write_text("Quokkas live on Rottnest Island.\n", encoding="utf-8")
    daemon.configure(f'extra_paths = ["{extra}"]')
    daemon.process.send_signal(signal.SIGHUP)
    with daemon.client() as client:
        until(lambda: client.search("quokkas").results, 10)
        daemon.configure("max_result = 3")
        daemon.process.send_signal(signal.SIGHUP)
        reason = until(lambda: client.status().config_error, 10)
        assert reason is not None
        assert "max_result" in reason
        assert client.search("quokkas").results


def test_a_deleted_socket_is_bound_again(daemon: Daemon) -> None:
    """Clients find the daemon a moment later, those that are connected notice nothing, and at the end it is gone."""
    daemon.configure(PATIENT)
    daemon.write("MEMORY.md", "- PostgreSQL\n")
    with daemon, daemon.client() as connected:
        for _ in range(2):
            assert connected.search("PostgreSQL").results
            daemon.socket.unlink()
            until(daemon.socket.exists, TIMEOUT_S)
            with daemon.client() as client:
                assert client.search("PostgreSQL").results
    assert not daemon.socket.exists()


@pytest.mark.rows(1)
@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_no_trouble(redirection: str) -> None:
    """As those leave it who start it in the background by themselves."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home), settings='provider = "none"', real_model=True)
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *daemon.command], cwd=ROOT
        )
        until(daemon.socket.exists, TIMEOUT_S)
        with daemon.client() as client:
            client.sync()
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def test_signals_that_its_parent_has_blocked_are_heard(home: Path) -> None:
    """A program that waits for signals on a thread of its own has them blocked, and starts others so."""
    daemon = Daemon(home, settings='provider = "none"', real_model=True)
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
    try:
        daemon.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    try:
        assert daemon.stop() == 0
    finally:
        daemon.kill()


def test_a_state_directory_that_was_moved_is_told_of_and_heals(daemon: Daemon) -> None:
    """With what to do about it, and without a restart when it is back."""
    daemon.write("MEMORY.md", "- PostgreSQL\n")
    with daemon, daemon.client() as client:
        client.sync()
        away = daemon.state.with_name("away")
        daemon.state.rename(away)
        daemon.write("memory/a.md", "- kangaroo\n")
        until(lambda: "put it back" in (client.status().agents["main"].store.reason or ""), TIMEOUT_S)
        away.rename(daemon.state)
        until(lambda: client.search("kangaroo").results, TIMEOUT_S)
        until(lambda: client.status().agents["main"].store.ok, TIMEOUT_S)
        daemon.write("memory/b.md", "- lighthouse\n")
        assert client.search("lighthouse").results
