"""What is judged of a program: each property is missed where it does not hold. No program is needed for that."""

import json
from collections.abc import Callable

from msgspec import structs

from tests.clients.conversation import Called, Exchange, ModelRequest, Said, Tool, ToolResult, calling
from tests.clients.house import Ended
from tests.clients.judge import JUDGEMENTS, judged
from tests.clients.programs import PROGRAMS
from tests.clients.trial import FACT, NEWER, TODAY, Observed, Turn
from tests.table import table

SECRETS = ("ghp_1", "sk-2")
FILE = "sessions/claude-code/1.jsonl"


GOOD_REPLIES = (
    {"_memd": "4", "error": "no daemon"},
    {"_memd": "5", "text": FACT},
    {"_memd": "6", "running": True, "version": NEWER},
    {"_memd": "7", "text": FACT},
)


def _request(exchange: Exchange, *results: object) -> ModelRequest:
    texts = (Said("system", f"<memd-recall 1>{TODAY} {FACT}"), Said("user", exchange.prompt))
    called = [
        item
        for result in results
        for item in (Called("mcp__memd__memory_search"), ToolResult(json.dumps(result)))
    ]
    return ModelRequest((Tool("mcp__memd__memory_search"),), (*texts, *called))


def _good() -> Observed:
    first = Exchange("Where is it? ghp_1", "It is there.", (calling("memory_search"),) * 3)
    second = Exchange("Which one? sk-2", "That one.", (calling("memory_search"),) * 4)
    results = (
        {"_memd": "1", "results": [{"snippet": FACT}]},
        {"_memd": "2", "text": FACT},
        {"_memd": "3", "running": True},
    )
    said = (("user", "Where is it? [x]"), ("assistant", "It is there."), ("user", "Which one? [x]"))
    return Observed(
        PROGRAMS["claude"],
        "1.0",
        first,
        second,
        SECRETS,
        installed=[Ended(0, "", "", 1.0)],
        listing=Ended(0, "memd: Connected", "", 1.0),
        runs=[Ended(0, "It is there.", "", 1.0), Ended(0, "That one.", "", 1.0)],
        first_requests=[_request(first), _request(first, *results)],
        second_requests=[_request(second, *GOOD_REPLIES)],
        turns=[Turn(FILE, role, text) for role, text in (*said, ("assistant", "That one."))],
        kept=True,
    )


def test_all_holds_of_a_good_trial() -> None:
    """Nothing is named."""
    assert {name for name, verdict in judged(_good()).items() if verdict.holds is not True} == set()


def _without_tools(seen: Observed) -> None:
    seen.first_requests[0] = ModelRequest((), seen.first_requests[0].items)


def _with_an_error(seen: Observed) -> None:
    seen.first_requests = [_request(seen.first, *[{"_memd": "1", "error": "no"}] * 3)]


def _without_hooks(seen: Observed) -> None:
    seen.first_requests[0] = ModelRequest(seen.first_requests[0].tools, (Said("user", seen.first.prompt),))


def _with_what_was_handed_out(seen: Observed) -> None:
    seen.turns[0] = Turn(FILE, "user", f"{TODAY} Where is it? [x]")


def _with_a_second_file(seen: Observed) -> None:
    seen.turns[0] = Turn("sessions/claude-code/2.jsonl", "user", "Where is it? [x]")


def _with_a_living_daemon(seen: Observed) -> None:
    seen.second_requests = [_request(seen.second, {"_memd": "4", "text": FACT}, *GOOD_REPLIES[1:])]


def _with_a_daemon_that_stays_dead(seen: Observed) -> None:
    seen.second_requests = [_request(seen.second, *[{"_memd": "4", "error": "no"}] * 2, *GOOD_REPLIES[2:])]


def _with_a_daemon_that_is_not_upgraded(seen: Observed) -> None:
    older = {"_memd": "6", "running": True, "version": "0.1.0"}
    seen.second_requests = [_request(seen.second, *GOOD_REPLIES[:2], older, GOOD_REPLIES[3])]


def _with_nothing_after_the_upgrade(seen: Observed) -> None:
    seen.second_requests = [_request(seen.second, *GOOD_REPLIES[:3], {"_memd": "7", "error": "no"})]


def test_a_program_that_masks_secrets_answers_without_them() -> None:
    """Of any other one that is no answer, and nothing is shown by its files."""
    seen = _good()
    seen.first = structs.replace(seen.first, answer="It is sk-2.")
    seen.second = structs.replace(seen.second, answer="It is sk-2.")
    seen.runs = [Ended(0, "It is s…2.", "", 1.0)] * 2
    seen.turns = []
    seen.kept = False
    missed = {
        "calls and their replies",
        "it has memory again after a start",
        "no secret is in a file of memd",
    }
    assert missed <= {name for name, verdict in judged(seen).items() if verdict.holds is False}
    seen.program = PROGRAMS["openclaw"]
    held = judged(seen)
    assert all(held[name].holds for name in missed)
    assert held["tools at the first request"].holds is None


@table(
    ("break_it", "missed"),
    [
        (lambda seen: seen.installed.append(Ended(1, "", "no", 1.0)), {"connected, by its own list"}),
        (
            lambda seen: setattr(seen, "listing", Ended(0, "memd: Failed", "", 1.0)),
            {"connected, by its own list"},
        ),
        (_without_tools, {"tools at the first request"}),
        (_with_an_error, {"calls and their replies"}),
        (_without_hooks, {"hooks reach the request"}),
        (
            _with_what_was_handed_out,
            {
                "what memd handed out is not indexed",
                "every turn of its transcript is indexed",
                "nothing else is",
            },
        ),
        (lambda seen: seen.turns.pop(), {"every turn of its transcript is indexed"}),
        (lambda seen: seen.turns.append(Turn(FILE, "user", "A tool said so.")), {"nothing else is"}),
        (lambda seen: seen.turns.append(seen.turns[0]), {"nothing else is"}),
        (_with_a_second_file, {"nothing else is"}),
        (lambda seen: seen.leaks.append("memd.log"), {"no secret is in a file of memd"}),
        (lambda seen: setattr(seen, "kept", False), {"no secret is in a file of memd"}),
        (_with_a_living_daemon, {"it goes on without the daemon"}),
        (_with_a_daemon_that_stays_dead, {"it has memory again after a start"}),
        (_with_a_daemon_that_is_not_upgraded, {"it has memory after an upgrade"}),
        (_with_nothing_after_the_upgrade, {"it has memory after an upgrade"}),
        (lambda seen: seen.refused.append("example.org:443"), {"it asked no other host"}),
    ],
)
def test_what_does_not_hold_is_named(break_it: Callable[[Observed], object], missed: set[str]) -> None:
    """That alone, and with a reason."""
    seen = _good()
    break_it(seen)
    failed = {name: verdict.why for name, verdict in judged(seen).items() if verdict.holds is False}
    assert set(failed) == missed
    assert all(failed.values())
    assert set(failed) <= set(JUDGEMENTS)
