"""memd-ctl search: find what memory says about a question."""

from memd.ctl import hits
from memd.ctl.call import Call
from memd.ctl.question import question_of
from memd.ctl.screen import Outcome


def run(call: Call) -> Outcome:
    """Ask, and print the hits."""
    with call.client() as memd:
        found = memd.search(**question_of(call.options), max_chars=0)  # a terminal is no context window
    return Outcome(found, hits.text(found.results, call.screen.paint), hits.notes(found))
