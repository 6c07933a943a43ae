"""What is slow is told, with where the time went, and with nothing of memory."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from memd.providers.provider import Vector
from memd.server.request_times import SLOW_S
from tests.daemon.inprocess import running, write
from tests.fakes import HashingProvider


class Slowly(HashingProvider):
    """Takes its time for one question."""

    async def embed_query(self, text: str) -> Vector:
        if "pelican" in text:
            await asyncio.sleep(SLOW_S + 0.1)
        return await super().embed_query(text)


async def test_a_slow_search_is_told_in_the_log_and_in_status(home: Path) -> None:
    """Once, with the part that was slow; those that were not are in status alone."""
    write(home, "memory/birds.md", "The pelican sleeps on the jetty.\n")
    async with running(home, Slowly()) as memd:
        await memd.sync()
        with capture_logs() as logs:
            for question in ("what sleeps on the jetty?", "where is the pelican?"):
                assert (await memd.search(question)).results
            note = await memd.get("memory/birds.md")
        told = [one for one in logs if str(one["event"]).endswith("was_slow")]
        status = (await memd.status()).agents["main"].searches
    assert [one["event"] for one in told] == ["search.was_slow"]
    [slow] = told
    assert next(iter(slow["parts"])) == "question's vector"
    assert slow["parts"]["question's vector"] > SLOW_S * 1000
    assert 0.9 * slow["took_ms"] < sum(slow["parts"].values()) < 1.1 * slow["took_ms"]
    assert (slow["agent"], slow["hits"], slow["question_chars"], slow["ended"]) == ("main", 1, 21, "answered")
    assert "pelican" in note.text
    assert not any(word in str(slow) for word in ("pelican", "jetty", "where"))
    assert status is not None
    assert status.count == 2
    assert status.median_ms < status.slowest.took_ms
    assert status.slowest.parts == slow["parts"]
