"""What was written a moment ago is found, whichever note it is and however it got there."""

import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from memd_client import Client
from tests.daemon.namespaced import Namespaced
from tests.daemon.process import Daemon
from tests.wait import until

NOTES = 200  # far more than a look at the newest would cover
PATIENCE_S = 30.0
# A search that may wait this long is stale on a stalled machine only. By keywords alone, nothing that merely resembles the
# new text can take its place among the hits.
SETTINGS = 'provider = "none"\nsync = { wait_ms = 5000, interval_minutes = 600 }'


@pytest.fixture
def watched(daemon: Daemon) -> Daemon:
    """A daemon that has indexed some notes, and watches them."""
    daemon.configure(SETTINGS)
    for number in range(NOTES):
        daemon.write(f"memory/{number}.md", f"note {number}\n")
    daemon.start()
    with daemon.client() as client:
        client.sync(wait=True)
    return daemon


class Writer:
    """Writes notes in every way there is; each returns the word to look for, and whether it must be found."""

    def __init__(self, workspace: Path, client: Client) -> None:
        self._memory = workspace / "memory"
        self._client = client
        self._rng = Random(20)
        self._notes = sorted(self._memory.glob("*.md"))
        self._count = 0

    def act(self) -> tuple[str, str, bool]:
        """One change, chosen at random: its name, a word, whether that is there now."""
        ways = [self._rewrite] * 6 + [
            self._append,
            self._replace,
            self._create,
            self._rename,
            self._delete,
            self._move_directory,
            self._write_in_new_directory,
            self._write_in_directory_of_a_moment,
            self._let_another_process_write,
        ]
        self._count += 1
        word = f"word{self._count}q"
        way = self._rng.choice(ways)
        return way.__name__, word, way(word) is None

    def _pick(self) -> Path:
        return self._rng.choice(self._notes)

    def _new(self, place: str) -> Path:
        file = self._memory / place
        file.parent.mkdir(exist_ok=True)
        self._notes.append(file)
        return file

    def _rewrite(self, word: str) -> None:
        self._pick().write_text(f"now it says {word}\n")

    def _append(self, word: str) -> None:
        with self._pick().open("a") as note:
            note.write(f"and it says {word}\n")

    def _replace(self, word: str) -> None:
        note = self._pick()
        draft = note.with_suffix(".tmp")
        draft.write_text(f"in its place {word}\n")
        draft.replace(note)

    def _create(self, word: str) -> None:
        self._new(f"new{self._count}.md").write_text(f"made {word}\n")

    def _rename(self, word: str) -> None:
        note = self._pick()
        note.write_text(f"moved {word}\n")
        self._notes.remove(note)
        note.rename(self._new(f"moved{self._count}.md"))

    def _delete(self, word: str) -> bool:
        note = self._pick()
        note.write_text(f"gone soon {word}\n")
        self._client.search(word)
        self._notes.remove(note)
        note.unlink()
        return True

    def _move_directory(self, word: str) -> None:
        aside = self._memory.parent / "aside"
        aside.mkdir()
        (aside / "a.md").write_text(f"brought along {word}\n")
        aside.rename(self._memory / f"brought{self._count}")
        self._notes.append(self._memory / f"brought{self._count}" / "a.md")

    def _write_in_new_directory(self, word: str) -> None:
        self._new(f"d{self._count}/a.md").write_text(f"deep {word}\n")

    def _write_in_directory_of_a_moment(self, word: str) -> None:
        (self._memory / f"e{self._count}").mkdir()
        self._client.search(word)
        self._new(f"e{self._count}/a.md").write_text(f"deep {word}\n")

    def _let_another_process_write(self, word: str) -> None:
        command = f"echo 'elsewhere {word}' > {self._pick()}"
        subprocess.run(["sh", "-c", command], check=True)


def test_every_change_is_found_at_once(watched: Daemon) -> None:
    """The first search after a change finds it, or says that it is stale; and that is rare."""
    missed, stale = [], 0
    with watched.client() as client:
        writer = Writer(watched.workspace, client)
        for _ in range(300):
            how, word, is_there = writer.act()
            answer = client.search(word)
            stale += answer.stale
            if not answer.stale and is_there != any(word in hit.snippet for hit in answer.results):
                missed.append((how, word))
    assert missed == []
    assert stale <= 15


MISSING = {
    "extra path": ('extra_paths = ["{home}/not-yet"]', 0),
    "extra file": ('extra_paths = ["{home}/not-yet.md"]', 0),
    "openclaw": ('memory_presets = ["openclaw"]', 0),
    "claude-code": ('memory_presets = ["claude-code"]', 0),
    "codex": ('memory_presets = ["codex"]', 0),
    "gemini": ('memory_presets = ["gemini"]', 0),
    "no watches left": ("", 1),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_not_there_blinds_nobody_to_the_rest(home: Path, what: str) -> None:
    """Whichever of hundreds of notes is edited: where some root is missing, or no watch can be set at all."""
    settings, watches = MISSING[what]
    daemon = Namespaced(home, settings=f"{SETTINGS}\n{settings.format(home=home)}")
    for number in range(NOTES):
        daemon.write(f"memory/{number}.md", f"note {number}\n")
    rng = Random(3)
    with daemon.start(environ={"HOME": str(home)}), daemon.client() as client:
        if watches:
            daemon.limit("max_inotify_watches", watches)
            (daemon.workspace / "memory" / "new").mkdir()
            until(lambda: not client.status().agents["main"].watcher.ok, PATIENCE_S)
        client.sync()
        missed, stale = [], 0
        for number in range(60):
            daemon.write(f"memory/{rng.randrange(NOTES)}.md", f"edited word{number}q\n")
            answer = client.search(f"word{number}q")
            stale += answer.stale
            if not answer.stale and not any(f"word{number}q" in hit.snippet for hit in answer.results):
                missed.append(number)
        assert missed == []
        assert stale <= 3


def test_a_root_that_comes_is_found_at_once(home: Path) -> None:
    """The first search after an extra path was made finds what is in it, before anybody has begun to watch it."""
    daemon = Namespaced(home, settings=f'{SETTINGS}\nextra_paths = ["{home}/later", "{home}/later.md"]')
    daemon.write("memory/a.md", "note\n")
    with daemon.start(), daemon.client() as client:
        client.sync()
        (home / "later").mkdir()
        (home / "later" / "b.md").write_text("it says word1q\n")
        answer = client.search("word1q")
        assert not answer.stale
        assert any("word1q" in hit.snippet for hit in answer.results)
        (home / "later.md").write_text("it says word2q\n")
        assert any("word2q" in hit.snippet for hit in client.search("word2q").results)


def test_an_edit_among_many_other_events_is_found(watched: Daemon) -> None:
    """Files that are no notes may change without end: searches are answered, with what was just written."""
    flood = "while :; do for n in 1 2 3 4 5 6 7 8 9; do echo $n > file$n; done; done"
    with subprocess.Popen(["sh", "-c", flood], cwd=watched.workspace) as flooding, watched.client() as client:
        try:
            until((watched.workspace / "file9").exists)
            for number in range(40):
                watched.write(f"memory/{number}.md", f"edited word{number}q\n")
                answer = client.search(f"word{number}q")
                assert answer.stale or any(f"word{number}q" in hit.snippet for hit in answer.results)
        finally:
            flooding.kill()


def test_searches_right_after_a_workspace_came_back(watched: Daemon) -> None:
    """A workspace that is removed and made again is found in the end, and what is then written in it at once."""
    with watched.client() as client:
        shutil.rmtree(watched.workspace)
        watched.write("memory/again.md", "first word0q\n")
        until(lambda: any("word0q" in hit.snippet for hit in client.search("word0q").results), PATIENCE_S)
        until(lambda: client.status().agents["main"].watcher.reason is None, PATIENCE_S)
        for number in range(1, 20):
            watched.write("memory/again.md", f"later word{number}q\n")
            answer = client.search(f"word{number}q")
            assert answer.stale or any(f"word{number}q" in hit.snippet for hit in answer.results)
