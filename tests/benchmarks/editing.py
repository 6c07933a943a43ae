"""How long an edit takes until it is found."""

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import baseline
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.stage import Stage, index
from tests.wait import until

TIMES = 9
WATCHED_TIMES = 3
QUIET_S = 0.5  # so long after the last pass, no event of an earlier edit is still on its way
QUIET_LOOKS = 40  # one look may fall into a pass that has just taken what was waiting


def measure(stage: Stage) -> Iterator[Figure]:
    """A note is written anew: by an agent that searches at once, and with nobody asking.

    The baseline looks at every file, as it must, being told of no change, and searches once. Whether it finds the line is
    not asked: 0.3, the most that keywords give alone, is below what it cuts at.
    """
    note = stage.daemon.workspace / "memory" / "edited.md"
    searched, watched = Samples(), Samples()
    for word in _words("asked", TIMES):
        _edit(note, word)
        with searched.timed():
            until(lambda word=word: _finds(stage, word), 20)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    for word in _words("watched", WATCHED_TIMES):
        _wait_for_quiet(stage)
        at = time.time()
        _edit(note, word)
        with watched.timed():
            until(lambda at=at: _last_pass(stage, at) > at, 20)  # type: ignore[misc]  # likewise
        assert _finds(stage, word), "the pass that followed the edit did not take it in"
    other = Samples()
    for word in _words("baseline", 3):
        _edit(note, word)
        with other.timed():
            for file in baseline.changed(stage.connection, sorted(stage.daemon.workspace.rglob("*.md"))):
                index(stage.connection, file, stage.embedder)
            baseline.search(stage.connection, word, stage.embedder.embed([word])[0].tobytes())
    yield milliseconds("an edit is found, searching at once", searched, other)
    yield milliseconds("an edit is searchable, nobody asking", watched, note="with the debounce of 1.5 s")


def _words(kind: str, times: int) -> Iterator[str]:
    return (f"{kind}word{number}" for number in range(times))


def _edit(note: Path, word: str) -> None:
    note.write_text(f"The word of the moment is {word}.\n", encoding="utf-8")


def _finds(stage: Stage, word: str) -> bool:
    return any(word in hit.snippet for hit in stage.client.search(f"word of the moment {word}").results)


def _wait_for_quiet(stage: Stage) -> None:
    looks: deque[bool] = deque(maxlen=QUIET_LOOKS)

    def is_quiet() -> bool:
        now = time.time()
        looks.append(_last_pass(stage, otherwise=now) < now - QUIET_S)
        return len(looks) == QUIET_LOOKS and all(looks)

    until(is_quiet, 20)


def _last_pass(stage: Stage, otherwise: float) -> float:
    """When the last pass ended, if nothing waits for another; asking for the status hurries none."""
    agent = stage.client.status().agents["main"]
    return agent.last_pass.at if agent.last_pass is not None and not agent.dirty else otherwise
