"""What is known to stand in files, what a daemon has said of it, and whether another answer agrees with that."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """Where a word stands, or stood."""

    agent: str
    path: str  # as a hit has it


class Standing(msgspec.Struct, frozen=True):
    """How it is with a word at a moment."""

    word: str
    place: Place
    stands: bool  # it is in its file; else it was, and is gone
    since: int  # which change of all it was
    is_known: bool  # a daemon has said so, of the very file that is there
    waits: bool  # the file is read when it is due: until then, no answer is stale because of it


class Ledger:
    """The words of all files that are written, and of those that were."""

    def __init__(self) -> None:
        self._words: dict[str, Standing] = {}
        self._changes = 0

    def stands(self, word: str, place: Place, *, waits: bool = False) -> None:
        """A file that holds the word was written just now."""
        self._put(word, place, stands=True, waits=waits)

    def goes(self, word: str) -> None:
        """The word is in no file any more, as of now; one that never was is none of anybody's business."""
        if held := self._words.get(word):
            self._put(word, held.place, stands=False, waits=held.waits)

    def touch(self, word: str) -> None:
        """What was said of the word counts no more: its file was not there for a moment, or was another one."""
        if held := self._words.get(word):
            self._changes += 1
            self._words[word] = msgspec.structs.replace(held, since=self._changes, is_known=False)

    def _put(self, word: str, place: Place, *, stands: bool, waits: bool) -> None:
        held = self._words.get(word)
        if held is not None and (held.place, held.stands) == (place, stands):
            return
        self._changes += 1
        self._words[word] = Standing(word, place, stands, self._changes, False, waits)

    def now(self) -> list[Standing]:
        """How it is with all words, those that changed last at the end."""
        return sorted(self._words.values(), key=lambda standing: standing.since)

    def confirm(self, earlier: Standing) -> None:
        """A daemon has said so. It counts if that is how it still is."""
        if self.is_as(earlier):
            self._words[earlier.word] = msgspec.structs.replace(earlier, is_known=True)

    def judge(self, earlier: Standing, *, shown: bool, stale: bool) -> str | None:
        """What is wrong with an answer; None where it is right, or cannot be told.

        Args:
            earlier: How it was when the question was put. What changed since may be in the answer, or not.
            shown: The word is in a hit of its place.
            stale: The answer says that it may be behind.
        """
        if not self.is_as(earlier):
            return None
        if shown is not earlier.stands and (earlier.is_known or (not stale and not earlier.waits)):
            told = ", although a daemon had said otherwise" if earlier.is_known else ""
            fault = "is found, and is in no file" if shown else "stands there, and is not found"
            return f"{earlier.word} of {earlier.place.agent} {earlier.place.path} {fault}{told}"
        if shown is earlier.stands and (shown or (not stale and not earlier.waits)):
            self.confirm(earlier)
        return None

    def is_as(self, earlier: Standing) -> bool:
        """Whether nothing has changed about a word since."""
        return self._words[earlier.word].since == earlier.since
