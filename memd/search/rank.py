"""From chunks in order to hits that are worth reading."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memd.embed.provider import Calibration
from memd.model import Hit, Window
from memd.search.fuse import Scored
from memd.search.query import Query
from memd.search.snippet import window
from memd.search.terms import held
from memd.store.chunks import StoredChunk

# The share of the question's words that a chunk holds to be supported by keywords.
SUPPORT = 0.5


class Cutoff(msgspec.Struct, frozen=True):
    """When a candidate is too far from the question to be shown."""

    min_score: float  # 0..1
    calibration: Calibration


class Verdict(msgspec.Struct, frozen=True):
    """What became of a candidate, and why."""

    scored: Scored
    chunk: StoredChunk
    calibrated: float | None  # its cosine as 0..1; None: it has none
    hit: Hit | None
    cut: str | None  # min_score | overlap | duplicate; None: it is a hit
    window: Window | None = None  # what it shows, or would have shown


def hits(
    found: Iterable[tuple[Scored, StoredChunk]], query: Query, cutoff: Cutoff, max_chars: int
) -> Iterator[Hit]:
    """The hits of a question, one at a time, so that asking for more only appends. See verdicts."""
    return (verdict.hit for verdict in verdicts(found, query, cutoff, max_chars) if verdict.hit is not None)


def verdicts(
    found: Iterable[tuple[Scored, StoredChunk]], query: Query, cutoff: Cutoff, max_chars: int
) -> Iterator[Verdict]:
    """Decide about candidates, one at a time, by what was shown before.

    Lines that an earlier hit shows are not shown again: a chunk that overlaps one gives its other lines, and none where
    it has no other. A text that stands in several places is shown once.

    Args:
        found: Candidates with their chunks, the best first; read only as far as verdicts are taken.
        query: What was asked.
        cutoff: What is left out.
        max_chars: The most characters of a hit.
    """
    shown: dict[tuple[str, int], list[str]] = {}
    told: set[str] = set()
    for scored, chunk in found:
        calibrated = None if scored.cosine is None else cutoff.calibration(scored.cosine)
        hit, cut, best = None, None, None
        if not (calibrated is None or calibrated >= cutoff.min_score or is_supported(scored, query)):
            cut = "min_score"
        elif (best := _fresh_window(chunk, shown, query, max_chars)) is None:
            cut = "overlap"
        elif (same := " ".join(best.text.split())) in told:
            cut = "duplicate"
        else:
            told.add(same)
            for number, line in enumerate(best.text.split("\n"), best.start_line):
                shown.setdefault((chunk.path, number), []).append(line)
            hit = Hit(chunk.path, best.start_line, best.end_line, scored.score, best.text, chunk.kind.source)
        yield Verdict(scored, chunk, calibrated, hit, cut, best)


def worth_reading(found: Sequence[Scored], query: Query, cutoff: Cutoff) -> list[Scored]:
    """The candidates without those that min_score cuts."""

    def is_near(cosine: float) -> bool:
        return cutoff.calibration(cosine) >= cutoff.min_score

    # A calibration is monotone: where it begins to be near is found in a few steps, not asked of each.
    cosines = sorted(one.cosine for one in found if one.cosine is not None)
    far = frozenset(cosines[: bisect_left(cosines, True, key=is_near)])
    return [one for one in found if one.cosine not in far or is_supported(one, query)]


def is_supported(scored: Scored, query: Query) -> bool:
    """Whether keywords speak for a chunk: it holds half of the question's words, or a name or quotation in it."""
    if scored.text_score <= 0:
        return False
    names = sum(term < len(query.phrases) for term in scored.held)
    return names > 0 or query.share(scored.held) >= SUPPORT


def _fresh_window(
    chunk: StoredChunk, shown: dict[tuple[str, int], list[str]], query: Query, max_chars: int
) -> Window | None:
    """What a chunk shows beside the lines that are shown already: the best run of its other lines."""
    runs: list[tuple[int, list[str]]] = []
    open_run = False
    for number, line in enumerate(chunk.text.split("\n"), chunk.start_line):
        # A long line is in several chunks in part: only the part that was shown counts.
        fresh = not any(line in earlier for earlier in shown.get((chunk.path, number), ()))
        if fresh and open_run:
            runs[-1][1].append(line)
        elif fresh:
            runs.append((number, [line]))
        open_run = fresh
    texts = [(number, text) for number, lines in runs if (text := "\n".join(lines)).strip()]
    if not texts:
        return None
    number, text = texts[0]
    if len(texts) > 1:
        number, text = max(texts, key=lambda run: (len(held([run[1]], query.words)), len(run[1]), -run[0]))
    return window(text, number, query.terms, max_chars)
