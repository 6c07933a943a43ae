"""Clocks that a test sets."""


class Clock:
    """Seconds, monotonic; they pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Ticking(Clock):
    """Each look at it takes a second, so that whatever is measured takes its time."""

    def __call__(self) -> float:
        self.now += 1
        return self.now
