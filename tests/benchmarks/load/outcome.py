"""How a daemon bore its load: what a person is told, and what is wrong."""

import msgspec

from tests.benchmarks.figures import Figure, milliseconds, table
from tests.benchmarks.load import vitals
from tests.benchmarks.load.plan import Seen
from tests.daemon import lag

STORE_SHARE = 2.0  # of a fresh index, after many edits and rebuilds
STORE_BYTES = 16_000_000
LOOP_MS = 1000  # of computing while nobody is answered; a few, on a machine that has nothing else to do


class Outcome(msgspec.Struct, frozen=True):
    """How it ended."""

    seen: Seen
    lost: list[str]  # words that were written or said, and are not found afterwards
    ghosts: list[str]  # words that were overwritten, and are found
    unlike: list[str]  # where the index differs from one that is made anew
    leaked: list[str]  # where something secret stands
    said: list[str]  # errors in what the daemon logged
    store: tuple[int, int]  # bytes of the index, and of one that is made anew
    printed: int  # bytes that the daemon logged
    lag: lag.Lag


def complaints(outcome: Outcome) -> list[str]:
    """What was not borne, a sentence each; none where all was."""
    seen = outcome.seen
    problems = [f"{number} requests failed: {error}" for error, number in seen.errors.most_common(5)]
    for words, what in (
        (seen.unseen, "written, not found at once, and not called stale"),
        (outcome.lost, "written and not found afterwards"),
        (outcome.ghosts, "overwritten and found afterwards"),
    ):
        if words:
            problems.append(f"{len(words)} words were {what}: {', '.join(words[:5])}")
    if outcome.unlike:
        problems.append(
            f"{len(outcome.unlike)} differences from a fresh index: {'; '.join(outcome.unlike[:5])}"
        )
    if outcome.leaked:
        problems.append(f"secrets stand in {', '.join(outcome.leaked)}")
    problems += [f"the daemon said: {line}" for line in outcome.said[:5]]
    grown, fresh = outcome.store
    if grown > STORE_SHARE * fresh + STORE_BYTES:
        problems.append(f"the index has {grown / 1e6:.0f} MB, a fresh one {fresh / 1e6:.0f} MB")
    if outcome.lag.longest_computing_ms > LOOP_MS:
        problems.append(
            f"the event loop was kept from its work by computing for {outcome.lag.longest_computing_ms:.0f} ms"
        )
    return problems + vitals.unbounded(seen.vitals, seen.settled_s)


def report(outcome: Outcome) -> str:
    """Everything that was seen, for a person."""
    seen = outcome.seen
    figures: list[Figure] = [
        milliseconds(
            f"{work}, {phase}", samples, note=f"{len(samples)} times, longest {1000 * max(samples):.0f} ms"
        )
        for phase, works in seen.took.items()
        for work, samples in works.items()
        if samples
    ]
    beside = ", ".join(f"{number} x {kind}" for kind, number in sorted(seen.beside.items()))
    grown, fresh = outcome.store
    return "\n".join(
        [
            table(figures),
            f"{len(seen.written) + len(seen.overwritten)} edits; {seen.stale} answers said that they were stale",
            f"beside them: {beside}",
            *vitals.described(seen.vitals, seen.settled_s),
            (
                f"the index at the end: {grown / 1e6:.0f} MB, made anew {fresh / 1e6:.0f} MB;"
                f" the daemon printed {outcome.printed / 1e6:.2f} MB"
            ),
            lag.told(outcome.lag),
        ]
    )
