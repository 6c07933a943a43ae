"""What can go wrong with qmd, by what follows from it."""

from memd.errors import TransientError


class QmdFailed(TransientError):
    """qmd did not do what it was asked for; the message is for people and holds no memory."""


class QmdUnavailable(QmdFailed):
    """qmd cannot be used here just now: it is not found, does not start, or refuses to prepare its collections.

    Args:
        reason: What is wrong, and how to mend it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QmdTimedOut(QmdFailed):
    """It was killed because it did not end in time."""


class UnknownOption(QmdFailed):
    """This qmd does not know an option or a command that it was given."""


class CollectionMissing(QmdFailed):
    """This qmd does not know a collection that it was asked for."""


class AlreadyExists(QmdFailed):
    """A collection of that name, or of that directory and pattern, is there."""


class QmdBroken(QmdFailed):
    """Its database is not what it should be."""


class Locked(QmdFailed):
    """Its database is busy; the same may go well in a moment."""
