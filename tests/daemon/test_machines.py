"""Notes that come from other machines, by git and by Syncthing: what memd/docs/machines.md says."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memd_client import Client
from tests.daemon.fresh import PATIENT
from tests.daemon.process import Daemon

PRIVATE_CONFLICT = "MEMORY.sync-conflict-20261123-161318-BTMRC5A.md"
CONFLICT = "memory/2026-02-09.sync-conflict-20261123-161318-BTMRC5A.md"


@pytest.fixture
def here() -> Iterator[Path]:
    """A directory for two machines."""
    with TemporaryDirectory(prefix="memd") as directory:
        yield Path(directory)


def git(directory: Path, *words: str, check: bool = True) -> str:
    """Run git in a directory, with a configuration of its own."""
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ = {**os.environ, **identity, "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "pull.rebase=false", *words],
        cwd=directory, env=environ, capture_output=True, text=True, check=check,
    )  # fmt: skip
    return done.stdout + done.stderr


def commit(directory: Path, *pushed: str) -> None:
    """Commit all that is there, and push it."""
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "notes")
    git(directory, "push", "-q", *pushed)


def write(directory: Path, notes: dict[str, str]) -> None:
    """Write notes below a directory."""
    for path, text in notes.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def found(memd: Client, question: str) -> set[str]:
    """The paths of what is found, with all that was done before; hundreds of files may take longer than a search waits."""
    memd.sync(vectors=False)
    answer = memd.search(question, max_results=50, min_score=0, mode="keyword")
    assert not answer.stale
    return {hit.path for hit in answer.results}


def files(memd: Client) -> int:
    """How many files the index has."""
    return memd.status().agents["main"].files


@pytest.mark.long
def test_what_git_brings_and_takes_away_is_followed_at_once(here: Path) -> None:
    """A pull of 300 notes, a conflict with its marks, another branch whose directory is a file, and back; never .git."""
    git(here, "init", "-q", "--bare", "origin.git")
    away, home = here / "away", here / "home" / "workspace"
    git(here, "clone", "-q", "origin.git", "away")
    write(
        away,
        {"MEMORY.md": "The kettle is from Oslo.\n", "memory/2026-02-09.md": "The heron nests at home.\n"},
    )
    commit(away, "origin", "HEAD:main")
    (here / "home").mkdir()
    git(here, "clone", "-q", "-b", "main", "origin.git", str(home))
    daemon = Daemon(here / "home", settings=PATIENT)
    with daemon.start(), daemon.client() as memd:
        assert found(memd, "heron") == {"memory/2026-02-09.md"}
        write(
            away,
            {
                f"memory/burst/{number}.md": f"Number {number} is a pelican{number}.\n"
                for number in range(300)
            },
        )
        commit(away, "origin", "HEAD:main")
        git(home, "pull", "-q")
        missed = [
            number
            for number in range(300)
            if found(memd, f"pelican{number}") != {f"memory/burst/{number}.md"}
        ]
        assert missed == []

        write(away, {"memory/2026-02-09.md": "The heron nests in Bergen.\n"})
        commit(away, "origin", "HEAD:main")
        write(home, {"memory/2026-02-09.md": "The heron nests in Narvik.\n"})
        git(home, "commit", "-qam", "here")
        assert "CONFLICT" in git(home, "pull", check=False)
        assert found(memd, "Bergen") == found(memd, "Narvik") == {"memory/2026-02-09.md"}
        git(home, "checkout", "--theirs", "memory/2026-02-09.md")
        assert (found(memd, "Bergen"), found(memd, "Narvik")) == ({"memory/2026-02-09.md"}, set())
        git(home, "commit", "-qam", "merged")

        git(home, "checkout", "-q", "--orphan", "other")
        git(home, "rm", "-rqf", ".")
        write(home, {"memory": "no directory\n", "MEMORY.md": "Another machine has other plans.\n"})
        git(home, "add", "-A")
        git(home, "commit", "-qm", "other")
        assert found(memd, "heron pelican7 plans") == {"MEMORY.md"}
        git(home, "checkout", "-q", "main")
        assert found(memd, "heron plans") == {"memory/2026-02-09.md"}
        assert found(memd, "pelican7") == {"memory/burst/7.md"}
        assert files(memd) == 302


def arrive(directory: Path, path: str, text: str) -> None:
    """A file comes as Syncthing writes it: under another name, then under its own."""
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".syncthing.{file.name}.tmp")
    temporary.write_text(text)
    os.utime(temporary, (1_770_000_000, 1_770_000_000))  # when it was written on the other machine
    temporary.rename(file)


@pytest.mark.long
def test_what_syncthing_brings_and_takes_away_is_followed_at_once(here: Path) -> None:
    """A burst of renamed files, a conflict beside its note, kept versions, and a directory that another takes the place of."""
    daemon = Daemon(here, settings=PATIENT)
    base = daemon.workspace
    with daemon.start(), daemon.client() as memd:
        for number in range(300):
            arrive(base, f"memory/{number}.md", f"Number {number} is a pelican{number}.\n")
            # As a version that is replaced is kept.
            arrive(base, f".stversions/memory/{number}~20261123-161318.md", f"An old pelican{number}.\n")
        missed = [
            number for number in range(300) if found(memd, f"pelican{number}") != {f"memory/{number}.md"}
        ]
        assert missed == []

        arrive(base, "memory/2026-02-09.md", "The heron nests in Bergen.\n")
        arrive(base, CONFLICT, "The heron nests in Narvik.\n")
        assert found(memd, "heron nests") == {"memory/2026-02-09.md", CONFLICT}
        both = memd.search("heron nests", since="2026-02-09", until="2026-02-09", mode="keyword").results
        assert {hit.path for hit in both} == {"memory/2026-02-09.md", CONFLICT}  # of the day of their note
        (base / CONFLICT).unlink()
        assert found(memd, "Narvik") == set()

        # Of the file beside memory/; whether it is hidden, tests/daemon/test_scope.py asks.
        for directory in ("", "memory/"):
            arrive(base, f"{directory}{PRIVATE_CONFLICT}", "The owner likes a stork.\n")
            assert found(memd, "stork") == {f"{directory}{PRIVATE_CONFLICT}"}
            (base / directory / PRIVATE_CONFLICT).unlink()
            assert found(memd, "stork") == set()

        (base / "memory").rename(base / "memory-before")
        arrive(base, "memory/new.md", "A new pelican7.\n")
        assert found(memd, "pelican7") == {"memory/new.md"}
        shutil.rmtree(base / "memory")
        (base / "memory-before").rename(base / "memory")
        assert found(memd, "pelican7") == {"memory/7.md"}
        assert files(memd) == 301
