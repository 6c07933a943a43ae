"""What is no longer on the disk: forgotten where it was deleted, kept and named where it may only be away."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memd_client import Client, RequestFailed
from tests.daemon.namespaced import Namespaced
from tests.daemon.process import Daemon
from tests.wait import until

SETTINGS = 'provider = "none"\nsync = { watch_debounce_ms = 50, wait_ms = 10000, interval_minutes = 600 }'
TIMEOUT_S = 30.0


@pytest.fixture
def own(own: Namespaced) -> Namespaced:
    """A daemon that is not started yet, with mounts of its own, which end with it."""
    own.configure(SETTINGS)
    return own


def shown(client: Client, word: str) -> tuple[int, bool, bool]:
    """How many hits hold a word, whether the answer says that it is stale, and whether it says why."""
    found = client.search(word, min_score=0)
    why = [one.reason for one in found.degraded if one.part == "watcher"]
    return (
        sum(word in hit.snippet for hit in found.results),
        found.stale,
        any("seen last" in one for one in why),
    )


def settled(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.sync(vectors=False)


def _all_deleted(directory: Path) -> None:
    for note in directory.glob("*.md"):
        note.unlink()


def _made_anew(directory: Path) -> None:
    directory.rename(directory.with_name("old"))
    directory.mkdir()


def _made_anew_with_another(directory: Path) -> None:
    _made_anew(directory)
    (directory / "other.md").write_text("heron\n")


def _removed_and_made_anew(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


LOSSES = [_all_deleted, _made_anew, _made_anew_with_another, _removed_and_made_anew]


# Each in one place while the daemon runs, and in the other while it does not; the other way round in the long run.
CASES = [
    pytest.param(
        lose,
        place,
        running,
        marks=() if running is (place == "vault") else pytest.mark.long,
        id=f"{lose.__name__}-{place}-{'running' if running else 'stopped'}",
    )
    for lose in LOSSES
    for place in ("workspace/memory", "vault")
    for running in (True, False)
]


@pytest.mark.rows(2)
@pytest.mark.parametrize(("lose", "place", "running"), CASES)
def test_deleted_notes_are_found_no_longer(
    daemon: Daemon, lose: Callable[[Path], None], place: str, running: bool
) -> None:
    """However all of a directory went, while the daemon ran or not: a directory that is there and empty is empty."""
    directory = daemon.home / place
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(3):
        (directory / f"{number}.md").write_text(f"walrus {number}\n")
    daemon.configure(f'{SETTINGS}\nextra_paths = ["{daemon.home}/vault"]')
    daemon.write("MEMORY.md", "kept\n")
    daemon.start()
    settled(daemon)
    if not running:
        daemon.stop()
    lose(directory)
    if not running:
        daemon.start()
        settled(daemon)
    with daemon.client() as client:
        until(lambda: shown(client, "walrus") == (0, False, False), TIMEOUT_S)
        client.sync(vectors=False)
        status = client.status().agents["main"]
        assert status.watcher.ok
        assert status.files == 1 + (lose is _made_anew_with_another)


@pytest.mark.rows(1)
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("by_link", [False, True], ids=["moved", "a symlink in its place"])
def test_a_root_that_is_not_there_keeps_its_files_and_says_so(
    daemon: Daemon, by_link: bool, restarted: bool
) -> None:
    """In each answer, in status, until it is back, or until somebody has the index forget it."""
    vault = daemon.home / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("walrus\n")
    daemon.configure(f'{SETTINGS}\nextra_paths = ["{vault}"]')
    daemon.start()
    settled(daemon)
    if restarted:
        daemon.stop()
    vault.rename(daemon.home / "away")
    if by_link and not restarted:  # a start follows it
        vault.symlink_to(daemon.home / "away")
    if restarted:
        daemon.start()
        settled(daemon)
    with daemon.client() as client:
        until(lambda: shown(client, "walrus") == (1, True, True), TIMEOUT_S)
        status = client.status().agents["main"].watcher
        assert not status.ok
        assert "1 indexed file is shown as it was seen last" in (status.reason or "")
        with pytest.raises(RequestFailed) as unavailable:
            client.get(str(vault / "a.md"))
        assert unavailable.value.code == "unavailable"
        client.sync(force=True, vectors=False)
        assert shown(client, "walrus") == (0, False, False)
        assert client.status().agents["main"].watcher.ok
        if by_link and not restarted:
            vault.unlink()
        (daemon.home / "away").rename(vault)
        until(lambda: shown(client, "walrus") == (1, False, False), TIMEOUT_S)


@pytest.mark.rows(1)
@pytest.mark.parametrize("place", ["workspace/memory", "vault", "vault/disk"])
def test_a_disk_that_is_not_mounted_is_waited_for(own: Namespaced, home: Path, place: str) -> None:
    """Also over a restart, and whatever is asked for: what lay on it comes back with it. Only an index made anew forgets."""
    point = home / place
    point.mkdir(parents=True, exist_ok=True)
    own.configure(f'{SETTINGS}\nextra_paths = ["{home}/vault"]')
    own.start()
    own.inside("mount", "-t", "tmpfs", "disk", point)
    (own.as_seen(point) / "a.md").write_text("walrus\n")
    with own.client() as client:
        assert shown(client, "walrus") == (1, False, False)
        own.unmount(point)
        assert shown(client, "walrus") == (1, True, True)
        client.sync(force=True, vectors=False)
        assert shown(client, "walrus") == (1, True, True)
    own.stop()
    own.start()
    settled(own)
    (home / place / "other.md").write_text("heron\n")
    with own.client() as client:
        client.sync(force=True, vectors=False)
        assert shown(client, "walrus") == (1, True, True)
        own.inside("mount", "-t", "tmpfs", "disk", point)
        assert shown(client, "walrus") == (0, False, False)  # another disk, without the file


@pytest.mark.rows(1)
@pytest.mark.parametrize("place", ["workspace", "workspace/memory", "vault", "vault/disk"])
def test_a_disk_that_comes_and_goes_between_two_looks(own: Namespaced, home: Path, place: str) -> None:
    """Each search knows by the kernel's own count that a disk came or went, were it mounted for a moment."""
    point = home / place
    below = "memory/a.md" if place == "workspace" else "a.md"
    (point / below).parent.mkdir(parents=True, exist_ok=True)
    disk = home / "elsewhere"
    disk.mkdir()
    own.configure(f'{SETTINGS}\nextra_paths = ["{home}/vault"]')
    own.start()
    own.inside("mount", "-t", "tmpfs", "disk", disk)
    note = own.as_seen(disk) / below
    note.parent.mkdir(exist_ok=True)
    with own.client() as client:
        client.sync(vectors=False)
        for number in range(4):
            note.write_text(f"walrus{number}\n")
            own.inside("mount", "--bind", disk, point)
            if (
                number % 2
            ):  # else nobody asks while it is there, but what is there may be indexed all the same
                assert shown(client, f"walrus{number}") == (1, False, False)
            else:
                (own.as_seen(point) / below).write_text(f"walrus{number} walrus{number}\n")
                client.sync(vectors=False)
            own.unmount(point)
            assert shown(client, f"walrus{number}") == (1, True, True)
            own.inside("mount", "--bind", disk, point)
            assert shown(client, f"walrus{number}") == (1, False, False)
            own.unmount(point)
            assert shown(client, f"walrus{number}") == (1, True, True)


def test_a_mount_point_below_a_directory_that_is_excluded_now_keeps_nothing(
    own: Namespaced, home: Path
) -> None:
    """Who has changed the configuration waits for no disk."""
    point = home / "workspace" / "memory" / "disk"
    point.mkdir(parents=True)
    own.start()
    own.inside("mount", "-t", "tmpfs", "disk", point)
    (own.as_seen(point) / "a.md").write_text("walrus\n")
    with own.client() as client:
        until(lambda: shown(client, "walrus") == (1, False, False), TIMEOUT_S)
    own.stop()
    own.configure(f'{SETTINGS}\nexclude = ["memory/disk/"]')
    own.start()
    settled(own)
    with own.client() as client:
        assert shown(client, "walrus") == (0, False, False)


def test_a_sync_names_the_configured_directories_that_do_not_exist(daemon: Daemon) -> None:
    """Whether or not anything was ever in them; homes of presets may not be in use, and are not named."""
    home = daemon.home
    sources = 'sources = ["memory", "sessions"]\nmemory_presets = ["codex"]'
    sessions = f'sessions = {{ presets = ["codex"], paths = ["{home}/chats"] }}'
    daemon.configure(f'{SETTINGS}\nextra_paths = ["{home}/vault", "{home}/never"]\n{sources}\n{sessions}')
    (home / "vault").mkdir()
    (home / "vault" / "a.md").write_text("walrus\n")
    daemon.start(environ={"CODEX_HOME": f"{home}/codex"})
    with daemon.client() as client:
        assert client.sync(vectors=False).missing == [f"{home}/never", f"{home}/chats"]
        (home / "vault").rename(home / "away")
        daemon.workspace.rename(home / "other")
        (home / "chats").mkdir()
        missing = client.sync(vectors=False).missing
        assert missing == [f"{daemon.workspace}", f"{home}/vault", f"{home}/never"]
        (home / "away").rename(home / "vault")
        (home / "other").rename(daemon.workspace)
        (home / "never").mkdir()
        assert client.sync(vectors=False).missing == []


def test_a_root_that_is_not_there_keeps_nothing_that_is_excluded_now(daemon: Daemon) -> None:
    """The rules hold for what memd cannot look at, too."""
    vault = daemon.home / "vault"
    (vault / "private").mkdir(parents=True)
    for name in ("a.md", "private/b.md"):
        (vault / name).write_text(f"The walrus of {name}.\n")
    daemon.configure(f'{SETTINGS}\nextra_paths = ["{vault}"]')
    daemon.start()
    settled(daemon)
    vault.rename(daemon.home / "away")
    with daemon.client() as client:
        assert shown(client, "walrus") == (2, True, True)
        daemon.configure(f'{SETTINGS}\nextra_paths = ["{vault}"]\nexclude = ["private/"]')
        client.reload()
        assert shown(client, "walrus") == (1, True, True)
