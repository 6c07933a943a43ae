"""memd-ctl explain."""

import json
from pathlib import Path

from memd.ctl.commands.explain import text
from memd.ctl.paint import plain
from memd_client.messages import ExplainedHit, Explanation, Found
from tests.client.scripted_server import serving
from tests.ctl.answers import FOUND, answering
from tests.ctl.conftest import Run

_EXPLAINED = Explanation(
    found=FOUND,
    terms=["retries"],
    match='"retries"',
    vector_weight=0.7,
    text_weight=0.3,
    min_score=0.35,
    candidates=[
        ExplainedHit(
            path="memory/2026-02-09.md",
            start_line=1,
            end_line=20,
            score=0.715,
            cosine=0.83,
            calibrated=0.52,
            keyword=1.5,
            keyword_rank=1,
            vector_rank=2,
            terms=["retries"],
            window=(3, 5),
        ),
        ExplainedHit(path="b.md", start_line=1, end_line=4, score=0.4, cut="min_score"),
        ExplainedHit(path="c.md", start_line=1, end_line=4, score=0.3, cut="something_new"),
    ],
)


def test_each_candidate_shows_what_it_got(run: Run, address: Path) -> None:
    """A hit with the lines of its snippet, another one with those of its chunk, and why it is none."""
    with serving(address, answering(_EXPLAINED)):
        code, out, err = run("explain", "how many retries?")
    assert (code, err) == (0, "")
    assert out == (
        "terms      retries\n"
        'keywords   "retries"\n'
        "mode       hybrid, local e5\n"
        "weights    vector 0.70, text 0.30\n"
        "min_score  0.35\n"
        "\n"
        "   score  cosine  calibr.  keyword  vec#  key#  place\n"
        "1  0.715   0.830    0.520    1.500     2     1  memory/2026-02-09.md:3-5  [retries]\n"
        "2  0.400       -        -        -     -     -  b.md:1-4  cut: below min_score\n"
        "3  0.300       -        -        -     -     -  c.md:1-4  cut: something_new\n"
    )


def test_no_candidate_is_no_table() -> None:
    """What the question was read as is told all the same."""
    assert text(Explanation(found=Found()), plain).startswith("terms      none\nkeywords   not asked\n")


def test_json_gives_every_number(run: Run, address: Path) -> None:
    """The hits among them."""
    with serving(address, answering(_EXPLAINED)):
        data = json.loads(run("explain", "q", "--json").out)["data"]
    assert data["candidates"][0]["window"] == [3, 5]
    assert data["candidates"][1]["cosine"] is None
    assert data["found"]["results"][0]["start_line"] == 3
