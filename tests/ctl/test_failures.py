"""Every error has its exit status."""

from pathlib import Path

import pytest

from memd.config.load import ConfigError
from memd.ctl.atomic_write import NotWritten
from memd.ctl.failures import Failed, UsageError, failure_for
from memd.errors import FatalError, MemdError
from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)
from tests.client.scripted_server import serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (DaemonNotRunning("/s"), "daemon_not_running", 69),
        (TimedOut(10), "timed_out", 75),
        (ConnectionLost("broke"), "connection_lost", 1),
        (ProtocolMismatch(1, 2), "protocol_mismatch", 1),
        (RequestFailed("bad_request", "no"), "bad_request", 2),
        (RequestFailed("unknown_agent", "who?"), "unknown_agent", 2),
        (RequestFailed("too_large", "no"), "too_large", 2),
        (RequestFailed("busy", "later"), "busy", 75),
        (RequestFailed("timed_out", "later"), "timed_out", 75),
        (RequestFailed("unavailable", "later"), "unavailable", 75),
        (RequestFailed("internal", "bug"), "internal", 1),
        (RequestFailed("of_the_future", "?"), "of_the_future", 1),
        (MemdClientError("?"), "failed", 1),
        (ConfigError("line 3"), "bad_config", 78),
        (FatalError("disk", exit_code=70), "failed", 70),
        (NotWritten("full"), "failed", 1),
        (UsageError("what?"), "usage", 2),
    ],
)
def test_an_error_means_an_exit_status(error: MemdError | MemdClientError, kind: str, code: int) -> None:
    """Programs go by the kind, shells by the status."""
    failed = failure_for(error)
    assert (failed.kind, failed.exit_code) == (kind, code)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (ProtocolMismatch(2, 1), "memd-ctl service restart"),
        (ProtocolMismatch(1, 2), "upgrade this one"),
        (RequestFailed("unsupported", "unknown type of message"), "older than this memd-ctl. Restart it"),
    ],
)
def test_another_version_is_told_by_the_side_that_is_behind(error: MemdClientError, hint: str) -> None:
    """A daemon that was upgraded underneath runs its old code until it is started again."""
    assert hint in (failure_for(error).hint or "")


@pytest.mark.parametrize(
    "words", [("search", "\udcca\udcfd"), ("search", "x", "--tag", "\udcca"), ("get", "\udcca.md")]
)
def test_what_is_typed_in_another_encoding_is_told(run: Run, address: Path, words: tuple[str, ...]) -> None:
    """As by a terminal that writes GBK; nothing is sent."""
    with serving(address, answering()):
        code, _, err = run(*words)
    assert code == 2
    assert "What is typed must be UTF-8" in err


def test_a_failure_explains_itself() -> None:
    """What a command raised on purpose is not wrapped again."""
    failed = Failed("not_found", "gone", "look elsewhere", exit_code=3)
    assert failure_for(failed) is failed


def test_the_hint_of_the_client_comes_through_apart_from_the_message() -> None:
    """A program may show one without the other."""
    failed = failure_for(DaemonNotRunning("/s"))
    assert failed.message.startswith("No memd daemon can be reached at /s")
    assert failed.hint is not None
    assert failed.hint not in failed.message


def test_a_lost_connection_says_where_to_look() -> None:
    """The client knows only that it ended; a hint of its own comes first."""
    assert "memd-ctl logs" in (failure_for(ConnectionLost("broke")).hint or "")
    assert failure_for(ConnectionLost("broke", "wait")).hint == "wait"
