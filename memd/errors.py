"""Errors by what can be done about them.

    MemdError
    ├── TransientError   goes away by itself: the work is put back and tried again after a backoff
    ├── FatalError       ends the process with its exit code
    └── (others)         trouble of one item: it is counted, everything else goes on

Each error lives beside the code that raises it; only the branches live here.
"""


class MemdError(Exception):
    """Anything memd raises on purpose."""


class TransientError(MemdError):
    """The same work may succeed later."""


class FatalError(MemdError):
    """The process cannot go on.

    Args:
        message: One clear sentence or two for a person: what, where, how to mend.
        exit_code: The exit status of the process (sysexits: 70 software, 75 busy, 78 configuration).
    """

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
