"""memd-ctl search: find what memory says about a question."""

import argparse
from typing import TypedDict

from memd.ctl.call import Call
from memd.ctl.failures import UsageError
from memd.ctl.output import reply_text
from memd.ctl.output.terminal import Outcome
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


def run(call: Call) -> Outcome:
    """Ask, and print the hits."""
    with call.client() as memd:
        found = memd.search(**question_of(call.options), max_chars=0)  # a terminal is no context window
    return Outcome(
        found, reply_text.hits_text(found.results, call.screen.paint), reply_text.answer_notes(found)
    )
