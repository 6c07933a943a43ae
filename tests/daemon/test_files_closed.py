"""Files and directories that the daemon's user may not read, and may again."""

import asyncio
import contextlib

# Python looks for these when they are needed, where the other user may not look.
import encodings.utf_8_sig  # noqa: F401
import importlib.readers  # noqa: F401
import sys
from pathlib import Path

from memd_client import AsyncClient
from tests.daemon.contents import contents, differences
from tests.daemon.fresh import QUICK
from tests.daemon.inprocess import running, write
from tests.otheruser import as_other_user, shared_directory


async def found(client: AsyncClient, word: str) -> list[str]:
    """The notes that hold a word."""
    hits = (await client.search(word, max_results=50, min_score=0)).results
    return sorted({hit.path for hit in hits if word in hit.snippet})


async def skipped(client: AsyncClient) -> dict[str, int]:
    """What is not indexed, and why."""
    await client.sync()
    return (await client.status()).agents["main"].skipped


async def _closes_and_opens(home: Path) -> dict[str, object]:
    told: dict[str, object] = {}
    memory = home / "workspace" / "memory"
    for name in ("open", "shut", "later", "dir/a", "dir/deep/b", "passage/c", "new/d"):
        write(home, f"memory/{name}.md", f"# {name}\n\nquokka of {name.replace('/', ' ')}\n")
    closed = [memory / "shut.md", memory / "new"]
    for path in closed:
        path.chmod(0)
    async with running(home, settings=QUICK) as client:
        told["at first"] = await skipped(client), await found(client, "quokka")
        # What was indexed stays findable while it is closed, as it was; what changed cannot be read.
        (memory / "dir").chmod(0)
        (memory / "passage").chmod(0o111)
        (memory / "later.md").write_text("# later\n\nwombat in the meantime\n")
        (memory / "later.md").chmod(0)
        told["closed"] = await skipped(client), await found(client, "quokka")
        told["stale while closed"] = (await client.search("quokka")).stale
        write(home, "memory/other.md", "# other\n\nnumbat beside them\n")
        told["beside"] = await found(client, "numbat")
        for path in (*closed, memory / "later.md", memory / "dir", memory / "passage"):
            path.chmod(0o755)

        # Nobody asks for a pass over everything from here on.
        async with asyncio.timeout(60):
            while len(await found(client, "quokka")) < 6 or not await found(client, "wombat"):
                pass
        told["stale when open"] = (await client.search("quokka")).stale
        told["opened"] = (await client.status()).agents["main"].skipped
        await client.sync()
    (home / "fresh").mkdir()
    (home / "fresh" / "workspace").symlink_to(home / "workspace")
    async with running(home / "fresh", settings=QUICK) as client:
        await client.sync()
    return told


def closes_and_opens(home: str) -> dict[str, object]:
    """What the other user sees."""
    with contextlib.redirect_stdout(sys.stderr):  # the log goes where the answer goes
        return asyncio.run(_closes_and_opens(Path(home)))


def test_closed_files_and_directories() -> None:
    """They are counted, what was indexed of them stays, which is said; others are indexed, and all is found once they are open."""
    with shared_directory() as home:
        told = as_other_user(__name__, closes_and_opens.__name__, str(home))
        index, fresh = (contents(at / "state" / "agents" / "main.sqlite") for at in (home, home / "fresh"))
    all_at_first = [f"memory/{name}.md" for name in ("dir/a", "dir/deep/b", "later", "open", "passage/c")]
    assert told["at first"] == [{"unreadable": 2}, all_at_first]
    assert told["closed"] == [{"unreadable": 5}, all_at_first]
    assert told["beside"] == ["memory/other.md"]
    assert told["opened"] == {}
    assert (told["stale while closed"], told["stale when open"]) == (True, False)
    assert differences(index, fresh) == []
