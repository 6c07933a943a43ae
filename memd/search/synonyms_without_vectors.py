"""Finds the texts that hold synonyms or translations of a question's words, where no vectors find them."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.errors import TransientError
from memd.runtime.profiling import timed_part
from memd.search.make_hits import IndexQuestion
from memd.search.protocols import ChunkReader
from memd.search.query_expansion import ExpandedShares, Expansion
from memd.store.disk_vectors import ListedVector
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.vector_matrix import Ids, Rows, distinct, places_among


class SynonymResults(msgspec.Struct, frozen=True):
    """The candidates that hold synonyms or translations and have no vector."""

    shares: ExpandedShares  # of all visible texts without a vector
    proposed: Ids  # ascending


def synonyms_without_vectors(
    reader: ChunkReader,
    asked: IndexQuestion,
    expanded: Expansion,
    most: int,
    held: Rows | ListedVector | None,
) -> SynonymResults | None:
    """Return the best `most` texts of each source and filter; None: none is looked for.

    None is looked for if all have vectors, for small talk, if nothing may be seen, and if the keyword index cannot be read.

    Args:
        reader: Reads the index; the keywords of the question were searched for before.
        asked: The question.
        expanded: The same with synonyms and translations.
        most: The most candidates of each source and filter.
        held: The vectors that the question was compared with; None: it was compared with none. Those on a server are not
            listed: all of its texts are taken to have one.
    """
    if asked.query.is_small_talk or not asked.kinds:
        return None
    try:
        with timed_part("synonyms"), reader.isolating_failures():
            if held is not None and not 0 < len(held) < reader.keywords.chunks:
                return None
            return _found(reader, asked, expanded, most, held)
    except StoreClosed:
        raise  # the search is repeated with the index that replaced this one
    except (StoreDamaged, TransientError):
        return None  # without keywords, as the search for them has reported


def _found(
    reader: ChunkReader,
    asked: IndexQuestion,
    expanded: Expansion,
    most: int,
    held: Rows | ListedVector | None,
) -> SynonymResults:
    finder = reader.keywords
    by_source = [
        finder.holders_of(expanded.terms, [kind for kind in asked.kinds if kind.source == source])
        for source in sorted({kind.source for kind in asked.kinds})
    ]
    of_all = [np.sort(np.concatenate(some)) for some in zip(*by_source, strict=True)]
    shares = expanded.shares_in_index(of_all, finder.chunks)
    if held is not None:
        shares = shares.some(np.flatnonzero(~held.have(shares.ids)))
    among = [
        shares.of_alternatives > 0
        if some is None
        else (shares.of_alternatives > 0) & places_among(some, shares.ids)[1]
        for some in finder.allowed(asked.among, asked.kinds)
    ]
    proposed = [
        _best(shares, is_among & places_among(distinct(np.concatenate(of_source)), shares.ids)[1], most)
        for of_source in by_source
        for is_among in among
    ]
    return SynonymResults(shares, distinct(np.concatenate(proposed)))


def _best(shares: ExpandedShares, is_meant: NDArray[np.bool_], most: int) -> Ids:
    """Return the texts with the largest shares; of equal ones, the first by id."""
    rows = np.flatnonzero(is_meant)
    return shares.ids[rows[np.argsort(-shares.of_all[rows], kind="stable")[:most]]]
