"""Finds the candidates of a question: by keywords and by vectors, in one snapshot of an index."""

from functools import cache

import msgspec
import numpy as np
import structlog

from memd.config.settings import AgentSettings
from memd.domain_types import ChunkId, DegradedPart
from memd.errors import TransientError
from memd.providers.provider import Calibration, Vector
from memd.runtime.profiling import timed_part
from memd.search import spelling
from memd.search.fuse_scores import Candidates, background
from memd.search.make_hits import IndexQuestion
from memd.search.protocols import ChunkReader
from memd.search.query import Query, with_synonyms
from memd.search.query_expansion import Expansion, expansion
from memd.search.synonyms_without_vectors import SynonymResults, synonyms_without_vectors
from memd.store import vector_matrix
from memd.store.disk_vectors import ListedVector
from memd.store.embedding_cache import Space
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.keywords import Match
from memd.store.vector_matrix import DEAD, Doubles, Ids, Rows
from memd.text.thesaurus import why_unreadable

log = structlog.get_logger()

CANDIDATES = 200  # per side and source
MAX_RESULTS = 50


def candidates_per_side(settings: AgentSettings) -> int:
    """Return how many candidates keywords and vectors propose for each source.

    The same for each search: if it grew with max_results, a larger max_results would reorder the hits.
    """
    return max(CANDIDATES, MAX_RESULTS * settings.query.hybrid.candidate_multiplier)


class KeywordResults(msgspec.Struct, frozen=True):
    """The candidates from keywords, or why there are none."""

    matches: dict[ChunkId, Match]  # best first
    damage: str | None = None  # why the keyword index is damaged
    failure: TransientError | None = None  # why it cannot be read now

    @property
    def reason(self) -> str | None:
        """Why there are no matches; None: there is no reason."""
        return self.damage if self.failure is None else str(self.failure)


class EmbeddedQuestion(msgspec.Struct, frozen=True):
    """A question embedded by one model."""

    vector: Vector
    calibration: Calibration  # of the model


class VectorResults(msgspec.Struct, frozen=True):
    """The candidates from the vectors of one space."""

    space: Space
    question: EmbeddedQuestion
    rows: Rows
    near: tuple[ChunkId, ...]  # nearest first
    # Chunk ids, ascending, and their cosines; the cosines of other chunks are computed from `rows`.
    cosines: tuple[Ids, Doubles]
    subtracted: float  # from every cosine, see fuse_scores.background


class NoVectorResults(msgspec.Struct, frozen=True):
    """Why vectors take no part; both None: the index has no text or no provider."""

    reason: DegradedPart | None = None
    damage: str | None = None  # why the vectors on disk are damaged


class HybridResults(msgspec.Struct, frozen=True):
    """The results of keywords, of vectors, and of synonyms."""

    asked: IndexQuestion  # with the spelling of names that the index has
    keywords: KeywordResults
    vectors: VectorResults | NoVectorResults
    expanded: Expansion | None = None  # the question with synonyms and translations; None: these take no part
    synonyms: SynonymResults | None = None  # None: none are looked for beyond the other candidates
    not_expanded: DegradedPart | None = None  # why the thesaurus takes no part; None: nothing is missing

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the model whose vectors took part."""
        return self.vectors.question.calibration if isinstance(self.vectors, VectorResults) else None

    @property
    def near(self) -> tuple[ChunkId, ...]:
        """The chunks nearest to the question, nearest first."""
        return self.vectors.near if isinstance(self.vectors, VectorResults) else ()

    @property
    def subtracted(self) -> float:
        """What is subtracted from every cosine."""
        return self.vectors.subtracted if isinstance(self.vectors, VectorResults) else 0.0


class ComparedVectors(msgspec.Struct, frozen=True):
    """An embedded question, and the vectors of the same space."""

    space: Space
    question: EmbeddedQuestion
    held: Rows | ListedVector


class ReplacedVectors(Exception):
    """The vectors on disk belong to another index by now."""


def search_both(
    reader: ChunkReader,
    asked: IndexQuestion,
    compared: ComparedVectors | NoVectorResults,
    settings: AgentSettings,
) -> HybridResults:
    """Search by keywords, by vectors and, among texts without a vector, by synonyms.

    Raises:
        ReplacedVectors: the vectors on disk were replaced.
    """
    most = candidates_per_side(settings)
    takes_words = isinstance(compared, NoVectorResults) or settings.query.hybrid.enabled
    expanded, not_expanded = _expansion(asked.query) if takes_words else (None, None)
    asked = _spelt(reader, asked, expanded)
    has_vectors = isinstance(compared, ComparedVectors) and len(compared.held) > 0
    keywords = keyword_results(reader, asked, most, is_alone=not has_vectors)
    vectors = (
        compared
        if isinstance(compared, NoVectorResults)
        else _vector_results(reader, asked, compared, keywords, most)
    )
    if isinstance(vectors, VectorResults) and not settings.query.hybrid.enabled:
        keywords = msgspec.structs.replace(keywords, matches={})
    if expanded is None:
        return HybridResults(asked, keywords, vectors, not_expanded=not_expanded)
    held = None
    if isinstance(vectors, VectorResults) and isinstance(compared, ComparedVectors):
        held = compared.held
    synonyms = synonyms_without_vectors(reader, asked, expanded, most, held)
    if synonyms is not None:
        asked = msgspec.structs.replace(asked, query=with_synonyms(asked.query, expanded.synonyms))
    takes_part = synonyms is not None or held is not None
    return HybridResults(asked, keywords, vectors, expanded if takes_part else None, synonyms)


def _expansion(asked: Query) -> tuple[Expansion | None, DegradedPart | None]:
    """Return the question with synonyms and translations, or why there are none.

    Both None: texts are not looked for by its words, or the thesaurus has none of them.
    """
    if asked.match is None or asked.asks_of_time_alone:
        return None, None
    try:
        with timed_part("synonyms"):
            return expansion(asked.text), None
    except OSError as failure:  # the thesaurus is read at the first search
        reason = why_unreadable(failure)
        _tell_once(reason)
        return None, DegradedPart("synonyms", reason)


@cache
def _tell_once(reason: str) -> None:
    log.warning("search.no_synonyms", reason=reason)


def _spelt(reader: ChunkReader, asked: IndexQuestion, expanded: Expansion | None) -> IndexQuestion:
    """Return the question with misspelt names corrected; unchanged if the keyword index cannot be read."""
    try:
        with timed_part("spelling"), reader.isolating_failures():
            if asked.query.match is not None:
                reader.keywords.prepare(asked.query.match, () if expanded is None else expanded.terms)
            spelt = spelling.spelt(asked.query, reader, asked.kinds)
    except (StoreDamaged, TransientError):
        return asked  # keyword_results reports it
    return asked if spelt is asked.query else msgspec.structs.replace(asked, query=spelt)


def keyword_results(
    reader: ChunkReader, asked: IndexQuestion, most: int, *, is_alone: bool = False
) -> KeywordResults:
    """Return the chunks that hold words of the question, at most `most` of each source, or why keywords take no part.

    Args:
        reader: The index.
        asked: The question.
        most: The most chunks of each source.
        is_alone: Whether there are no vectors: the words that name a time then do not count against a chunk of that time.
    """
    match = asked.query.match
    if match is None:
        return KeywordResults({})
    try:
        with timed_part("keywords"), reader.isolating_failures():
            matches = dict(reader.keywords.search(match, most, asked.kinds, asked.among))
            beside = asked.query.match_beside_times
            if is_alone and beside is not None:
                _, *of_times = asked.among
                for one, match_beside in reader.keywords.search(beside, most, asked.kinds, of_times):
                    if one in matches and match_beside.share > matches[one].share:
                        matches[one] = msgspec.structs.replace(matches[one], share=match_beside.share)
            return KeywordResults(matches)
    except StoreDamaged as damage:
        return KeywordResults({}, str(damage))
    except StoreClosed:
        raise  # the search is repeated with the index that replaced this one
    except TransientError as failure:
        return KeywordResults({}, failure=failure)


def _vector_results(
    reader: ChunkReader,
    asked: IndexQuestion,
    compared: ComparedVectors,
    keywords: KeywordResults,
    most: int,
) -> VectorResults | NoVectorResults:
    """Return the chunks nearest to the question, or why vectors take no part.

    Raises:
        ReplacedVectors: the vectors on disk were replaced.
    """
    try:
        with timed_part("vectors"), reader.isolating_failures():
            return _nearest(reader, asked, compared, keywords, most)
    except StoreDamaged as damage:
        return NoVectorResults(DegradedPart("vector", str(damage)), str(damage))
    except StoreClosed:
        raise
    except TransientError as failure:
        return NoVectorResults(DegradedPart("vector", str(failure)))


def _nearest(
    reader: ChunkReader,
    asked: IndexQuestion,
    compared: ComparedVectors,
    keywords: KeywordResults,
    most: int,
) -> VectorResults:
    question, held = compared.question, compared.held
    # The visible chunks, and those of any time named in the question.
    among, *of_times = reader.keywords.allowed(asked.among, asked.kinds)
    times = [ids for ids in of_times if ids is not None]
    sought = [among, vector_matrix.distinct(np.concatenate(times))] if times else [among]
    if isinstance(held, Rows):
        scanned = vector_matrix.scan(held, question.vector, most, asked.kinds, sought)
        rows, mean, cosines = held, scanned.mean_cosine(), scanned.nearest_cosines()
        near = scanned.nearest()
    else:
        # The vectors of the chunks that keywords found are included, so that all vectors are read once.
        found = reader.nearest(held, question.vector, most, asked.kinds, keywords.matches.keys(), sought)
        if found is None:
            raise ReplacedVectors
        rows, near, mean = found.rows, found.chunk_ids, found.mean_cosine
        cosines = np.empty(0, np.int64), np.empty(0)
    subtracted = background(*mean, question.calibration)
    return VectorResults(compared.space, question, rows, tuple(near), cosines, subtracted)


def joined_candidates(reader: ChunkReader, found: HybridResults) -> tuple[Candidates, bool]:
    """Return the visible candidates of keywords, vectors and synonyms, and whether all of them are still there."""
    matches, vectors, synonyms = found.keywords.matches, found.vectors, found.synonyms
    by_words = np.fromiter(matches, np.int64, len(matches))
    near = np.array(found.near, np.int64)
    by_synonyms = np.empty(0, np.int64) if synonyms is None else synonyms.proposed
    ids = vector_matrix.distinct(np.concatenate((by_words, near, by_synonyms)))
    r, share = np.full(len(ids), np.nan), np.zeros(len(ids))
    at = ids.searchsorted(by_words)
    r[at] = [match.r for match in matches.values()]
    share[at] = [match.share for match in matches.values()]
    cosine = np.full(len(ids), np.nan)
    if isinstance(vectors, VectorResults):
        known, cosines = vectors.cosines
        known_at, is_known = vector_matrix.places_among(known, ids)
        cosine[is_known] = cosines[known_at[is_known]]
        cosine[~is_known] = vector_matrix.cosines(vectors.rows, vectors.question.vector, ids[~is_known])
    facts = reader.facts(ids)
    within = np.zeros(len(ids))
    for time in found.asked.query.times:
        within = np.maximum(within, facts.within(*time.as_seconds))
    is_there = facts.kinds != DEAD
    # While one index replaces another, its chunks are there a moment before its vectors.
    is_of_now = 2 * np.count_nonzero(is_there[ids.searchsorted(near)]) >= len(near)
    is_whole = bool(is_there[at].all() and is_there[ids.searchsorted(by_synonyms)].all() and is_of_now)
    none = np.zeros(len(ids))
    expanded, alternatives = (none, none) if synonyms is None else synonyms.shares.of(ids)
    every = Candidates(
        ids,
        facts.kinds,
        facts.times,
        r,
        cosine,
        share,
        within,
        part=np.full(len(ids), np.nan),
        foreign=none,
        expanded=expanded,
        alternatives=alternatives,
    )
    is_visible = vector_matrix.lookup(found.asked.kinds)[facts.kinds]
    return every if is_visible.all() else every.some(is_visible.nonzero()[0]), is_whole
