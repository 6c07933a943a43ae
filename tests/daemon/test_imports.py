"""What a daemon loads."""

from pathlib import Path

import pytest

from tests.daemon.fresh import PATIENT
from tests.daemon.process import Daemon
from tests.wait import until


def test_what_a_start_seldom_needs_is_not_loaded(home: Path) -> None:
    """Rich, and the rules of redaction where nothing is redacted: together a third of what a start would cost."""
    daemon = Daemon(
        home,
        entry="tests.daemon.imported",
        settings=f'provider = "none"\nsources = ["memory", "sessions"]\n{PATIENT}',
    )
    daemon.write("MEMORY.md", "We chose PostgreSQL for the billing service.\n")
    with daemon.start(environ={"HOME": str(home)}), daemon.client() as client:
        assert client.search("billing").results
        assert daemon.stop() == 0
    assert daemon.printed().splitlines()[-1] == "loaded: "


@pytest.mark.long
def test_without_a_remote_provider_nothing_that_speaks_http_is_loaded(home: Path) -> None:
    """With the bundled model, notes indexed and a question answered: the code that could send them is not even there."""
    daemon = Daemon(home, entry="tests.daemon.imported")
    daemon.write("MEMORY.md", "We chose PostgreSQL for the billing service.\n")
    with daemon.start(environ={"HOME": str(home)}), daemon.client() as client:
        assert client.sync().vectors == "complete"
        until(lambda: client.search("which database?").mode == "hybrid", 20)
        assert daemon.stop() == 0
    assert daemon.printed().splitlines()[-1] == "loaded: onnxruntime"
