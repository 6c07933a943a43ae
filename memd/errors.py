"""Errors, classified by what can be done about them.

    MemdError
    ├── TransientError   may go away by itself: the work is put back and tried again after a backoff
    ├── FatalError       ends the process with its exit code
    └── (others)         concern one item: it is counted, and everything else goes on

Each error class is defined beside the code that raises it; only the branches are here.
"""


class MemdError(Exception):
    """Any error that memd raises on purpose."""


class TransientError(MemdError):
    """The same work may succeed later.

    Attributes:
        needs_person: Whether it fails until somebody changes something, such as a setting or a right.
    """

    needs_person = False


class FatalError(MemdError):
    """The process cannot continue.

    Args:
        message: One or two clear sentences for a person: what failed, where, and how to repair it.
        exit_code: The exit status of the process (sysexits: 70 software, 75 busy, 78 configuration).
    """

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
