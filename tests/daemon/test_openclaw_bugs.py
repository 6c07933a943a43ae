"""Bugs of OpenClaw's own memory that no other test was about: tests/OPENCLAW.md names the tests of all of them."""

import hashlib
import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from memd_client import Client
from memd_client.messages import Found
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.daemon.trouble import comes_true, harm_store, many_notes
from tests.sources.transcripts.openclaw_store import OpenClawStore
from tests.wait import until

KEYWORDS = 'provider = "none"'


def paths(found: Found) -> list[str]:
    """Where the hits are, the first one first."""
    return [hit.path for hit in found.results]


def has_more(client: Client, files: int) -> bool:
    """Whether more files are indexed than so many, or all."""
    return client.status().agents["main"].files > min(files, 399)


def test_a_daemon_that_is_stopped_while_it_indexes_breaks_nothing_off(daemon: Daemon) -> None:
    """Row 10: closing waits for the pass, or ends it; nobody meets a closed database, and the rest is read at the next start."""
    many_notes(daemon.workspace, 400)
    for _ in range(3):
        with daemon.start(), daemon.client() as client:
            before = client.status().agents["main"].files
            until(partial(has_more, client, before), 20)
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(60) == 0
    log = daemon.log.read_text()
    assert "Traceback" not in log
    assert "not open" not in log
    with daemon.start(), daemon.client() as client:
        assert client.sync().files == 400


async def test_vectors_that_are_gone_are_missed_and_made_again(home: Path) -> None:
    """Row 16: where the vectors of an index are empty, the status does not say that all is done."""
    for number in range(5):
        write(home, f"memory/{number}.md", f"The harbour number {number} has a lighthouse.\n")
    async with running(home) as client:
        await client.sync()
        assert (await client.status()).agents["main"].vectors.done == 5
    harm_store(home / "state/agents/main.sqlite", "DELETE FROM vectors")
    async with running(home) as client:

        async def are_whole() -> bool:
            # The status first: vectors may come between the two.
            now = (await client.status()).agents["main"]
            found = await client.search("lighthouse of a harbour")
            is_whole = now.vectors.done == now.chunks == 5 and found.mode == "hybrid" and not found.degraded
            # Until then it is said.
            assert is_whole or now.vectors.waiting or not now.vector.ok or now.rebuild or found.degraded
            return is_whole

        await comes_true(are_whole)
        harm_store(home / "state/agents/main.sqlite", "SELECT 1 / (count(*) = 5) FROM vectors")


async def test_an_old_exact_fact_stands_before_what_is_new_and_vague(home: Path) -> None:
    """Row 25: age takes nothing off a score, be it the day of a note, or the time of a file that nobody had to change."""
    today = datetime.now(UTC).date()
    old = f"memory/{today - timedelta(days=900)}.md"
    write(home, old, "The serial number of the boiler is ZX-4471.\n")
    for age in range(6):
        write(home, f"memory/{today - timedelta(days=age)}.md", f"The boiler was on again, day {age}.\n")
    docs = home / "docs"
    docs.mkdir()
    (docs / "stove.md").write_text("The stove takes pellets of six millimetres.\n")
    ancient = (datetime.now(UTC) - timedelta(days=2000)).timestamp()
    os.utime(docs / "stove.md", (ancient, ancient))
    async with running(home, settings=f'{KEYWORDS}\nextra_paths = ["{docs}"]') as client:
        await client.sync()
        found = await client.search("serial number of the boiler ZX-4471", min_score=0.35)
        assert paths(found)[0] == old
        before = (await client.search("which pellets for the stove?", min_score=0.35)).results[0]
        assert before.path == str(docs / "stove.md")
        os.utime(docs / "stove.md")
        await client.sync()
        assert (await client.search("which pellets for the stove?")).results[0].score == before.score


@pytest.mark.rows(1)
@pytest.mark.parametrize("settings", [KEYWORDS, ""])
async def test_chinese_notes_that_say_different_things_are_all_shown(home: Path, settings: str) -> None:
    """Row 26: texts without a Latin word are not alike, nor copies of one another; those that are the same are."""
    said = [
        "数据库部署在苍鹭主机上",
        "数据库的备份在星期二夜里",
        "数据库的密码由阿达保管",
        "数据库升级到了十七版",
    ]
    for number, text in enumerate(said):
        write(home, f"memory/2026-02-0{number + 1}.md", f"{text}。\n")
    write(home, "memory/copy.md", f"{said[0]}。\n")
    async with running(home, settings=settings) as client:
        await client.sync()
        found = await client.search("数据库", min_score=0)
        assert {hit.snippet.strip("。\n") for hit in found.results} == {*said}
        assert sorted(len(hit.copies) for hit in found.results) == [0, 0, 0, 1]


def test_the_index_is_a_file_of_its_own_that_may_be_deleted(daemon: Daemon) -> None:
    """Row 30: neither notes nor OpenClaw's database of sessions are touched, and all comes back from them."""
    openclaw = daemon.home / ".openclaw"
    store = OpenClawStore(openclaw / "agents/main/agent/openclaw-agent.sqlite", now_ms=1_770_000_000_000)
    store.start("0000")
    store.say("0000", "the walrus is called Wanda")
    store.close()
    daemon.write("MEMORY.md", "The heron is called Hera.\n")
    daemon.configure(
        f'sources = ["memory", "sessions"]\n{KEYWORDS}\nsessions = {{ presets = ["openclaw"] }}\n'
    )

    def kept() -> dict[Path, str]:
        roots = (openclaw, daemon.workspace)
        files = (file for root in roots for file in root.rglob("*") if file.is_file())
        return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def hits(client: Client) -> list[list[str]]:
        client.sync()
        return [paths(client.search(name, min_score=0)) for name in ("Wanda", "Hera")]

    before, answers = kept(), []
    for _ in range(2):
        with daemon.start(environ={"OPENCLAW_STATE_DIR": str(openclaw)}), daemon.client() as client:
            answers.append(hits(client))
        shutil.rmtree(daemon.state)
        assert kept() == before
    assert answers == [[["sessions/openclaw/0000.jsonl"], ["MEMORY.md"]]] * 2
