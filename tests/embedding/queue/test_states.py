"""Why nothing of an agent is embedded, in words."""

import pytest

from memd.embedding.health_state import Healthy, Refusing, Retrying
from memd.embedding.queue.states import Paused, State, WaitingForConfirmation, in_words


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (Retrying(0.0, 1.0, 1, "openai: no answer"), "openai: no answer"),
        (Refusing(0.0, "openai: the quota is used up"), "`memd-ctl embed resume --agent work`"),
        (Paused(), "`memd-ctl embed resume --agent work`"),
        (WaitingForConfirmation(30_000, 12_000_000), "30,000 chunks, about 12,000,000 tokens"),
        (
            WaitingForConfirmation(30, 900, 40),
            "30 chunks, about 900 tokens, would be sent to the provider after 40 just before",
        ),
        (
            WaitingForConfirmation(30, 900, 40),
            "nothing is sent for 10 minutes, or until `memd-ctl embed confirm",
        ),
        (WaitingForConfirmation(30_000, 12_000_000), "`memd-ctl embed confirm --agent work`"),
    ],
)
def test_a_person_is_told_what_to_do(state: State, said: str) -> None:
    """Why nothing is embedded, and the command that changes it."""
    assert said in str(in_words(state, "work"))


def test_what_works_needs_no_words() -> None:
    """Nothing is in the way."""
    assert in_words(Healthy(), "work") is None
