import copy
import pickle
from collections.abc import Callable

import pytest

from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)

ERRORS = [
    DaemonNotRunning("/run/memd.sock"),
    DaemonNotRunning("/run/memd.sock", "this process may not connect to it", "Ask the owner."),
    ConnectionLost("The connection broke."),
    ConnectionLost("The connection broke.", "Try again."),
    TimedOut(2.5),
    ProtocolMismatch(1, 2),
    RequestFailed("busy", "A rebuild is running.", "Try again in a minute."),
    RequestFailed("internal", "Something broke."),
]


def test_not_running_tells_where_and_how() -> None:
    """The most frequent error names the socket that was tried and the two ways to start a daemon."""
    error = DaemonNotRunning("/run/user/1000/memd/memd.sock")
    assert "/run/user/1000/memd/memd.sock" in str(error)
    assert "`memd run`" in str(error)
    assert "`memd-ctl up`" in str(error)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_message_and_hint(error: MemdClientError) -> None:
    """A person reads the message, then the hint where there is one; a program reads them apart."""
    assert str(error) == (f"{error.message} {error.hint}" if error.hint else error.message)
    assert error.message.endswith(".")


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize(
    "again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_copies(error: MemdClientError, again: Callable[[MemdClientError], MemdClientError]) -> None:
    """An error that crosses a process boundary arrives with all it says."""
    other = again(error)
    assert type(other) is type(error)
    assert vars(other) == vars(error)
    assert str(other) == str(error)


@pytest.mark.parametrize(("theirs", "which"), [(2, "memd-client"), (0, "memd-daemon")])
def test_mismatch_names_the_older_side(theirs: int, which: str) -> None:
    """The hint is to upgrade whichever side is older."""
    error = ProtocolMismatch(1, theirs)
    assert (error.ours, error.theirs) == (1, theirs)
    assert error.hint
    assert which in error.hint
