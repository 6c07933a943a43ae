"""Requests that are tried again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import stamina

from memd.config.settings import Remote
from memd.embedding.registry import QUERY_TIMEOUT_S
from memd.providers.provider import EmbedUnavailable
from memd.providers.remote.dialect import RequestTimedOut
from memd.providers.remote.retrying_client import ASKING, INDEXING, RetryPolicy, open_client
from memd.providers.remote.spec import provider_spec


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    """As often as it says, with no pause."""
    stamina.set_testing(True, attempts=1000, cap=True)
    yield
    stamina.set_testing(False)


async def attempts(retries: RetryPolicy, failure: Exception, *, succeeds_at: int = 0) -> int:
    """How often a request is put that fails so, but for one attempt."""
    made = 0
    try:
        async for attempt in retries.attempt():
            with attempt:
                made += 1
                if made != succeeds_at:
                    raise failure
    except type(failure):
        pass
    return made


@pytest.mark.parametrize("retries", [INDEXING, ASKING], ids=["documents", "questions"])
async def test_what_passes_by_itself_is_tried_again_and_not_for_ever(retries: RetryPolicy) -> None:
    """At the shipped figures; what takes too long, or is to wait for too long, less often."""
    assert await attempts(retries, EmbedUnavailable("busy")) == retries.attempts > 1
    assert await attempts(retries, EmbedUnavailable("busy"), succeeds_at=2) == 2
    assert await attempts(retries, RequestTimedOut("late")) == retries.timeouts < retries.attempts
    assert await attempts(retries, ValueError("a bug")) == 1
    longest = retries.longest_asked_s
    assert await attempts(retries, EmbedUnavailable("busy", retry_after_s=longest)) == retries.attempts
    assert await attempts(retries, EmbedUnavailable("busy", retry_after_s=longest + 0.01)) == 1


def test_documents_have_more_patience_than_a_question_has_time() -> None:
    """The pauses of a question fit into its deadline; documents wait out an outage of seconds."""
    assert (ASKING.attempts - 1) * max(ASKING.cap_s, ASKING.longest_asked_s) < QUERY_TIMEOUT_S
    assert INDEXING.attempts > ASKING.attempts
    assert INDEXING.cap_s > QUERY_TIMEOUT_S


async def test_a_client_that_is_opened_has_not_connected() -> None:
    """It knows its server, and can be closed without a request."""
    made = provider_spec("ollama", "", Remote(base_url="http://127.0.0.1:1"), {}, Path.read_text)
    opened = open_client(made)
    assert opened.dialect is made.dialect
    assert opened.account is made.account
    await opened.session.close()
