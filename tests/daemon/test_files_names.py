"""Files and directories change their names, and are found under the new ones alone."""

import os
import unicodedata
from pathlib import Path

from tests.daemon.fresh import QUICK, becomes_fresh, holding
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider

NFC = unicodedata.normalize("NFC", "Ångström-café")
NFD = unicodedata.normalize("NFD", NFC)


async def test_renames_cost_no_embedding(home: Path) -> None:
    """Old paths are gone, new ones found, and no text whose place did not change is embedded again."""
    provider = HashingProvider()
    for number in range(40):
        write(home, f"memory/old/deep/{number:02}.md", f"# Note {number}\n\nword{number} stands here\n")
    write(home, "memory/a.md", "# One\n\nquokka\n")
    memory = home / "workspace" / "memory"
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "complete"
        embedded = sum(map(len, provider.requests))
        assert embedded == 41
        (memory / "a.md").rename(memory / "b.md")
        (memory / "old").rename(memory / "new")
        report = await client.sync()
        assert (report.changed, report.removed, report.vectors) == (41, 41, "complete")
        assert [hit.path for hit in (await client.search("quokka")).results] == ["memory/b.md"]
        assert next(iter((await client.search("word7")).results)).path == "memory/new/deep/07.md"
        assert (await client.get("memory/old/deep/07.md")).missing
        assert (await client.status()).agents["main"].vectors.done == 41
        assert sum(map(len, provider.requests)) == embedded


def test_renames_are_seen(daemon: Daemon) -> None:
    """Renamed files and directories, swapped ones, and ones that change in case alone, end as a fresh index has them."""
    memory = daemon.workspace / "memory"
    for name in (
        "one/a",
        "one/deep/b",
        "two/a",
        "two/c",
        "plain",
        "Case",
        "swap-1",
        "swap-2",
        "hidden/.x/y",
        "out",
    ):
        daemon.write(f"memory/{name}.md", f"# {name}\n\ntext of {name.replace('/', ' ')}\n")
    daemon.write("elsewhere/in.md", "# In\n\ncame from elsewhere\n")
    daemon.configure(QUICK)
    with daemon.start(), daemon.client() as client:
        client.sync()
        (memory / "one").rename(memory / "aside")
        (memory / "two").rename(memory / "one")
        (memory / "aside").rename(memory / "two")
        (memory / "two" / "deep").rename(memory / "Deep")
        (memory / "plain.md").rename(memory / "renamed.md")
        (memory / "Case.md").rename(memory / "case.md")
        (memory / "swap-1.md").rename(memory / "swap")
        (memory / "swap-2.md").rename(memory / "swap-1.md")
        (memory / "swap").rename(memory / "swap-2.md")
        (memory / "hidden" / ".x").rename(memory / "hidden" / "x")
        (memory / "out.md").rename(memory / "out.txt")
        (daemon.workspace / "elsewhere").rename(memory / "here")
        fresh = becomes_fresh(daemon, client)
        assert holding(client, "plain") == {"memory/renamed.md"}
        assert client.get("memory/plain.md").missing
    assert set(fresh.contents) == {
        f"memory/{name}.md"
        for name in (
            "Deep/b", "case", "here/in", "hidden/x/y", "one/a", "one/c", "renamed", "swap-1", "swap-2", "two/a",
        )
    }  # fmt: skip
    assert fresh.contents["memory/swap-1.md"][0].text.endswith("text of swap-2")


def test_unicode_forms_of_a_name(daemon: Daemon) -> None:
    """A name is one in both of its forms: found as NFC, read from what the disk has, and counted where both are there."""
    memory = daemon.workspace / "memory"
    composed, decomposed = memory / f"{NFC}.md", memory / f"{NFD}.md"
    name = f"memory/{NFC}.md"
    daemon.configure(QUICK)
    daemon.write(f"memory/{NFD}/日記.md", "# D\n\nin a directory\n")
    with daemon.start(), daemon.client() as client:
        client.sync()
        decomposed.write_text("# One\n\nquokka\n")
        assert holding(client, "quokka") == {name}
        assert client.get(name).text == "# One\n\nquokka"
        assert set(becomes_fresh(daemon, client).contents) == {name, f"memory/{NFC}/日記.md"}

        composed.write_text("# Two\n\nwombat\n")
        fresh = becomes_fresh(daemon, client)
        assert fresh.skipped == {"same name in another Unicode form": 1}
        assert (holding(client, "wombat"), holding(client, "quokka")) == ({name}, set())

        composed.unlink()
        assert becomes_fresh(daemon, client).skipped == {}
        assert holding(client, "quokka") == {name}

        os.rename(decomposed, composed)  # noqa: PTH104 - from one spelling to the other
        (memory / NFD).rename(memory / NFC)
        assert set(becomes_fresh(daemon, client).contents) == {name, f"memory/{NFC}/日記.md"}


def test_names_of_one_file(daemon: Daemon) -> None:
    """A file with two names goes by the first of them, and by the other one when that is gone."""
    first, second = daemon.write("memory/a.md", "# A\n\nquokka\n"), daemon.workspace / "memory" / "b.md"
    daemon.configure(QUICK)
    with daemon.start(), daemon.client() as client:
        client.sync()
        second.hardlink_to(first)
        fresh = becomes_fresh(daemon, client)
        assert fresh.skipped == {"same file under another name": 1}
        first.unlink()
        fresh = becomes_fresh(daemon, client)
        assert (set(fresh.contents), fresh.skipped) == ({"memory/b.md"}, {})
        assert holding(client, "quokka") == {"memory/b.md"}


async def test_a_name_that_is_not_utf8(home: Path) -> None:
    """A search that is the first to meet such a name is answered; the file is counted as skipped."""
    write(home, "memory/a.md", "# A\n\nquokka\n")
    async with running(
        home, settings="sync = { watch_debounce_ms = 60000, watch_max_wait_ms = 60000 }"
    ) as client:
        await client.sync()
        write(home, os.fsdecode(b"memory/latin\xe9.md"), "# B\n\nquokka\n")
        found = await client.search("quokka")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        await client.sync()
        assert (await client.status()).agents["main"].skipped == {"name is not UTF-8": 1}
