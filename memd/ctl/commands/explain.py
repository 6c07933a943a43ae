"""memd-ctl explain: shows how each hit was ranked, and why other candidates are no hits."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from memd.ctl.commands.search import question_of
from memd.ctl.invocation import Invocation
from memd.ctl.output import reply_text
from memd.ctl.output.humanize import counted, fitted, visible, width, wrapped
from memd.ctl.output.terminal import Outcome, Paint
from memd_client.messages import ExplainedHit, Explanation

_COLUMNS = 80
_LABEL = 12  # columns of the name of a fact
_INDENT = "    "
_LEAST = 16  # columns of a path
_MOST = 5  # candidates listed per reason, without --all
_HEADER = ("", "score", "meaning", "words")
_Fact = str | Sequence[str]
"""A sentence, or separate words."""
_CUTS = ("joined", "max_results", "duplicate", "overlap", "min_score")


def run_explain(invocation: Invocation) -> Outcome:
    """Explain a search, and print how the question was parsed and what became of each candidate."""
    with invocation.client() as memd:
        explanation = memd.explain(**question_of(invocation.options))
    shown = text(
        explanation, invocation.screen.paint, columns=invocation.screen.columns, whole=invocation.options.all
    )
    return Outcome(explanation, shown, reply_text.answer_notes(explanation.found))


def text(explanation: Explanation, paint: Paint, *, columns: int | None = None, whole: bool = False) -> str:
    """Format how the question was parsed, the hits with their figures, and then the other candidates by reason.

    Args:
        explanation: The daemon's reply.
        paint: Colours the text.
        columns: The width of the terminal; None: there is none, and no path is shortened.
        whole: Whether to list all candidates that are no hits, not only the first of each reason.
    """
    if explanation.found.scope_denied:
        return ""  # nothing was searched; a remark says so
    lines = _facts(_question(explanation), paint, columns or _COLUMNS)
    for one in explanation.candidates:
        if one.cut is None:
            lines += ["", _headline(one, paint)]
            lines += _facts(_hit(one, explanation), paint, columns or _COLUMNS, _INDENT)
    lines += _cut(explanation, paint, columns, whole=whole)
    return "\n".join(lines)


def _facts(facts: Iterator[tuple[str, _Fact]], paint: Paint, columns: int, indent: str = "") -> list[str]:
    """Format each fact after its name; long ones are wrapped."""
    lines: list[str] = []
    for name, fact in facts:
        label = f"{indent}{paint(name.ljust(_LABEL), 'dim')}"
        parts, gap = (fact.split(" "), " ") if isinstance(fact, str) else (fact, "  ")
        for line in wrapped([_plain(part) for part in parts], columns - len(indent) - _LABEL, gap):
            lines.append(f"{label}{line}")
            label = indent + " " * _LABEL
    return lines


def _question(explanation: Explanation) -> Iterator[tuple[str, _Fact]]:
    found = explanation.found
    yield "words", [term for term in explanation.terms if term not in explanation.phrases] or ["none"]
    yield "phrases", [f'"{phrase}"' for phrase in explanation.phrases]
    yield "left out", explanation.left_out
    if explanation.alternatives:
        yield (
            "synonyms",
            "; ".join(f"{word}: {', '.join(of)}" for word, of in explanation.alternatives.items()),
        )
    yield "mode", ", ".join(part for part in (found.mode, f"{found.provider} {found.model}".strip()) if part)
    if explanation.considered:
        yield "score", _formula(explanation)
        yield "min_score", f"{explanation.min_score:.2f}, the least score of a hit"
        if explanation.answers_from:
            yield "strength", _strength(explanation)
    yield "candidates", _counts(explanation)


def _strength(explanation: Explanation) -> str:
    """Return whether the hits are weak, and why."""
    missing = ", ".join(explanation.missing)
    without = f"; no text holds {missing}" if missing else ""
    is_weak = explanation.strength < explanation.answers_from
    side = "below" if is_weak else "not below"
    said = "weak" if is_weak else "not weak"
    return f"{explanation.strength:.2f}, {side} {explanation.answers_from:.2f}: the hits are {said}{without}"


def _formula(explanation: Explanation) -> str:
    parts = [
        (explanation.vector_share, _meant(explanation)),
        (explanation.text_share, f"{explanation.share_weight:.3g} x share of the words"),
    ]
    said = " + ".join(f"{_weight(share)} x {name}" for share, name in parts if share)
    said = f"tanh({said})"
    if explanation.assumed_cosine is None and explanation.vector_weight:
        said += "; no vectors were compared: their weight is idle"
    if not explanation.text_share and explanation.text_weight:
        said += "; no word was found: its weight is idle"
    return said


def _meant(explanation: Explanation) -> str:
    low, high = explanation.calibration or (0.0, 1.0)
    nothing = low + explanation.background
    return f"(closeness {'+' if nothing < 0 else '-'} {abs(nothing):.3f}) / {high - low:.3f}"


def _counts(explanation: Explanation) -> str:
    if not explanation.considered:
        return "none"
    listed = len(explanation.candidates)
    some = f"; {listed:,} are listed" if listed < explanation.considered else ""
    synonyms = f", {explanation.by_synonyms:,} by synonyms" if explanation.by_synonyms else ""
    return f"{explanation.considered:,}: {explanation.by_words:,} by words, {explanation.by_meaning:,} by meaning{synonyms}{some}"


def _headline(one: ExplainedHit, paint: Paint) -> str:
    place = _plain(f"{one.path}:{_span(one.window or (one.start_line, one.end_line))}")
    return f"{paint(str(one.place).rjust(2), 'bold')}  {paint(place, 'cyan')}"


def _hit(one: ExplainedHit, explanation: Explanation) -> Iterator[tuple[str, _Fact]]:
    yield "score", _sum(one, explanation)
    if one.repeats:
        yield "place", "it only repeats the question: its score was lowered to what is just worth reading"
    if one.superseded:
        yield "place", "it is superseded: its score was lowered"
    if one.older is not None:
        yield "place", f"before candidate {one.older}, which it replaces, and with its score"
    if one.owed:
        yield "place", "before better ones: two hits of the other source stand before it"
    if explanation.assumed_cosine is not None:
        yield "meaning", _meaning(one, explanation)
    yield "words", _words(one)
    if found := _in_other_words(one, explanation):
        yield "", found
    if taken := _other_script(one, explanation):
        yield "", taken
    if one.of_time:
        yield "time", f"of the time that the question names: both count {one.time_factor:.3g} times as much"
    yield "window", _window(one)
    yield "", [f"{term} :{','.join(map(str, lines))}" for term, lines in one.places.items()]


def _sum(one: ExplainedHit, explanation: Explanation) -> str:
    parts = []
    if explanation.vector_share:
        parts.append(f"{one.meaning:.3f} by meaning")
    if explanation.text_share:
        parts.append(f"{one.by_words:.3f} by words")
    relation = "instead of" if one.older is not None else "="
    return f"{one.score:.3f} {relation} tanh({' + '.join(parts)})"


def _meaning(one: ExplainedHit, explanation: Explanation) -> str:
    if one.cosine is None:
        return f"no vector yet: a closeness of {explanation.assumed_cosine:.3f} is assumed, the median of the others"
    part = "" if one.part is None else f" of the whole, {one.part:.3f} of its best part"
    return f"cosine {one.cosine:.3f}{part}, {_ranked(one.vector_rank)}"


def _words(one: ExplainedHit) -> str:
    if one.keyword is None:
        return "none found here"
    return f"share {one.share:.3f}, r {one.keyword:.3f}, {_ranked(one.keyword_rank)}"


def _other_script(one: ExplainedHit, explanation: Explanation) -> str | None:
    """Return the remark that a candidate in another script is given a higher share of words; None: it is not."""
    is_alone = explanation.assumed_cosine is None
    weight = explanation.translations_weight
    towards = min(1.0, one.taken + weight * one.expanded)
    if not one.foreign or one.share >= towards or not explanation.text_share:
        return None
    close = "" if is_alone else "what equally close texts in the question's script have and "
    most = "" if is_alone else ", at most 1"
    return f"{one.foreign:.0%} in another script: its share is raised towards {towards:.3f}, {close}{weight:.3g} x what it holds with translations{most}"


def _in_other_words(one: ExplainedHit, explanation: Explanation) -> str | None:
    """Return the remark that a candidate holds synonyms of words; None: it does not."""
    if not one.alternatives or one.foreign == 1 or not explanation.text_share:
        return None
    return f"synonyms of words with a share of {one.alternatives:.3f}: {explanation.synonyms_weight:.3g} x that is added"


def _window(one: ExplainedHit) -> str:
    chunk = f"of the chunk, {_span((one.start_line, one.end_line))}"
    others = ", ".join(map(str, one.others))
    match one.chosen:
        case "whole":
            return "the whole chunk"
        case "terms":
            return f"the part {chunk}, with most of the words"
        case "part":
            return f"the part {chunk}, that is closest in meaning"
        case "synonyms":
            return f"the part {chunk}, with most of the synonyms"
        case "beginning":
            return f"the beginning {chunk}, which holds no word"
        case "rest":
            return f"what {others} {'does' if len(one.others) == 1 else 'do'} not show {chunk}"
        case _:
            return chunk


def _ranked(rank: int | None) -> str:
    return "not among the best" if rank is None else f"number {rank}"


def _cut(explanation: Explanation, paint: Paint, columns: int | None, *, whole: bool) -> Iterator[str]:
    """Yield the candidates that are no hits, grouped by reason; at most _MOST of each unless `whole`."""

    def reason(one: ExplainedHit) -> tuple[int, str]:
        cut = one.cut or ""
        return (_CUTS.index(cut) if cut in _CUTS else len(_CUTS)), cut

    left_out = 0
    for (_, cut), group in groupby(
        sorted((one for one in explanation.candidates if one.cut), key=reason), reason
    ):
        members = list(group)
        shown = members if whole else members[:_MOST]
        left_out += len(members) - len(shown)
        yield ""
        yield paint(f"{_said(cut, explanation)}: {len(members):,}", "bold")
        yield from _table(shown, paint, columns)
    if left_out:
        yield ""
        yield paint(f"{counted(left_out, 'candidate')} more with --all", "dim")


def _said(cut: str, explanation: Explanation) -> str:
    match cut:
        case "max_results":
            return f"Beyond max_results {explanation.max_results}"
        case "duplicate":
            return "The same text as a better one"
        case "joined":
            return "Shown with a better one that it follows or goes before"
        case "overlap":
            return "No line that a better one does not show"
        case "min_score":
            return f"Below min_score {explanation.min_score:.2f}"
        case _:
            return f"Cut by {visible(cut)}"


def _table(members: Sequence[ExplainedHit], paint: Paint, columns: int | None) -> Iterator[str]:
    rows = [_figures(one) for one in members]
    widths = [max(len(row[n]) for row in (_HEADER, *rows)) for n in range(len(_HEADER))]
    before = sum(widths) + 2 * len(widths)
    yield paint("  ".join(cell.rjust(size) for cell, size in zip(_HEADER, widths, strict=True)), "dim")
    for one, row in zip(members, rows, strict=True):
        figures = "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        room = None if columns is None else columns - before
        yield f"{figures}  {_place(one, room)}"


def _figures(one: ExplainedHit) -> tuple[str, ...]:
    return (
        str(one.place).rjust(2),
        f"{one.score:.3f}",
        "-" if one.cosine is None else f"{one.meaning:.3f}",
        f"{one.by_words:.3f}" if one.by_words or one.keyword is not None else "-",
    )


def _place(one: ExplainedHit, room: int | None) -> str:
    """Format the path and lines of a candidate, and the hits that it duplicates or overlaps; the path is shortened to fit."""
    lines = f":{_span(one.window or (one.start_line, one.end_line))}"
    numbers = ", ".join(map(str, one.others))
    beside = (
        {"duplicate": f"  as {numbers}", "overlap": f"  in {numbers}", "joined": f"  with {numbers}"}.get(
            one.cut or "", ""
        )
        if numbers
        else ""
    )
    path = _plain(one.path)
    if room is not None:
        path = fitted(path, max(_LEAST, room - width(lines) - width(beside)))
    return f"{path}{lines}{beside}"


def _span(lines: tuple[int, int]) -> str:
    return f"{lines[0]}-{lines[1]}"


def _weight(value: float) -> str:
    """Format a weight with two decimals, or three if the third is not 0."""
    return f"{value:.3f}".removesuffix("0")


def _plain(text: str) -> str:
    return visible(text).replace("\n", " ")
