"""Judges what a trial showed: one verdict for each property, with the reason where it does not hold."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memd_client.tools import MAX_CHARS
from tests.clients.trial import FACT, NEWER, TODAY, Observed, Turn

_REDACTED = r"\S{1,80}"


class Verdict(msgspec.Struct, frozen=True):
    """Whether a property holds; None: the program has no such thing, or memd does not have it for this one."""

    holds: bool | None
    why: str = ""

    @property
    def word(self) -> str:
        """For a table."""
        return {True: "yes", False: "NO", None: "-"}[self.holds]


_NONE = Verdict(None)


def _all(*conditions: tuple[bool, str]) -> Verdict:
    failed = [why for holds, why in conditions if not holds]
    return Verdict(not failed, "; ".join(failed))


def _connected(seen: Observed) -> Verdict:
    bad = [str(ended) for ended in seen.installed if ended.status != 0]
    if bad:
        return Verdict(False, f"memd-ctl failed: {bad}")
    if seen.listing is None:
        return _NONE
    listed = seen.listing.out + seen.listing.err
    return _all(
        (re.search(rf"memd.*{seen.program.connected}", listed, re.DOTALL) is not None, str(seen.listing))
    )


def _tools(seen: Observed) -> Verdict:
    if not seen.first_requests:
        return Verdict(False, f"it asked no model: {[str(run) for run in seen.runs]}")
    if seen.program.searches:
        return _NONE
    offered = seen.first_requests[0].memory_tool("memory_search") is not None
    later = sum(request.memory_tool("memory_search") is None for request in seen.first_requests)
    return _all((offered, f"not in the first {later} of {len(seen.first_requests)} requests"))


def _call(seen: Observed) -> Verdict:
    results = seen.results(seen.first_requests, seen.first)
    if len(results) != len(seen.first.steps):
        return Verdict(False, f"{len(results)} of {len(seen.first.steps)} calls came back: {results}")
    search, get, status = (_parsed(result) for result in results)
    return _all(
        (all(len(result[result.find("{") :]) <= MAX_CHARS for result in results), "a reply is too long"),
        (
            any(FACT in hit.get("snippet", "") for hit in search.get("results", ())),
            f"search: {results[0][:300]}",
        ),
        (FACT in str(get.get("text")), f"get: {results[1][:300]}"),
        (status.get("running") is True, f"status: {results[2][:300]}"),
        (_answers(seen.runs[0].out, seen.first.answer, seen), f"no answer: {seen.runs[0]}"),
    )


def _parsed(result: str) -> Mapping[str, Any]:
    """The object in a result; programs put words before it, or all of it into a string of JSON."""
    for text in (result, result.replace('\\"', '"').replace("\\\\", "\\")):
        begin = text.find('{"_memd"')
        try:
            value = json.JSONDecoder().raw_decode(text[begin:])[0] if begin >= 0 else None
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _hooks(seen: Observed) -> Verdict:
    if not seen.program.hooks:
        return _NONE
    texts = seen.first_requests[0].texts("system", "user") if seen.first_requests else ""
    return _all(
        (TODAY in texts or not seen.program.notes, "the daily note is not in the first request"),
        (FACT in texts, "what memory has on the message is not in the first request"),
        (re.search(r"(?:<|&lt;)memd-recall ", texts) is not None, "there is no mark"),
    )


def _not_back(seen: Observed) -> Verdict:
    if seen.program.preset is None:
        return _NONE
    back = [
        turn.text[:200]
        for turn in seen.turns
        if any(text in turn.text for text in ("memd-recall", "_memd", FACT, TODAY))
    ]
    return _all((not back, f"in the index: {back}"))


def _transcript(seen: Observed) -> Verdict:
    if seen.program.preset is None:
        return _NONE
    missing = [
        f"{role}: {text}"
        for role, text in _said(seen)
        if not any(_is(turn, role, text, seen) for turn in seen.turns)
    ]
    return _all((not missing, f"missing: {missing}"))


def _nothing_else(seen: Observed) -> Verdict:
    if seen.program.preset is None:
        return _NONE
    said = _said(seen)
    more = [
        f"{turn.role}: {turn.text[:200]}"
        for turn in seen.turns
        if not any(_is(turn, role, text, seen) for role, text in said)
    ]
    others = {turn.path for turn in seen.turns}
    return _all(
        (not more, f"also there: {more}"),
        (len(seen.turns) <= len(said), f"{len(seen.turns)} turns of {len(said)}"),
        (len(others) <= 1, f"in several files: {sorted(others)}"),
    )


def _said(seen: Observed) -> list[tuple[str, str]]:
    exchanges = (seen.first, seen.second)
    return [each for one in exchanges for each in (("user", one.prompt), ("assistant", one.answer))]


def _is(turn: Turn, role: str, text: str, seen: Observed) -> bool:
    """Whether a turn is this text, with something else for the secrets."""
    pattern = _without_secrets(text, seen)
    if seen.program.quotes and role == "user":
        pattern = f'"{pattern}"'
    return turn.role == role and re.fullmatch(pattern, turn.text) is not None


def _answers(out: str, answer: str, seen: Observed) -> bool:
    """Whether a program has printed an answer."""
    return answer in out or (
        seen.program.masks and re.search(_without_secrets(answer, seen), out) is not None
    )


def _without_secrets(text: str, seen: Observed) -> str:
    """A pattern of a text with something else for the secrets."""
    pattern = re.escape(text)
    for secret in seen.secrets:
        pattern = pattern.replace(re.escape(secret), _REDACTED)
    return pattern


def _secrets(seen: Observed) -> Verdict:
    if seen.program.preset is None:
        return _NONE
    return _all(
        (
            seen.kept or seen.program.masks,
            "the program itself does not keep the secrets: nothing is shown by that",
        ),
        (not seen.leaks, f"a secret stands in {seen.leaks}"),
    )


def _dead(seen: Observed) -> Verdict:
    results = seen.results(seen.second_requests, seen.second)
    return _all(
        (bool(results) and "error" in _parsed(results[0]), f"replies: {[one[:200] for one in results]}"),
        (seen.runs[1].status == 0, f"the program failed: {seen.runs[1]}"),
    )


def _restarted(seen: Observed) -> Verdict:
    results = seen.results(seen.second_requests, seen.second)
    return _all(
        (len(results) > 1 and FACT in results[1], f"replies: {[one[:200] for one in results]}"),
        (_answers(seen.runs[1].out, seen.second.answer, seen), f"no answer: {seen.runs[1]}"),
    )


def _upgraded(seen: Observed) -> Verdict:
    results = seen.results(seen.second_requests, seen.second)[2:]
    status = _parsed(results[0]) if results else {}
    return _all(
        (status.get("running") is True and status.get("version") == NEWER, f"status: {results[:1]}"),
        (len(results) > 1 and FACT in results[1], f"replies after it: {[one[:200] for one in results[1:]]}"),
    )


def _quiet(seen: Observed) -> Verdict:
    return _all((not seen.refused, f"asked for {seen.refused}"))


JUDGEMENTS: Mapping[str, Callable[[Observed], Verdict]] = {
    "connected, by its own list": _connected,
    "tools at the first request": _tools,
    "calls and their replies": _call,
    "hooks reach the request": _hooks,
    "what memd handed out is not indexed": _not_back,
    "every turn of its transcript is indexed": _transcript,
    "nothing else is": _nothing_else,
    "no secret is in a file of memd": _secrets,
    "it goes on without the daemon": _dead,
    "it has memory again after a start": _restarted,
    "it has memory after an upgrade": _upgraded,
    "it asked no other host": _quiet,
}
"""Each property by its name in the table."""


def judged(seen: Observed) -> dict[str, Verdict]:
    """All verdicts on a trial."""
    return {name: judge(seen) for name, judge in JUDGEMENTS.items()}


def table(trials: Sequence[tuple[Observed, Mapping[str, Verdict]]]) -> str:
    """The verdicts as a table of Markdown: a column for each program."""
    programs = (f"{seen.program.title} {seen.version}" for seen, _ in trials)
    lines = [f"| | {' | '.join(programs)} |", f"|---|{'---|' * len(trials)}"]
    lines += [
        f"| {name} | {' | '.join(verdicts[name].word for _, verdicts in trials)} |" for name in JUDGEMENTS
    ]
    return "\n".join(lines)
