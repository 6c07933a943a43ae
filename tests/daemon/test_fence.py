"""Nothing that is not indexed can be read through the daemon, by any route."""

import os
import tempfile
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from memd_client.messages import Get, Note
from tests.daemon.process import Daemon
from tests.server.stranger import Stranger

SECRET = "The vault opens with the word porcupine."
CAFE = unicodedata.normalize("NFC", "memory/café.md")


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    """A daemon whose workspace is full of ways out of it."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        outside = home / "outside"
        (outside / "deep").mkdir(parents=True)
        for name in ("secret.md", "secret.txt", "deep/secret.md", "MEMORY.md"):
            (outside / name).write_text(SECRET)
        daemon = Daemon(
            home,
            settings=f'exclude = ["memory/private/", "*.draft.md"]\nextra_paths = ["{home}/extra", "{home}/one.md"]',
        )
        for path in (
            "AGENTS.md",
            "notes.md",
            "memory.txt",
            "memory/data.txt",
            "memory/.hidden.md",
            "memory/.git/x.md",
            "memory/private/diary.md",
            "memory/plan.draft.md",
            "memory/node_modules/x.md",
            "skills/memory/x.md",
        ):
            daemon.write(path, SECRET)
        daemon.write("MEMORY.md", "The cat is called Mochi.\n")
        daemon.write("memory/a.md", "A plain note about lighthouses.\n")
        daemon.write("memory/deep/b.md", "A deeper note about lighthouses.\n")
        daemon.write(CAFE, "A note about coffee.\n")
        memory = daemon.workspace / "memory"
        (memory / "link.md").symlink_to(outside / "secret.md")
        (memory / "linked").symlink_to(outside)
        (memory / "deep" / "linked").symlink_to(outside / "deep")
        (memory / "deep" / "relative.md").symlink_to("../../../outside/secret.md")
        (memory / "inner.md").symlink_to(memory / "a.md")
        os.mkfifo(memory / "pipe.md")
        (memory / "folder.md").mkdir()
        os.link(memory / "a.md", memory / "z-hard.md")
        (home / "extra").mkdir()
        (home / "extra" / "one.md").write_text("Quokkas live on Rottnest Island.\n")
        (home / "extra" / "one.txt").write_text(SECRET)
        (home / "extra" / "link.md").symlink_to(outside / "secret.md")
        (home / "one.md").write_text("Wombats dig.\n")
        (home / "two.md").write_text(SECRET)
        with daemon:
            with daemon.client() as client:
                client.sync()
            yield daemon


def get(served: Daemon, path: str) -> Note:
    """What comes of asking for a path."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask(Get(path=path))
        number, note = stranger.hear()
    assert number == 1
    assert isinstance(note, Note)
    return note


ROUTES = [
    "",
    ".",
    "..",
    "/",
    "memory",
    "memory/",
    "../outside/secret.md",
    "memory/../../outside/secret.md",
    "./../outside/secret.md",
    "././memory/../../outside/secret.md",
    "./memory/linked/secret.md",
    ".//etc/passwd",
    "memory/../MEMORY.md",
    "memory/deep/../a.md",
    "memory/./a.md",
    "memory//a.md",
    "//memory/a.md",
    "memory/a.md/",
    "memory/a.md/.",
    "memory/a.md ",
    " memory/a.md",
    "memory/a.md.",
    "memory/a.md\n",
    "memory/a.md\0",
    "memory/a.md\0.md",
    "memory/a\0/../../../outside/secret.md",
    "\0MEMORY.md",
    "memory\\a.md",
    "..\\outside\\secret.md",
    "memory/A.md",
    "MEMORY/a.md",
    "Memory/a.md",
    "memory.md",
    "Memory.md",
    "MEMORY.MD",
    "memory/a.MD",
    "memory/a.md:stream",
    "memory/a.md%00",
    "memory/%61.md",
    "memory%2Fa.md",
    quote("../outside/secret.md", safe=""),
    "%2e%2e/outside/secret.md",
    "memory/ａ.md",
    "memory/a．md",
    "memory/a\u200b.md",
    "memory\u2215a.md",
    unicodedata.normalize("NFD", CAFE),
    "memory/link.md",
    "memory/linked/secret.md",
    "memory/linked/deep/secret.md",
    "memory/linked/MEMORY.md",
    "memory/deep/linked/secret.md",
    "memory/deep/relative.md",
    "memory/inner.md",
    "memory/pipe.md",
    "memory/folder.md",
    "memory/z-hard.md",
    "memory/.hidden.md",
    "memory/.git/x.md",
    "memory/private/diary.md",
    "memory/plan.draft.md",
    "memory/node_modules/x.md",
    "memory/data.txt",
    "memory.txt",
    "AGENTS.md",
    "notes.md",
    "skills/memory/x.md",
    "sessions/main/x.jsonl",
    "memory/missing.md",
    "USER.md",
    "x" * 5000,
    "memory/" + "x" * 300 + ".md",
    "memory/" + "a/" * 3000 + "a.md",
    "*",
    "memory/*.md",
    "memory/[a].md",
    "~/workspace/MEMORY.md",
    "$HOME/x.md",
    "file:///etc/passwd",
    "/etc/passwd",
    "/proc/self/environ",
    "/dev/stdin",
]

BELOW_HOME = [
    "workspace/MEMORY.md",
    "workspace/memory/a.md",
    "workspace/AGENTS.md",
    "outside/secret.md",
    "two.md",
    "extra",
    "extra/",
    "extra/../two.md",
    "extra/../extra/one.md",
    "extra//one.md",
    "extra/./one.md",
    "extra/one.txt",
    "extra/link.md",
    "extra/ONE.md",
    "extra/missing.md",
    "one.md/",
    "./one.md",
    "state/memd.lock",
    "state/agents/main.sqlite",
    "config.toml",
]


@pytest.mark.parametrize("path", ROUTES, ids=lambda path: ascii(path[:40]))
def test_no_route_leads_out(served: Daemon, path: str) -> None:
    """Each looks exactly like a file that is not there: the reply says no more than the request did."""
    assert get(served, path) == Note(path=path, missing=True)


@pytest.mark.parametrize("below", BELOW_HOME)
def test_no_absolute_route_leads_out(served: Daemon, below: str) -> None:
    """Neither do absolute paths, be it of the workspace's own files, of the neighbours of extra paths, or of memd's."""
    path = f"{served.home.resolve()}/{below}"
    assert get(served, path) == Note(path=path, missing=True)


def test_what_is_indexed_is_read_as_search_gives_it(served: Daemon) -> None:
    """Every path of a hit is accepted as it came, those of extra paths and of other scripts among them."""
    home = served.home.resolve()
    with served.client() as client:
        for query, path in (
            ("cat Mochi", "MEMORY.md"),
            ("plain note lighthouses", "memory/a.md"),
            ("deeper note lighthouses", "memory/deep/b.md"),
            ("coffee", CAFE),
            ("quokkas", f"{home}/extra/one.md"),
            ("wombats", f"{home}/one.md"),
        ):
            hit = client.search(query).results[0]
            assert hit.path == path
            assert client.get(hit.path, start_line=hit.start_line).text == hit.snippet


def test_nothing_outside_is_found(served: Daemon) -> None:
    """What cannot be read cannot be searched either."""
    with served.client() as client:
        assert SECRET not in str(
            client.search("vault opens with the word porcupine", min_score=0.0, max_results=50)
        )
        assert client.search("porcupine").results == []


def test_a_hard_link_is_one_file(served: Daemon) -> None:
    """A file with two names is indexed under the first of them, and read under that name alone."""
    with served.client() as client:
        assert [hit.path for hit in client.search("plain note lighthouses").results][:1] == ["memory/a.md"]
        assert client.status().agents["main"].skipped["same file under another name"] == 1


def test_a_file_that_became_a_link_is_not_followed(served: Daemon) -> None:
    """A note that was indexed and then became a symlink, or came to lie behind one, is missing at once."""
    note = served.write("memory/turn/coat.md", "It was a note.\n")
    with served.client() as client:
        client.sync()
        assert client.get("memory/turn/coat.md").text == "It was a note."
        note.unlink()
        note.symlink_to(served.home / "outside" / "secret.md")
        assert client.get("memory/turn/coat.md") == Note(path="memory/turn/coat.md", missing=True)
        note.unlink()
        note.parent.rmdir()
        outside = served.home / "outside"
        (outside / "coat.md").write_text(SECRET)
        note.parent.symlink_to(outside)
        assert client.get("memory/turn/coat.md") == Note(path="memory/turn/coat.md", missing=True)
        note.parent.unlink()
        (outside / "coat.md").unlink()


def test_a_file_that_became_a_fifo_hangs_nobody(served: Daemon) -> None:
    """A note that turned into a FIFO without a writer is missing, at once."""
    note = served.write("memory/drip.md", "It was a note.\n")
    with served.client(timeout=60) as client:
        client.sync()
        note.unlink()
        os.mkfifo(note)
        assert client.get("memory/drip.md").missing
        client.sync(force=True)
        note.unlink()


@pytest.mark.long
def test_a_racing_swap_never_leaks(served: Daemon) -> None:
    """While a note, and the directory it lies in, turn into links to a secret and back, 2,000 reads show none of it."""
    notes = "The note itself."
    direct = served.write("memory/race.md", notes)
    within = served.write("memory/racing/x.md", notes)
    outside = served.home / "outside"
    (outside / "x.md").write_text(SECRET)
    with served.client() as client:
        client.sync()
    ended = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        memory = served.workspace / "memory"
        real, link = served.home / "real.md", served.home / "link.md"
        away = served.home / "away"
        while not ended.is_set():
            link.symlink_to(outside / "secret.md")
            direct.rename(real)
            link.rename(direct)
            (memory / "racing").rename(away)
            (memory / "racing").symlink_to(outside)
            real.rename(direct)
            (memory / "racing").unlink()
            away.rename(memory / "racing")
            swaps += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    texts: set[str] = set()
    try:
        with Stranger(served.socket) as stranger:
            stranger.greet()
            for _ in range(20):
                stranger.ask(*(Get(path=("memory/race.md", "memory/racing/x.md")[n % 2]) for n in range(100)))
                answers = stranger.hear_some(100).values()
                assert all(isinstance(answer, Note) for answer in answers)
                texts |= {answer.text for answer in answers if isinstance(answer, Note)}
    finally:
        ended.set()
        swapper.join()
        (outside / "x.md").unlink()
    assert texts == {notes, ""}
    assert swaps > 20
    assert within.read_text() == notes
    with served.client() as client:
        client.sync()
        assert client.search("porcupine").results == []
