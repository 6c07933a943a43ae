"""Write the golden store of this schema: python -m tests.store.golden.write."""

import shutil
import tempfile
from pathlib import Path

import zstandard

from memd.store.migrations import newest
from tests.daemon.process import Daemon
from tests.store.golden.read import DIRECTORY, FILES, WORKSPACE, part


def main() -> None:
    """Index the workspace with the hashing embedder, and keep what came of it."""
    kept = DIRECTORY / f"schema-{newest('index')}-{newest('embeddings')}"
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch))
        shutil.copytree(WORKSPACE, daemon.workspace, dirs_exist_ok=True)
        with daemon, daemon.client() as client:
            assert client.sync().vectors == "complete"
        for name in FILES:
            data = (daemon.state / name).read_bytes()
            (kept / part(name)).write_bytes(zstandard.compress(data, 19))


if __name__ == "__main__":
    main()
