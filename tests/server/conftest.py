from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def address() -> Iterator[Path]:
    """A path that is short enough for a socket, which that of tmp_path is not on every machine."""
    with TemporaryDirectory(prefix="memd") as directory:
        yield Path(directory) / "s"
