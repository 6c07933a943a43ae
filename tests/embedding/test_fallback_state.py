import pytest

from memd.embedding.fallback_state import (
    Failing,
    FallbackThresholds,
    FellBack,
    Standing,
    Well,
    answered,
    doubted,
    failed,
)

PATIENCE = FallbackThresholds(down_s=600, stay_s=1800)


@pytest.mark.parametrize(
    ("before", "now", "is_final", "has_fallback", "after"),
    [
        (Well(), 5.0, False, True, Failing(5.0, "why")),
        (Failing(5.0, "old"), 604.0, False, True, Failing(5.0, "why")),
        (Failing(5.0, "old"), 605.0, False, True, FellBack(605.0, "why")),
        (Failing(5.0, "old"), 9e9, False, False, Failing(5.0, "why")),
        (Well(), 5.0, True, True, FellBack(5.0, "why", is_final=True)),
        (Well(), 5.0, True, False, Failing(5.0, "why", is_final=True)),
        (FellBack(5.0, "old"), 9.0, True, True, FellBack(5.0, "why", is_final=True)),
        (FellBack(5.0, "old", answers=True), 9.0, False, True, FellBack(5.0, "why")),
        (FellBack(5.0, "old", is_doubted=True), 9.0, False, True, FellBack(5.0, "why", is_doubted=True)),
        (FellBack(5.0, "old", is_doubted=True), 9.0, True, True, FellBack(5.0, "why", is_final=True)),
    ],
)
def test_only_a_lasting_cause_leads_to_the_fallback(
    before: Standing, now: float, is_final: bool, has_fallback: bool, after: Standing
) -> None:
    """Ten minutes without an answer, or a refusal that no waiting will mend; one error in passing is neither."""
    assert failed(before, "why", now, PATIENCE, is_final=is_final, has_fallback=has_fallback) == after


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (Well(), 5.0, Well()),
        (Failing(1.0, "why"), 5.0, Well()),
        (FellBack(100.0, "why"), 1899.0, FellBack(100.0, "why", answers=True)),
        (FellBack(100.0, "why"), 1900.0, Well()),
        (FellBack(100.0, "why", is_doubted=True), 101.0, Well()),
        (FellBack(100.0, "why", is_final=True), 9e9, FellBack(100.0, "why", is_final=True)),
    ],
)
def test_the_first_provider_is_come_back_to_when_it_answers(
    before: Standing, now: float, after: Standing
) -> None:
    """After half an hour at the earliest, and after a final refusal only when a person has changed something."""
    assert answered(before, now, PATIENCE) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Well(), Well()),
        (Failing(5.0, "why", is_final=True), Failing(5.0, "why")),
        (FellBack(5.0, "why", is_final=True), FellBack(5.0, "why", is_doubted=True)),
        (FellBack(5.0, "why"), FellBack(5.0, "why", is_doubted=True)),
    ],
)
def test_what_is_final_lasts_until_a_person_doubts_it(before: Standing, after: Standing) -> None:
    """From then on the first answer leads back, at once: a person has asked for it."""
    assert doubted(before) == after
