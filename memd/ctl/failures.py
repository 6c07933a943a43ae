"""The failures of memd-ctl, and their exit statuses."""

from memd.errors import FatalError, MemdError
from memd_client.codec import Unencodable
from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)

ERROR = 1
USAGE = 2
NOT_FOUND = 3
SECRETS_FOUND = 4  # by a scan that has done its work
NOT_RUNNING = 69  # sysexits: EX_UNAVAILABLE
BUSY = 75  # EX_TEMPFAIL
BAD_CONFIG = 78  # EX_CONFIG
INTERRUPTED = 130  # as shells have it: 128 + SIGINT

# The exit statuses of the daemon's own error codes.
_REQUESTS = {
    "bad_request": USAGE,
    "too_large": USAGE,
    "unknown_agent": USAGE,
    "busy": BUSY,
    "timed_out": BUSY,
    "unavailable": BUSY,
}
# For errors without a hint of their own: the client does not know how the daemon was started.
_RESTART = "`memd-ctl service restart`, or `memd-ctl down` and `memd-ctl up`"
_HINTS = {
    "connection_lost": "`memd-ctl status` tells whether memd still runs, `memd-ctl logs -n 20` what happened to it.",
    "unsupported": f"The daemon is older than this memd-ctl. Restart it: {_RESTART}.",
}
_NOT_UTF8 = "What is typed must be UTF-8. `locale` tells what memd-ctl reads; a terminal may be set to another encoding, such as GBK."


class Failed(MemdError):
    """A command could not do what it was asked.

    Args:
        kind: What kind of trouble it is, for programs.
        message: What is wrong, in a sentence or two.
        hint: How to mend it; None where the message says so, or nobody can tell.
        exit_code: The exit status of the program.
    """

    def __init__(self, kind: str, message: str, hint: str | None = None, *, exit_code: int = ERROR) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


class UsageError(Failed):
    """The command line is invalid."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__("usage", message, hint, exit_code=USAGE)


def failure_for(error: MemdError | MemdClientError) -> Failed:
    """Convert an error to the failure that a command reports."""
    match error:
        case Failed():
            return error
        case ProtocolMismatch(ours=ours, theirs=theirs):
            hint = (
                f"The daemon runs an older memd. Restart it: {_RESTART}."
                if theirs < ours
                else "Use the memd-ctl of the installation that the daemon runs from, or upgrade this one."
            )
            return Failed("protocol_mismatch", error.message, hint)
        case MemdClientError():
            kind, exit_code = _from_client(error)
            usual = _NOT_UTF8 if isinstance(error.__cause__, Unencodable) else _HINTS.get(kind)
            return Failed(kind, error.message, error.hint or usual, exit_code=exit_code)
        case FatalError(exit_code=78):
            return Failed("bad_config", str(error), exit_code=BAD_CONFIG)
        case FatalError():
            return Failed("failed", str(error), exit_code=error.exit_code)
        case _:
            return Failed("failed", str(error))


def _from_client(error: MemdClientError) -> tuple[str, int]:
    match error:
        case DaemonNotRunning():
            return "daemon_not_running", NOT_RUNNING
        case TimedOut():
            return "timed_out", BUSY
        case ConnectionLost():
            return "connection_lost", ERROR
        case RequestFailed():
            return error.code, _REQUESTS.get(error.code, ERROR)
        case _:
            return "failed", ERROR
