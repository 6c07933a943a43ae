"""Thousands of notes, and thousands of changes at once."""

import hashlib
import os
import subprocess
from pathlib import Path

import apsw
import pytest

from tests.daemon.fresh import PATIENT, QUICK, becomes_fresh, holding, index_of
from tests.daemon.process import Daemon

# Nobody's settings of git have a say in a test.
_ENVIRON = os.environ | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", directory, *arguments], env=_ENVIRON, check=True, capture_output=True, timeout=60
    )


def fill(daemon: Daemon, numbers: range, text: str) -> None:
    """Write notes, in directories of fifty."""
    for number in numbers:
        daemon.write(
            f"memory/{number // 50}/{number:04}.md", f"# Note {number}\n\n{text} number{number:04}\n"
        )


@pytest.mark.long
def test_ten_thousand_notes(daemon: Daemon) -> None:
    """All are indexed as they are, and one more is found at once without the others being looked at."""
    memory = daemon.workspace / "memory"
    for number in range(10_000):
        (memory / f"{number}.md").write_bytes(b"quokka %d" % number)
    daemon.configure(f'provider = "none"\n{PATIENT}')
    with daemon.start(), daemon.client(120) as client:
        client.sync()
        index = apsw.Connection(str(index_of(daemon)), flags=apsw.SQLITE_OPEN_READONLY)
        index.set_busy_timeout(10_000)
        held = {str(path): digest for path, digest in index.execute("SELECT path, hash FROM files")}
        index.close()
        assert held == {f"memory/{n}.md": hashlib.sha256(b"quokka %d" % n).digest() for n in range(10_000)}
        daemon.write("memory/urgent.md", "# Urgent\n\nbandicoot\n")
        assert holding(client, "bandicoot") == {"memory/urgent.md"}
        assert holding(client, "9999") == {"memory/9999.md"}


@pytest.mark.long
def test_a_thousand_changes_at_once(daemon: Daemon) -> None:
    """Edits, new notes and deletions are all taken in, and a note that is written in their midst is found at once."""
    fill(daemon, range(1500), "quokka")
    daemon.configure(QUICK)
    with daemon.start(), daemon.client(120) as client:
        client.sync()
        fill(daemon, range(400), "wombat")
        fill(daemon, range(2000, 2300), "wombat")
        daemon.write("memory/urgent.md", "# Urgent\n\nbandicoot\n")
        assert holding(client, "bandicoot") == {"memory/urgent.md"}
        for number in range(500, 800):
            (daemon.workspace / f"memory/{number // 50}/{number:04}.md").unlink()
        fresh = becomes_fresh(daemon, client)
        assert len(fresh.contents) == 1501
        assert holding(client, "number0399") == {"memory/7/0399.md"}
        assert holding(client, "number0600") == set()


@pytest.mark.long
def test_a_checkout_of_another_branch(daemon: Daemon) -> None:
    """After each checkout the index is that of the branch: what is not on it is gone, and back again on the way back."""
    workspace = daemon.workspace
    daemon.configure(QUICK)
    git(workspace, "init", "-q", "-b", "main")
    fill(daemon, range(150), "quokka")
    daemon.write("MEMORY.md", "- the quokka branch\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-q", "-m", "one")
    git(workspace, "checkout", "-q", "-b", "other")
    fill(daemon, range(30), "wombat")
    (workspace / "memory/1").rename(workspace / "memory/moved")
    git(workspace, "rm", "-r", "-q", "memory/2")
    daemon.write("memory/topic.md/inside.md", "# Inside\n\na directory on this branch\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-q", "-m", "two")
    git(workspace, "checkout", "-q", "main")
    daemon.write("memory/topic.md", "# Topic\n\na file on this branch\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-q", "-m", "three")
    with daemon.start(), daemon.client(60) as client:
        client.sync()
        on_main = becomes_fresh(daemon, client)
        assert len(on_main.contents) == 152
        git(workspace, "checkout", "-q", "other")
        on_other = becomes_fresh(daemon, client)
        assert len(on_other.contents) == 102
        assert holding(client, "number0042") == {"memory/0/0042.md"}
        assert holding(client, "number0072") == {"memory/moved/0072.md"}
        assert "memory/topic.md/inside.md" in on_other.contents
        # There and back, faster than anybody indexes.
        for branch in ("main", "other") * 3:
            git(workspace, "checkout", "-q", branch)
        git(workspace, "checkout", "-q", "main")
        assert becomes_fresh(daemon, client).contents == on_main.contents
