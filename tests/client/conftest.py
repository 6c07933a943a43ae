import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def address() -> Iterator[Path]:
    """A path that is short enough for a socket, which that of tmp_path is not on every machine."""
    with TemporaryDirectory(prefix="memd") as directory:
        yield Path(directory) / "s"


def finishing_within(seconds: float) -> list[str]:
    """A memd-mcp that waits so long for the calls that run when its client hangs up."""
    program = (
        "import sys\n"
        "from memd_client.mcp import __main__, server\n"
        f"server._FINISH_S = {seconds}\n"
        "sys.exit(__main__.main(sys.argv[1:]))"
    )
    return [sys.executable, "-P", "-c", program]
