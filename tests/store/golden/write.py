"""Write the golden stores of this schema: python -m tests.store.golden.write."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import zstandard

from memd.store.migrations import newest
from tests.daemon.inprocess import running
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider
from tests.store.golden.read import DIRECTORY, FILES, REJECTED, TALKED, TRANSCRIPTS, WORKSPACE, part, settings


def main() -> None:
    """Index the workspace, without and with transcripts, with the hashing embedder, and keep what came of it."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch))
        shutil.copytree(WORKSPACE, daemon.workspace, dirs_exist_ok=True)
        with daemon, daemon.client() as client:
            assert client.sync().vectors == "complete"
        _keep(daemon.state, DIRECTORY)
    write_talked()


def write_talked() -> None:
    """Only the one with transcripts."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch)
        shutil.copytree(WORKSPACE, home / "workspace")
        shutil.copytree(TRANSCRIPTS, home / "transcripts")
        asyncio.run(_index(home))
        _keep(home / "state", TALKED)


async def _index(home: Path) -> None:
    """All of it; then a person lets embedding rest, which is to be remembered."""
    async with running(home, HashingProvider(rejects=[REJECTED]), settings=settings(home)) as client:
        assert (await client.sync()).vectors == "complete"
        await client.embed("pause")


def _keep(state: Path, collection: Path) -> None:
    kept = collection / f"schema-{newest('index')}-{newest('embeddings')}"
    kept.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (kept / part(name)).write_bytes(zstandard.compress((state / name).read_bytes(), 19))


if __name__ == "__main__":
    main()
