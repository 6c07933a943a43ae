"""What was written a moment ago is found, whichever note it is and however it got there."""

import ctypes
import os
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
TIMEOUT_S = 30.0
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


def linkat(descriptor: int, to: Path) -> None:
    """Give an open file without a name a name."""
    source = f"/proc/self/fd/{descriptor}".encode()
    at_cwd, follow = -100, 0x400
    assert ctypes.CDLL(None).linkat(at_cwd, source, at_cwd, bytes(to), follow) == 0


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


def _says(client: Client, word: str) -> bool:
    """Whether a word is found, or the answer says that it is not up to date."""
    answer = client.search(word)
    return answer.stale or any(word in hit.snippet for hit in answer.results)


def _write_on(descriptor: int, text: str) -> None:
    os.write(descriptor, f"{text}\n".encode())


@pytest.mark.rows(1)
@pytest.mark.parametrize("nameless", [False, True], ids=["a draft", "no name"])
@pytest.mark.parametrize("looked", [False, True], ids=["unasked", "asked in between"])
def test_a_note_that_is_written_on_under_a_name_it_has_no_longer(
    watched: Daemon, nameless: bool, looked: bool
) -> None:
    """A program opens a draft, links it to its name, takes the first name away, and writes on for as long as it likes."""
    memory = watched.workspace / "memory"
    draft, final = memory / "draft.tmp", memory / "final.md"
    if nameless:
        descriptor = os.open(memory, os.O_WRONLY | os.O_TMPFILE)
    else:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT)
    with watched.client() as client:
        try:
            _write_on(descriptor, "word0q")
            if nameless:
                linkat(descriptor, final)
            else:
                os.link(draft, final)
                draft.unlink()
            if looked:
                assert _says(client, "word0q")
            for number in range(1, 6):
                _write_on(descriptor, f"word{number}q")
                assert _says(client, f"word{number}q")
        finally:
            os.close(descriptor)
        assert not client.search("word5q").stale


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("other", "running"),
    [
        ("outside.md", False),
        ("workspace/kept/other.md", False),
        ("workspace/memory/other.txt", False),
        ("workspace/memory/other.txt", True),
        ("workspace/memory/away/other.txt", True),
    ],
)
def test_a_note_that_is_written_under_another_name(watched: Daemon, other: str, running: bool) -> None:
    """By a hard link that is outside of what is watched, or that is no note by its name; also with its time set back."""
    note, link = watched.workspace / "memory" / "7.md", watched.home / other
    if not link.parent.exists():
        link.parent.mkdir()
        with watched.client() as client:
            armed = watched.printed().count("watch.armed")
            (link.parent / "note.md").write_text("another\n")
            until(lambda: watched.printed().count("watch.armed") > armed or not running, TIMEOUT_S)
            client.sync()
    if not running:
        watched.stop()
    os.link(note, link)
    if not running:
        watched.start()
    with watched.client() as client:
        if not running:
            client.sync()
        for number in range(5):
            with link.open("a") as file:
                file.write(f"word{number}q\n")
            assert _says(client, f"word{number}q")
        before = link.stat()
        link.write_text(link.read_text().replace("word4q", "word9q"))
        os.utime(link, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert _says(client, "word9q")
        assert not client.search("word9q").stale


def test_a_note_of_the_same_size_and_time_that_was_changed_while_nobody_watched(watched: Daemon) -> None:
    """Who sets the time of a file back cannot set back when that was done."""
    note = watched.workspace / "memory" / "7.md"
    before = note.stat()
    watched.stop()
    note.write_text("apes 7\n")
    os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
    watched.start()
    with watched.client() as client:
        client.sync()
        assert _says(client, "apes")
        assert not client.search("apes").stale


@pytest.mark.parametrize("changes", [100, pytest.param(600, marks=pytest.mark.long)])
def test_every_change_is_found_at_once(watched: Daemon, changes: int) -> None:
    """The first search after a change finds it, or says that it is stale; and that is rare."""
    missed, stale, ways = [], 0, set()
    with watched.client() as client:
        writer = Writer(watched.workspace, client)
        for _ in range(changes):
            how, word, is_there = writer.act()
            ways.add(how)
            answer = client.search(word)
            stale += answer.stale
            if not answer.stale and is_there != any(word in hit.snippet for hit in answer.results):
                missed.append((how, word))
    assert missed == []
    assert stale <= changes // 20
    assert len(ways) == 10


MISSING = {
    "extra path": ('extra_paths = ["{home}/not-yet"]', 0),
    "extra file": ('extra_paths = ["{home}/not-yet.md"]', 0),
    "openclaw": ('memory_presets = ["openclaw"]', 0),
    "claude-code": ('memory_presets = ["claude-code"]', 0),
    "codex": ('memory_presets = ["codex"]', 0),
    "gemini": ('memory_presets = ["gemini"]', 0),
    "no watches left": ("", 1),
}


@pytest.mark.rows(2)
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
            until(lambda: not client.status().agents["main"].watcher.ok, TIMEOUT_S)
        client.sync()
        missed, stale = [], 0
        for number in range(30):
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
        until(lambda: any("word0q" in hit.snippet for hit in client.search("word0q").results), TIMEOUT_S)
        until(lambda: client.status().agents["main"].watcher.reason is None, TIMEOUT_S)
        for number in range(1, 20):
            watched.write("memory/again.md", f"later word{number}q\n")
            answer = client.search(f"word{number}q")
            assert answer.stale or any(f"word{number}q" in hit.snippet for hit in answer.results)


def test_another_directory_in_the_place_of_a_root(watched: Daemon) -> None:
    """A search right after finds what is in it, and shows nothing of the old one, in which somebody has a file open."""
    with watched.client() as client:
        for number in range(8):
            other = watched.home / f"other{number}"
            other.mkdir()
            # Not under the name of one that goes: that is an event.
            (other / ("MEMORY.md", "USER.md")[number % 2]).write_text(f"replaced by word{number}q\n")
            with (watched.workspace / "list.txt").open("a"):
                shutil.rmtree(watched.workspace)
                other.rename(watched.workspace)
                answer = client.search(f"word{number}q")
                assert answer.stale or any(f"word{number}q" in hit.snippet for hit in answer.results)
                gone = client.search(f"word{number - 1}q")
                assert gone.stale or not any(f"word{number - 1}q" in hit.snippet for hit in gone.results)
