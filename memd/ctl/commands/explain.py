"""memd-ctl explain: how each hit came to its place."""

from collections.abc import Sequence

from memd.ctl import hits
from memd.ctl.call import Call
from memd.ctl.paint import Paint
from memd.ctl.question import question_of
from memd.ctl.screen import Outcome
from memd.ctl.words import visible
from memd_client.messages import ExplainedHit, Explanation

_CUTS = {
    "min_score": "below min_score",
    "duplicate": "same text as a better one",
    "overlap": "overlaps a better one",
    "max_results": "beyond max_results",
}
_HEADER = ("", "score", "cosine", "calibr.", "keyword", "vec#", "key#", "place")


def run(call: Call) -> Outcome:
    """Ask, and print every candidate."""
    with call.client() as memd:
        explanation = memd.explain(**question_of(call.options))
    return Outcome(explanation, text(explanation, call.screen.paint), hits.notes(explanation.found))


def text(explanation: Explanation, paint: Paint) -> str:
    """How the question was read, then the candidates, the best first; those that are no hits say why."""
    found = explanation.found
    facts = [
        ("terms", " ".join(explanation.terms) or "none"),
        ("keywords", explanation.match or "not asked"),
        ("mode", f"{found.mode}, {found.provider} {found.model}".rstrip()),
        ("weights", f"vector {explanation.vector_weight:.2f}, text {explanation.text_weight:.2f}"),
        ("min_score", f"{explanation.min_score:.2f}"),
    ]
    told = [f"{paint(name.ljust(9), 'dim')}  {visible(value)}" for name, value in facts]
    return "\n".join([*told, *_table(explanation.candidates, paint)])


def _table(candidates: Sequence[ExplainedHit], paint: Paint) -> list[str]:
    rows = [_row(number, one) for number, one in enumerate(candidates, 1)]
    if not rows:
        return []
    widths = [max(len(row[column]) for row in (_HEADER, *rows)) for column in range(len(_HEADER) - 1)]
    lines = [_aligned(row, widths) for row in (_HEADER, *rows)]
    painted = [paint(lines[0], "bold")]
    for one, line in zip(candidates, lines[1:], strict=True):
        painted.append(line if one.cut is None else paint(line, "dim"))
    return ["", *painted]


def _row(number: int, one: ExplainedHit) -> tuple[str, ...]:
    start, end = one.window if one.window and one.cut is None else (one.start_line, one.end_line)
    place = f"{one.path}:{start}-{end}"
    terms = f"  [{' '.join(one.terms)}]" if one.terms else ""
    cut = f"  cut: {_CUTS.get(one.cut, one.cut)}" if one.cut else ""
    return (
        str(number),
        f"{one.score:.3f}",
        _decimal(one.cosine),
        _decimal(one.calibrated),
        _decimal(one.keyword),
        _rank(one.vector_rank),
        _rank(one.keyword_rank),
        visible(f"{place}{terms}{cut}").replace("\n", " "),
    )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*numbers, row[-1]])


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rank(value: int | None) -> str:
    return "-" if value is None else str(value)
