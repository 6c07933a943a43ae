"""What was found to be wrong with the file of an index, from the first report until a new index is in its place."""

import structlog

from memd.runtime.change_notifier import ChangeNotifier

log = structlog.get_logger()


class IndexDamage:
    """Anybody who meets damage reports it here; the task that builds indexes anew waits for reports."""

    def __init__(self, agent: str) -> None:
        """Nothing is wrong at first.

        Args:
            agent: Its id, for the log.
        """
        self.reason: str | None = None  # why the file is set aside when another one is there
        self.keyword: str | None = None  # what is wrong with the keyword index
        self.reported = ChangeNotifier()
        self._agent = agent

    def report(self, reason: str) -> None:
        """Something in the file is not what memd wrote there."""
        if self.reason is None:
            log.error("sync.index_damaged", agent=self._agent, reason=reason)
            self.reason = reason
        self.reported.notify()

    def report_keyword(self, reason: str) -> None:
        """A search has found the keyword index broken."""
        if self.keyword is None:
            self.keyword = reason
            self.reason = self.reason or reason
        self.reported.notify()

    def mended(self) -> bool:
        """A new index is in place; returns whether the one before was damaged."""
        was_damaged = self.reason is not None
        self.reason = self.keyword = None
        return was_damaged
