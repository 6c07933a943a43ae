import asyncio

import pytest

from memd.backends.qmd import commands
from memd.backends.qmd.process import QmdFailed
from memd.backends.qmd.runner import SEARCHES, Runner
from tests.fakes.qmd_standin import Standin, delayed, hangs, says
from tests.wait import until_async

SEARCH = commands.search("search", "x", ["a"], 60)


async def test_only_a_few_searches_run_at_a_time(standin: Standin) -> None:
    """The others wait for their turn, and get it."""
    standin.play("search", says("[]", after_s=0.05))
    runner = Runner(standin.program, {})
    said = await asyncio.gather(
        *(runner.search(SEARCH, timeout_s=60, unsaid=()) for _ in range(3 * SEARCHES))
    )
    assert said == ["[]"] * 3 * SEARCHES


async def test_closing_kills_what_runs_and_fails_who_waits(standin: Standin) -> None:
    """At once, those that have not begun included; they are told why."""
    standin.play("search", hangs())
    runner = Runner(standin.program, {})
    waiting = [
        asyncio.create_task(runner.search(SEARCH, timeout_s=600, unsaid=())) for _ in range(SEARCHES + 2)
    ]
    await until_async(lambda: len(standin.children()) == 2 * SEARCHES, 30)
    await runner.close()
    await runner.close()
    for end in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(end, QmdFailed)
        assert "memd has closed" in str(end)
    with pytest.raises(QmdFailed, match="qmd search was not begun"):
        await runner.ask(SEARCH, timeout_s=1)


async def test_the_callers_cancel_is_no_failure(standin: Standin) -> None:
    """Who gives up gets no error, and the others go on."""
    standin.play("search", delayed(600))
    runner = Runner(standin.program, {})
    waiting = asyncio.create_task(runner.search(SEARCH, timeout_s=600, unsaid=()))
    await until_async(lambda: standin.calls("search"), 30)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


async def test_a_failure_does_not_repeat_the_question(standin: Standin) -> None:
    """Nor what a program prints of it."""
    standin.play(
        "search", says("", stderr="Error: no answer to 'where is the Safe'\nfailed anyway", status=2)
    )
    with pytest.raises(QmdFailed) as failed:
        await Runner(standin.program, {}).search(SEARCH, timeout_s=60, unsaid=("safe",))
    assert str(failed.value) == "qmd search ended with exit status 2: failed anyway"
