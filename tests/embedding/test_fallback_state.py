import pytest

from memd.embedding.fallback_state import FallbackThresholds, LeftForFallback, doubted, left_after
from memd.embedding.health_state import Healthy, Refusing, RequestHealth, Retrying

THRESHOLDS = FallbackThresholds(down_s=600, stay_s=1800)


def failing(since: float, now: float) -> RequestHealth:
    return Retrying(since, now, 2, "why", now)


@pytest.mark.parametrize(
    ("before", "now", "health", "after"),
    [
        (None, 5.0, failing(5.0, 5.0), None),
        (None, 604.0, failing(5.0, 604.0), None),
        (None, 605.0, failing(5.0, 605.0), LeftForFallback(605.0, "why")),
        (None, 5.0, Refusing(5.0, "why"), LeftForFallback(5.0, "why", is_final=True)),
        (LeftForFallback(5.0, "old"), 9.0, Refusing(1.0, "why"), LeftForFallback(5.0, "why", is_final=True)),
        (LeftForFallback(5.0, "old"), 9.0, failing(1.0, 9.0), LeftForFallback(5.0, "why")),
        (
            LeftForFallback(5.0, "old", is_final=True),
            9.0,
            failing(1.0, 9.0),
            LeftForFallback(5.0, "why", is_final=True),
        ),
        (
            LeftForFallback(5.0, "old", is_doubted=True),
            9.0,
            failing(1.0, 9.0),
            LeftForFallback(5.0, "why", is_doubted=True),
        ),
        (
            LeftForFallback(5.0, "old", is_doubted=True),
            9.0,
            Refusing(1.0, "why"),
            LeftForFallback(5.0, "why", is_final=True),
        ),
    ],
)
def test_only_a_lasting_cause_leads_to_the_fallback(
    before: LeftForFallback | None, now: float, health: RequestHealth, after: LeftForFallback | None
) -> None:
    """Ten minutes without an answer, or a refusal that no waiting will mend; one error in passing is neither."""
    assert left_after(before, health, now, THRESHOLDS) == after


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (None, 5.0, None),
        (LeftForFallback(100.0, "why"), 1899.0, LeftForFallback(100.0, "why")),
        (LeftForFallback(100.0, "why"), 1900.0, None),
        (LeftForFallback(100.0, "why", is_doubted=True), 101.0, None),
        (LeftForFallback(100.0, "why", is_final=True), 9e9, LeftForFallback(100.0, "why", is_final=True)),
    ],
)
def test_the_first_provider_is_used_again_when_it_answers(
    before: LeftForFallback | None, now: float, after: LeftForFallback | None
) -> None:
    """After half an hour at the earliest, and after a final refusal only when a person has changed something."""
    assert left_after(before, Healthy(), now, THRESHOLDS) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, None),
        (LeftForFallback(5.0, "why", is_final=True), LeftForFallback(5.0, "why", is_doubted=True)),
        (LeftForFallback(5.0, "why"), LeftForFallback(5.0, "why", is_doubted=True)),
    ],
)
def test_what_is_final_lasts_until_a_person_doubts_it(
    before: LeftForFallback | None, after: LeftForFallback | None
) -> None:
    """From then on the first answer leads back, at once: a person has asked for it."""
    assert doubted(before) == after
