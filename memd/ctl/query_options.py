"""The question that the options of `search` and `explain` ask. Pure."""

import argparse
from typing import TypedDict

from memd.ctl.failures import UsageError
from memd_client.messages import Source


class QueryOptions(TypedDict):
    """What Client.search and Client.explain take."""

    query: str
    max_results: int | None
    min_score: float | None
    source: Source | None
    agent: str | None
    session_key: str | None
    now: str | None


def question_of(options: argparse.Namespace) -> QueryOptions:
    """The question; several words on the command line are one.

    Raises:
        UsageError: nothing is asked.
    """
    query = " ".join(options.query)
    if not query.strip():
        raise UsageError(
            "The question is empty.", 'Ask something, such as: memd-ctl search "which database did we pick?"'
        )
    return QueryOptions(
        query=query,
        max_results=options.max_results,
        min_score=options.min_score,
        source=options.source,
        agent=options.agent,
        session_key=options.session_key,
        now=options.now,
    )
