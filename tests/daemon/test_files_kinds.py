"""What has the name of a note and is none, or changes from one kind of thing into another, stops nothing."""

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from tests.daemon.fresh import QUICK, becomes_fresh, holding
from tests.daemon.process import Daemon


def test_what_can_be_opened_only_at_a_price(daemon: Daemon) -> None:
    """A FIFO, a socket, a device and a symlink are counted and never opened, and a note in their place is indexed."""
    memory = daemon.workspace / "memory"
    daemon.write("memory/a.md", "# A\n\nquokka\n")
    fifo, listener, device = memory / "fifo.md", memory / "socket.md", memory / "device.md"
    os.mkfifo(fifo)
    (memory / "link.md").symlink_to(memory / "a.md")
    (memory / "loop.md").symlink_to("loop.md")
    (memory / "dangling.md").symlink_to("nowhere.md")
    if os.getuid() == 0:
        os.mknod(device, 0o20666, os.makedev(1, 5))  # /dev/zero, which has no end
    else:
        os.mkfifo(device)
    daemon.configure(QUICK)
    with socket.socket(socket.AF_UNIX) as bound, daemon.start(), daemon.client() as client:
        bound.bind(str(listener))
        assert client.sync().vectors == "complete"
        assert holding(client, "quokka") == {"memory/a.md"}
        assert becomes_fresh(daemon, client).skipped == {"not a regular file": 3, "symlink": 3}
        for path in ("fifo", "socket", "device", "link", "loop", "dangling"):
            assert client.get(f"memory/{path}.md").missing
        for place in (fifo, listener, device, memory / "link.md"):
            place.unlink()
            place.write_text(f"# {place.stem}\n\nwombat {place.stem}\n")
        fresh = becomes_fresh(daemon, client)
        assert fresh.skipped == {"symlink": 2}
        assert holding(client, "wombat") == {
            f"memory/{name}.md" for name in ("fifo", "socket", "device", "link")
        }


def test_one_kind_of_thing_becomes_another(daemon: Daemon) -> None:
    """A directory in the place of a note, and the reverse, leave nothing behind of what was there."""
    memory = daemon.workspace / "memory"
    note, directory = daemon.write("memory/a.md", "# A\n\nquokka\n"), memory / "b.md"
    daemon.write("memory/b.md/inside.md", "# B\n\nwombat\n")
    daemon.write("memory/c/deep/er.md", "# C\n\nnumbat\n")
    daemon.configure(QUICK)
    with daemon.start(), daemon.client() as client:
        client.sync()
        note.unlink()
        daemon.write("memory/a.md/inside.md", "# A\n\nquoll\n")
        shutil.rmtree(directory)
        daemon.write("memory/b.md", "# B\n\nbilby\n")
        shutil.rmtree(memory / "c")
        daemon.write("memory/c", "no note any more")
        fresh = becomes_fresh(daemon, client)
        assert set(fresh.contents) == {"memory/a.md/inside.md", "memory/b.md"}
        assert fresh.skipped == {}
        assert not any(holding(client, word) for word in ("quokka", "wombat", "numbat"))
        # memory/ itself, and back again.
        memory.rename(daemon.workspace / "aside")
        memory.write_text("no directory")
        os.replace(memory, daemon.workspace / "file")  # noqa: PTH105 - the name is that of a directory elsewhere
        (daemon.workspace / "aside").rename(memory)
        daemon.write("memory/new.md", "# New\n\ndunnart\n")
        assert set(becomes_fresh(daemon, client).contents) == {*fresh.contents, "memory/new.md"}


def churn(directory: Path, stop: threading.Event) -> None:
    """Create, replace, rename and delete, as fast as the disk does it."""
    turn = 0
    while not stop.is_set():
        turn += 1
        place = directory / f"{turn % 7}"
        place.mkdir(exist_ok=True)
        for number in range(5):
            (place / f"{number}.md").write_text(f"# {turn}\n\npasses by {number}\n")
        (place / "0.md").unlink()
        (place / "1.md").rename(place / "moved.md")
        (place / "tmp").write_text("replaced")
        (place / "tmp").rename(place / "2.md")
        shutil.rmtree(directory / f"{(turn + 3) % 7}", ignore_errors=True)


@pytest.mark.parametrize("rounds", [8, pytest.param(30, marks=pytest.mark.long)])
def test_files_that_vanish_meanwhile(daemon: Daemon, rounds: int) -> None:
    """While hundreds of files come and go, others are found at once, no pass fails, and the end is as on the disk."""
    daemon.configure(QUICK)
    stop = threading.Event()
    with daemon.start(), daemon.client() as client:
        client.sync()
        thread = threading.Thread(target=churn, args=(daemon.workspace / "memory" / "churn", stop))
        (daemon.workspace / "memory" / "churn").mkdir()
        thread.start()
        try:
            for number in range(rounds):
                daemon.write(f"memory/steady-{number}.md", f"# Steady\n\nsteady{number:02} stays here\n")
                client.sync(vectors=False)
                assert holding(client, f"steady{number:02}") == {f"memory/steady-{number}.md"}
                last = client.status().agents["main"].last_pass
                assert last is not None
                assert last.failed is None
        finally:
            stop.set()
            thread.join()
        fresh = becomes_fresh(daemon, client)
        assert fresh.skipped == {}
    assert '"level": "error"' not in daemon.printed()
    assert "Traceback" not in daemon.printed()
