"""Edits are found, whatever becomes of watches, disks and directories."""

import os
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

from memd_client import Client
from memd_client.messages import AgentStatus
from tests.daemon.namespaced import Namespaced
from tests.daemon.process import Daemon
from tests.wait import until

QUICK = "sync = { watch_debounce_ms = 50, interval_minutes = 600 }"
TIMEOUT_S = 30.0  # an edit is found within seconds; the machine may be busy


@pytest.fixture
def own(own: Namespaced) -> Namespaced:
    """A daemon that is not started yet, in namespaces of its own, and is ended after the test."""
    own.configure(QUICK)
    return own


@pytest.fixture
def quick(daemon: Daemon) -> Daemon:
    """A daemon that is not started yet, and scans by itself only after hours."""
    daemon.configure(QUICK)
    return daemon


def status(daemon: Daemon) -> AgentStatus:
    with daemon.client() as client:
        return client.status().agents["main"]


def has_files(daemon: Daemon, count: int) -> None:
    """Wait until so many files are indexed. Nothing is searched: that alone would have some of them found."""
    until(lambda: status(daemon).files == count, TIMEOUT_S)


def finds(daemon: Daemon, word: str) -> bool:
    with daemon.client() as client:
        return any(word in hit.snippet for hit in client.search(word).results)


def test_watches_run_out_and_come_back(own: Namespaced) -> None:
    """Without watches left, edits are found by looking, which is said with the remedy; with watches, it watches again."""
    own.write("memory/a.md", "# first\n\nalpha\n")
    own.start()
    has_files(own, 1)
    assert status(own).watcher.ok
    own.limit("max_inotify_watches", 1)
    # The limit is met in the middle: a directory comes, and there is no watch for it.
    own.write("memory/new/b.md", "# second\n\nbravo\n")
    until(lambda: not status(own).watcher.ok, TIMEOUT_S)
    assert "sudo sysctl fs.inotify.max_user_watches=" in (status(own).watcher.reason or "")
    has_files(own, 2)
    own.write("memory/new/deep/c.md", "# third\n\ncharlie\n")
    own.write("memory/new/deep/d.md", "# fourth\n\ndelta\n")
    (own.workspace / "memory/new/b.md").unlink()
    has_files(own, 3)
    with own.client() as client:
        (degraded,) = [one for one in client.search("charlie").degraded if one.part == "watcher"]
    assert "max_user_watches" in degraded.reason
    own.limit("max_inotify_watches", 1000)
    until(lambda: status(own).watcher.ok, TIMEOUT_S)
    own.write("memory/new/deep/e.md", "# fifth\n\necho\n")
    has_files(own, 4)
    with own.client() as client:
        assert not client.search("echo").degraded


def test_more_events_than_the_kernel_keeps(quick: Daemon) -> None:
    """What is written while the kernel has no room for events is found as soon as the daemon runs on."""
    one, other = (
        quick.write("memory/a.md", "# one\n\nalpha\n"),
        quick.write("memory/b.md", "# two\n\nbravo\n"),
    )
    quick.start()
    has_files(quick, 2)
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    quick.process.send_signal(signal.SIGSTOP)
    try:
        for _ in range(room // 2 + 100):
            os.utime(one)
            os.utime(other)
        quick.write("memory/lost/c.md", "# three\n\ncharlie\n")
    finally:
        quick.process.send_signal(signal.SIGCONT)
    has_files(quick, 3)
    quick.write("memory/lost/d.md", "# four\n\ndelta\n")
    has_files(quick, 4)


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    "place", ["memory/disk", "memory", "."], ids=["inside memory", "memory", "workspace"]
)
def test_a_disk_comes_goes_and_returns(own: Namespaced, home: Path, place: str) -> None:
    """What a disk held stays while it is away, and is as it is on the disk, with what was done elsewhere, when it is back."""
    point = own.workspace / place
    point.mkdir(parents=True, exist_ok=True)
    # A bind mount at another place keeps the file system alive, as its own machine would.
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    own.start()
    own.inside("mount", "-t", "tmpfs", "disk", elsewhere)
    away = own.as_seen(elsewhere)
    notes = away / ("memory" if place == "." else "")
    notes.mkdir(exist_ok=True)
    (notes / "a.md").write_text("# on the disk\n\nalpha\n")
    (notes / "b.md").write_text("# on the disk as well\n\nbravo\n")
    own.inside("mount", "--bind", elsewhere, point)
    has_files(own, 2)

    own.unmount(point)
    # Something lies in the place of the disk, and is found: that the disk is gone has been noticed.
    below = own.workspace / ("memory" if place == "." else place) / "here.md"
    below.parent.mkdir(exist_ok=True)
    below.write_text("# in its place\n\nhotel\n")
    has_files(own, 3)
    assert finds(own, "alpha")

    (notes / "a.md").write_text("# on the disk\n\nanother alphabet\n")
    (notes / "b.md").unlink()
    (notes / "c.md").write_text("# new on the disk\n\ncharlie\n")
    own.inside("mount", "--bind", elsewhere, point)
    until(lambda: finds(own, "charlie") and finds(own, "alphabet"), TIMEOUT_S)
    (notes / "c.md").write_text("# new on the disk\n\nchanged to foxtrot\n")
    until(lambda: finds(own, "foxtrot") and status(own).files == 2, TIMEOUT_S)


def test_a_workspace_comes_goes_and_returns(quick: Daemon) -> None:
    """A workspace that is made after the start, removed, made again or exchanged for another is found in seconds."""
    shutil.rmtree(quick.workspace)
    quick.start()
    assert "does not exist" in (status(quick).watcher.reason or "")
    assert status(quick).watcher.ok
    quick.write("memory/a.md", "# first\n\nalpha\n")
    has_files(quick, 1)
    until(lambda: status(quick).watcher.reason is None, TIMEOUT_S)  # a scan may find it before it is watched

    other = quick.home / "other"
    (other / "memory").mkdir(parents=True)
    for name in ("b.md", "c.md"):
        (other / "memory" / name).write_text(f"# {name}\n\nbravo\n")
    quick.workspace.rename(quick.home / "aside")
    other.rename(quick.workspace)
    has_files(quick, 2)

    shutil.rmtree(quick.workspace)
    quick.write("memory/d.md", "# fourth\n\ndelta\n")
    until(lambda: finds(quick, "delta") and status(quick).files == 1, TIMEOUT_S)


def test_a_symlink_above_a_root(home: Path, quick: Daemon) -> None:
    """A symlink above a root hides it, keeps what was indexed, is named, and is gone without a trace when it goes."""
    vault = home / "me" / "vault"
    vault.mkdir(parents=True)
    (vault / "a.md").write_text("# first\n\nalpha\n")
    quick.configure(f'{QUICK}\nextra_paths = ["{vault}"]')
    quick.start()
    has_files(quick, 1)
    (home / "me").rename(home / "moved")
    (home / "me").symlink_to(home / "moved")
    until(lambda: "symlink" in (status(quick).watcher.reason or ""), TIMEOUT_S)
    (home / "moved" / "vault" / "b.md").write_text("# second\n\nbravo\n")
    assert status(quick).files == 1
    (home / "me").unlink()
    (home / "moved").rename(home / "me")
    has_files(quick, 2)
    until(lambda: status(quick).watcher.reason is None, TIMEOUT_S)


def test_notes_dated_in_the_future(quick: Daemon) -> None:
    """Notes from a time when the clock was ahead are found, and so is what is written to them after it was put right."""
    ahead = 4_000_000_000  # the year 2096
    notes = [quick.write(f"memory/{number}.md", f"# {number}\n\nalpha\n") for number in range(40)]
    for note in notes:
        os.utime(note, (ahead, ahead))
    quick.start()
    has_files(quick, 40)
    notes[7].write_text("# 7\n\nbravo\n")  # no longer and no shorter
    assert finds(quick, "bravo")
    os.utime(notes[7], (ahead, ahead))
    notes[8].write_text("# 8\n\ndelta\n")
    os.utime(notes[8], (1, 1))
    until(lambda: finds(quick, "delta") and finds(quick, "bravo"), TIMEOUT_S)


@pytest.mark.parametrize("below", ["", "notes"], ids=["the workspace", "above it"])
def test_a_symlink_that_leads_elsewhere_later(home: Path, quick: Daemon, below: str) -> None:
    """It is followed to the last place it leads to, while nobody searches too; nothing of the places before is found or read."""
    for name in ("first", "second", "third"):
        for directory, word in (("memory", "walrus"), ("vault", "kestrel")):
            (home / name / below / directory).mkdir(parents=True)
            (home / name / below / directory / "a.md").write_text(f"{word} {name}\n")
    workspace = home / "current" / below

    def lead(name: str) -> None:
        (home / "next").symlink_to(name)
        (home / "next").rename(home / "current")

    def hits(client: Client, word: str) -> set[tuple[str, bool]]:
        """The last word of each hit, and whether the answer is stale."""
        found = client.search(word)
        return {(hit.snippet.split()[-1], found.stale) for hit in found.results if word in hit.snippet}

    def is_synced(client: Client, name: str) -> bool:
        client.sync(vectors=False)
        return hits(client, "walrus") == {(name, False)}

    lead("first")
    quick.config.write_text(
        f'[agents.main]\nworkspace = "{workspace}"\nextra_paths = ["{workspace}/vault"]\n{QUICK}\n'
    )
    quick.start()
    has_files(quick, 2)
    with quick.client() as client:
        until(lambda: hits(client, "walrus") == {("first", False)}, TIMEOUT_S)
        lead("second")
        assert hits(client, "walrus") & {("first", False)} == set()
        until(lambda: hits(client, "walrus") == {("second", False)}, TIMEOUT_S)
        assert hits(client, "kestrel") == {("second", False)}
        assert client.get("memory/a.md").text.strip() == "walrus second"
        assert status(quick).watcher.ok
        for name in ("first", "third", "second", "first", "third"):
            lead(name)
        vault = Path(os.path.realpath(workspace)) / "vault" / "a.md"
        until(lambda: any(file.path == str(vault) for file in client.files().files), TIMEOUT_S)
        until(lambda: hits(client, "walrus") == {("third", False)}, TIMEOUT_S)
        for name in ("first", "third"):
            lead(name)
            until(partial(is_synced, client, name), TIMEOUT_S)
        assert hits(client, "kestrel") == {("third", False)}
        assert client.get("memory/a.md").text.strip() == "walrus third"
        (home / "current").unlink()
        assert hits(client, "kestrel") == {("third", True)}
        assert "leads nowhere now" in (status(quick).watcher.reason or "")
        client.reload()
        until(lambda: hits(client, "kestrel") == set(), TIMEOUT_S)
