"""How much load there is to be, and what the clients meet of it."""

from collections import Counter
from typing import Literal

import msgspec

from tests.benchmarks.figures import Samples
from tests.benchmarks.load.vitals import Vitals

Work = Literal["search", "get", "edit"]


class Plan(msgspec.Struct, frozen=True):
    """What is asked of the daemon."""

    clients: int = 500
    seconds: float = 60.0
    chunks: int = 20_000
    rate: float = 30.0  # requests a second, of all clients together, while they come at random
    seed: int = 1


class Seen(msgspec.Struct):
    """What the clients met."""

    took: dict[str, dict[Work, Samples]] = {}  # by the name of the phase
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    unseen: list[str] = []  # words that were written, not found at once, and not called stale either
    stale: int = 0
    written: dict[str, str] = {}  # note -> the word that it holds
    overwritten: set[str] = set()  # words that no note holds any more
    spoken: list[str] = []  # words that were said in transcripts
    beside: Counter[str] = msgspec.field(default_factory=Counter)  # what else was asked, by its kind
    vitals: list[Vitals] = []  # of the daemon, at even intervals
    settled_s: float = 0.0  # since the load began: the moment from which memory has no reason to grow
