"""Something has moved: whoever waits for that looks again."""

import asyncio


class ChangeEvent:
    """Each progress and each trouble of some work."""

    def __init__(self) -> None:
        self.next = asyncio.Event()  # of the next move; there is another one for the one after it

    def tell(self) -> None:
        """Something has moved."""
        self.next.set()
        self.next = asyncio.Event()
