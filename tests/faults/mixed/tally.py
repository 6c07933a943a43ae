"""What happened to daemons under load, counted."""

import statistics

import msgspec


class Starts(msgspec.Struct):
    """How long daemons took until they answered."""

    after_kills_s: list[float] = []
    computed_s: list[float] = []  # of processor time


class Tally(msgspec.Struct):
    """What happened."""

    rounds: int = 0
    kills: int = 0  # of daemons
    in_transaction: int = 0  # of these
    stopped: int = 0  # daemons that were told to, and did
    workers: int = 0  # that were killed by themselves
    places: dict[str, int] = {}  # of kills
    answered: dict[str, int] = {}  # by the kind of the request
    cut: dict[str, int] = {}  # requests that found no daemon, or lost it, by the error
    judged: int = 0  # answers about a word that stood in a file, or was gone
    known: int = 0  # words that a daemon had said it has when it was killed for the last time
    changes: int = 0  # of files
    starts: Starts = msgspec.field(default_factory=Starts)


def summary(tally: Tally) -> str:
    """How far it is, in a line."""
    return (
        f"mixed: {tally.rounds} rounds, {tally.kills} daemons killed, {tally.in_transaction} of them in an open"
        f" transaction, {tally.stopped} stopped, {tally.workers} workers killed; {sum(tally.answered.values())} answers,"
        f" {tally.judged} of them judged, {sum(tally.cut.values())} cut off, {tally.changes} changes; no difference"
    )


def told(tally: Tally) -> list[str]:
    """Everything, for a person."""
    lines = [summary(tally)]
    lines += [f"    {kills:5} {place}" for place, kills in sorted(tally.places.items())]
    lines += [f"    {count:5} {kind}" for kind, count in sorted((tally.answered | tally.cut).items())]
    if tally.starts.after_kills_s:
        took, computed = sorted(tally.starts.after_kills_s), sorted(tally.starts.computed_s)
        lines.append(
            f"    {len(took)} starts: until the first answer {statistics.median(took):.2f} s, at most {took[-1]:.2f} s;"
            f" {statistics.median(computed):.2f} s of processor time, at most {computed[-1]:.2f} s"
        )
    return lines
