"""What each of the clients asks, one request at a time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from random import Random

from memd_client import AsyncClient, Hit, MemdClientError
from tests.benchmarks import notes
from tests.benchmarks.figures import Samples
from tests.benchmarks.load.plan import Seen, Work
from tests.daemon.process import Daemon

SHARES: Mapping[Work, float] = {"search": 0.75, "get": 0.15, "edit": 0.10}
NOTES = 16  # that are written, again and again: an agent that searches at once finds what it wrote in the newest few


class Requests:
    """Searches, reads and edits."""

    def __init__(self, daemon: Daemon, seen: Seen, rng: Random) -> None:
        """No request has been sent."""
        self._directory = daemon.workspace
        self._paths = sorted(
            path.relative_to(daemon.workspace).as_posix() for path in daemon.workspace.rglob("*.md")
        )
        self._seen = seen
        self._rng = rng
        self._numbers = count()

    async def one(self, client: AsyncClient, phase: str) -> None:
        """One request; how long it took, or why it failed, is noted."""
        [work] = self._rng.choices(list(SHARES), list(SHARES.values()))
        do: Callable[[AsyncClient], Awaitable[None]] = {
            "search": self._search,
            "get": self._get,
            "edit": self._edit,
        }[work]
        samples = self._seen.took.setdefault(phase, {each: Samples() for each in SHARES})[work]
        try:
            with samples.timed():
                await do(client)
        except MemdClientError as error:
            self._seen.errors[f"{work}: {type(error).__name__}: {error}"] += 1

    async def _search(self, client: AsyncClient) -> None:
        found = await client.search(self._rng.choice(notes.QUESTIONS).text)
        self._note(bool(found.results), "a question found nothing")
        self._seen.stale += found.stale

    async def _get(self, client: AsyncClient) -> None:
        note = await client.get(self._rng.choice(self._paths), lines=20)
        self._note(not note.missing, "a note that is there was called missing")

    async def _edit(self, client: AsyncClient) -> None:
        """Write a note anew and look for it, as an agent that has just written down what it learnt."""
        number = next(self._numbers)
        name, word = f"edited-{number % NOTES:02}.md", f"landmark{number:06}x"
        before = self._seen.written.get(name)
        text = f"# Edited\n\nThe word of note {number % NOTES} is {word}.\n"
        (self._directory / "memory" / name).write_text(text, encoding="utf-8")
        self._seen.written[name] = word
        if before is not None:
            self._seen.overwritten.add(before)
        # Others may share a bucket of the hashing embedder with it: the hits are more than a person would read.
        found = await client.search(word, max_results=50, min_score=0, max_chars=0)
        self._seen.stale += found.stale
        # Another client may have written the same note since.
        if not found.stale and self._seen.written[name] == word and not finds(found.results, word):
            self._seen.unseen.append(word)

    def _note(self, good: bool, trouble: str) -> None:
        if not good:
            self._seen.errors[trouble] += 1


def finds(results: Sequence[Hit], word: str) -> bool:
    """Whether a word is shown."""
    return any(word in hit.snippet for hit in results)
