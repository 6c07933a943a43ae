"""What explain tells through a daemon: the same as search finds, and to nobody more than search shows."""

import math
import re
from datetime import date
from pathlib import Path

import pytest

from memd.ctl.commands.explain import text
from memd.ctl.output.humanize import width
from memd.ctl.output.terminal import uncoloured
from memd.search.fuse_scores import SYNONYMS, TRANSLATIONS, TRANSLATIONS_ALONE, WORDS
from memd_client import AsyncClient
from memd_client.messages import Explanation
from tests.daemon.inprocess import running, write
from tests.fakes import HashingProvider

GROUP = "agent:main:telegram:group:4711"
OPEN = 'scope = { default = "allow", rules = [] }'
SUM = re.compile(r"score +([\d.]+) = tanh\(([\d.]+) by \w+(?: \+ ([\d.]+) by words)?\)$", re.MULTILINE)


def memory(home: Path) -> None:
    """Notes in two languages, one of them twice, one only for the owner."""
    write(home, "MEMORY.md", "# 偏好\n\n用户的咖啡只喝拿铁,密码是银杏。\n")
    write(
        home, "memory/数据库选型/二月九日与小李讨论的记录.md", "# 数据库\n\n最后选的数据库是 PostgreSQL。\n"
    )
    write(home, "memory/a.md", "# Database\n\nWe picked PostgreSQL as the database.\n")
    write(home, "memory/b.md", "# Database\n\nWe picked PostgreSQL as the database.\n")
    write(home, "memory/c.md", "# Coffee\n\nThe coffee machine is on the second floor.\n")


@pytest.mark.parametrize("question", ["which database did we pick?", "数据库选的是哪个", "coffee 咖啡", "猫"])
async def test_printed_sums_add_up(home: Path, question: str) -> None:
    """Each printed score is that of its printed parts, no line is wider than 80 cells, and search finds the same."""
    memory(home)
    async with running(home) as client:
        await client.sync()
        explanation = await client.explain(question)
        found = await client.search(question, max_chars=0)  # an explanation is for a person
    assert explanation.found == found
    printed = text(explanation, uncoloured, columns=80, whole=True)
    sums = SUM.findall(printed)
    assert len(sums) == len(found.results)
    for (score, one, other), hit in zip(sums, found.results, strict=True):
        assert float(score) == pytest.approx(math.tanh(float(one) + float(other or 0)), abs=0.0016)
        assert float(score) == hit.score
    assert max(map(width, printed.splitlines())) <= 80


async def test_a_group_is_told_nothing_of_what_it_may_not_see(home: Path) -> None:
    """MEMORY.md is no candidate of it, however low min_score is; the owner hears of it."""
    memory(home)
    async with running(home, settings=OPEN) as client:
        await client.sync()
        group = await client.explain("用户的咖啡", session_key=GROUP, min_score=0.0, max_results=50)
        owner = await client.explain("用户的咖啡", min_score=0.0, max_results=50)
    assert {one.path for one in owner.candidates} - {one.path for one in group.candidates} == {"MEMORY.md"}
    assert group.considered == owner.considered - 1
    assert "银杏" not in str(group)


async def test_a_denied_session_is_told_nothing(home: Path) -> None:
    """Not even how its question is read."""
    memory(home)
    async with running(home) as client:
        await client.sync()
        denied = await client.explain("coffee", session_key=GROUP)
    assert denied == Explanation(found=denied.found)
    assert denied.found.scope_denied
    assert text(denied, uncoloured) == ""


@pytest.mark.parametrize("question", ["the kiln firing of yesterday", "昨天 kiln firing"])
async def test_a_day_is_told_from_the_day_of_the_question(home: Path, question: str) -> None:
    """What was written on the day that is meant comes first, whichever day a client says that it is."""
    for day, peak in ((8, 1219), (9, 1225), (10, 1222)):
        write(home, f"memory/2026-02-{day:02}.md", f"# Studio\n\n- Kiln firing: peak {peak} degrees.\n")
    async with running(home) as client:
        await client.sync()
        for day in (9, 10, 11):
            explanation = await client.explain(question, now=date(2026, 2, day))
            assert f"2026 02 {day - 1:02}" in explanation.phrases
            found = await client.search(question, now=f"2026-02-{day:02}T12:00")
            assert found.results[0].path == f"memory/2026-02-{day - 1:02}.md"


async def asked(client: AsyncClient, question: str) -> tuple[Explanation, str]:
    explanation = await client.explain(question)
    return explanation, text(explanation, uncoloured)


async def test_an_idle_side_is_told_of(home: Path) -> None:
    """Without a vector of the question words count in full; without a word that is found, meaning does."""
    memory(home)
    provider = HashingProvider()
    async with running(home, provider) as client:
        await client.sync()
        provider.fail_next(1)
        keyword, printed = await asked(client, "coffee machine")
        assert (keyword.vector_share, keyword.text_share) == (0.0, 2.0)
        assert keyword.found.degraded[0].part == "query_embedding"
        weights = (keyword.share_weight, keyword.synonyms_weight, keyword.translations_weight)
        assert weights == (WORDS, SYNONYMS, TRANSLATIONS_ALONE)
        assert (
            f"score       tanh(2.00 x {WORDS:.3g} x share of the words); no vectors were compared:" in printed
        )
        assert "min_score   0.35, the least score of a hit" in printed
        vector, printed = await asked(client, "zebra")
        assert (vector.vector_share, vector.text_share) == (1.0, 0.0)
        assert vector.translations_weight == TRANSLATIONS
        meant = f"(closeness {'+' if vector.background < 0 else '-'} {abs(vector.background):.3f}) / 1.000"
        assert f"score       tanh(1.00 x {meant}); no word was found: its\n" in printed
        empty, printed = await asked(client, "?!")
        assert (empty.considered, empty.candidates) == (0, [])
        assert printed == "words       none\nmode        keyword, hashing words-and-pairs\ncandidates  none"
