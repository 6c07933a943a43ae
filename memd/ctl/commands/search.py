"""memd-ctl search: find what memory says about a question."""

from memd.ctl.call import Call
from memd.ctl.output import hits
from memd.ctl.output.screen import Outcome
from memd.ctl.query_options import question_of


def run(call: Call) -> Outcome:
    """Ask, and print the hits."""
    with call.client() as memd:
        found = memd.search(**question_of(call.options), max_chars=0)  # a terminal is no context window
    return Outcome(found, hits.text(found.results, call.screen.paint), hits.notes(found))
