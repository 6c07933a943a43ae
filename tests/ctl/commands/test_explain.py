"""memd-ctl explain."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ctl.commands.explain import text
from memd.ctl.output.humanize import width
from memd.ctl.output.terminal import uncoloured
from memd_client.messages import ExplainedHit, Explanation, Found
from tests.bounds import shipped
from tests.client.scripted_server import serving
from tests.ctl.answers import FOUND, answering
from tests.ctl.conftest import Run
from tests.ctl.pages import check_page


def _candidate(place: int, **changed: Any) -> ExplainedHit:
    settings: dict[str, Any] = {
        "place": place,
        "path": "memory/2026-02-09.md",
        "start_line": 1,
        "end_line": 20,
        "score": 0.35,
        "cosine": 0.5,
        "meaning": 0.365,
    }
    return ExplainedHit(**(settings | changed))


_EXPLAINED = Explanation(
    found=FOUND,
    terms=["retry max", "retries", "数据"],
    phrases=["retry max"],
    left_out=["how", "什么"],
    match='"retries"',
    vector_weight=0.7,
    text_weight=0.3,
    vector_share=1.0,
    text_share=1.0,
    share_weight=0.8,
    synonyms_weight=0.5,
    translations_weight=0.5,
    assumed_cosine=0.8,
    calibration=(0.6, 0.9),
    min_score=0.35,
    max_results=3,
    by_words=3,
    by_meaning=8,
    considered=9,
    background=0.05,
    share_taken=0.5,
    strength=0.41,
    answers_from=0.48,
    missing=["ottilie"],
    alternatives={"retries": ["重试", "try again"], "数据": ["data"]},
    candidates=[
        _candidate(
            1,
            score=0.761,
            cosine=0.83,
            part=0.91,
            meaning=0.767,
            by_words=0.6,
            keyword=1.5,
            keyword_rank=1,
            vector_rank=2,
            share=0.75,
            expanded=0.9,
            alternatives=0.25,
            places={"retries": [3], "数据": [3, 5]},
            window=(3, 5),
            chosen="terms",
        ),
        _candidate(
            2,
            path="b.md",
            score=0.75,
            cosine=None,
            meaning=0.667,
            by_words=0.3,
            foreign=0.75,
            taken=0.5,
            expanded=0.5,
            alternatives=0.5,
            of_time=True,
            within=1.0,
            time_factor=1.5,
            window=(1, 20),
            chosen="whole",
        ),
        _candidate(
            3,
            path="c.md",
            score=0.47,
            keyword=0.667,
            share=0.5,
            window=(4, 6),
            chosen="rest",
            others=[1, 2],
        ),
        _candidate(4, window=(7, 9), cut="max_results"),
        _candidate(5, path="d.md", cut="duplicate", others=[2]),
        _candidate(6, path="旅行/很长的名字/" + "很" * 30 + ".md", cut="overlap", others=[1, 3]),
        _candidate(7, cut="min_score", keyword=0.1, share=0.25, by_words=0.088),
        _candidate(8, cut="something_new"),
    ],
)


def test_each_candidate_shows_what_it_got(run: Run, address: Path) -> None:
    """How the question was read, each hit with its sum, and the others under what cut them."""
    with serving(address, answering(_EXPLAINED)):
        code, out, err = run("explain", "how many retries?")
    assert (code, err) == (0, "")
    check_page("explain", out)


def test_a_terminal_gets_lines_that_fit() -> None:
    """A long path loses its middle, counted in cells; its lines and what is better stay."""
    lines = text(_EXPLAINED, uncoloured, columns=80).splitlines()
    assert max(map(width, lines)) <= 80
    (shortened,) = [line for line in lines if line.startswith(" 6")]
    assert shortened.startswith(" 6  0.350    0.365      -  旅行/")
    assert shortened.endswith("很.md:1-20  in 1, 3")


def test_a_narrow_terminal_gets_so_much_of_a_path() -> None:
    """Lines then do not fit, but tell which file it is."""
    path = f"memory/{'a' * 80}.md"
    explained = msgspec.structs.replace(_EXPLAINED, candidates=[_candidate(1, path=path, cut="min_score")])
    (line,) = [line for line in text(explained, uncoloured, columns=20).splitlines() if "memor" in line]
    shown = line.split()[-1].removesuffix(":1-20")
    assert width(shown) == shipped("memd.ctl.commands.explain._LEAST")
    assert (shown[:5], shown[-3:]) == ("memor", ".md")


def test_of_many_that_were_cut_the_first_are_shown() -> None:
    """The others are counted, and come with --all."""
    most = shipped("memd.ctl.commands.explain._MOST")
    many = [_candidate(number, cut="min_score") for number in range(1, most + 8)]
    explanation = msgspec.structs.replace(_EXPLAINED, candidates=many)
    assert f"\n{most:2}  0" in text(explanation, uncoloured)
    assert f"\n{most + 1:2}  0" not in text(explanation, uncoloured)
    assert text(explanation, uncoloured).endswith("\n7 candidates more with --all")
    assert "\n12  0" in text(explanation, uncoloured, whole=True)
    assert "--all" not in text(explanation, uncoloured, whole=True)


@pytest.mark.parametrize("path", ["a\x1b[31m.md", "a\nb.md", "a\u202eb.md"])
def test_a_terminal_obeys_no_path(path: str) -> None:
    """Whatever a file is called: one line, and no control character."""

    def printed(name: str) -> str:
        candidates = [_candidate(1, path=name), _candidate(2, path=name, cut="min_score")]
        return text(msgspec.structs.replace(_EXPLAINED, candidates=candidates), uncoloured)

    assert path not in printed(path)
    lines = printed(path).splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(printed("a.md").splitlines())


def test_a_hit_that_comes_before_better_ones_says_why() -> None:
    """Its source was owed the place."""
    candidates = [_candidate(1), _candidate(2), _candidate(7, owed=True)]
    told = text(msgspec.structs.replace(_EXPLAINED, candidates=candidates), uncoloured)
    assert told.count("before better ones: two hits of the other source stand before it") == 1


def test_what_only_repeats_the_question_is_named() -> None:
    """Its score is lower than what it is close by."""
    told = text(
        msgspec.structs.replace(_EXPLAINED, candidates=[_candidate(1), _candidate(2, repeats=True)]),
        uncoloured,
    )
    assert told.count("it only repeats the question") == 1


def test_no_candidate_is_no_table() -> None:
    """What the question was read as is told all the same."""
    assert text(Explanation(found=Found()), uncoloured) == (
        "words       none\nmode        hybrid, none\ncandidates  none"
    )


def test_a_denied_session_gets_a_remark_alone(run: Run, address: Path) -> None:
    """There is nothing to explain."""
    with serving(address, answering(Explanation(found=Found(scope_denied=True)))):
        code, out, err = run("explain", "q")
    assert (code, out) == (0, "")
    assert err.startswith("This session may not search")


def test_json_gives_every_number(run: Run, address: Path) -> None:
    """The hits among them."""
    with serving(address, answering(_EXPLAINED)):
        data = json.loads(run("explain", "q", "--json").out)["data"]
    assert data["candidates"][0]["window"] == [3, 5]
    assert data["candidates"][1]["cosine"] is None
    assert data["candidates"][0]["places"] == {"retries": [3], "数据": [3, 5]}
    assert data["found"]["results"][0]["start_line"] == 3


def test_the_weights_are_those_that_the_daemon_tells() -> None:
    """Whatever they are: the command has none of its own."""
    of_time = _candidate(
        1, foreign=0.5, taken=0.1, expanded=0.5, alternatives=0.5, of_time=True, time_factor=3.0
    )
    told = msgspec.structs.replace(
        _EXPLAINED,
        share_weight=0.11,
        synonyms_weight=0.22,
        translations_weight=0.33,
        candidates=[of_time],
    )
    shown = " ".join(text(told, uncoloured).split())
    assert "0.11 x share of the words" in shown
    assert "synonyms of words with a share of 0.500: 0.22 x that is added" in shown
    assert "raised towards 0.265" in shown
    assert "0.33 x what it holds with translations" in shown
    assert "both count 3 times as much" in shown


def test_a_share_in_another_script_is_raised_to_all_words_at_most() -> None:
    """As the score counts it, whatever both summands are."""
    one = _candidate(1, foreign=1.0, taken=0.9, expanded=1.0, alternatives=1.0)
    shown = text(msgspec.structs.replace(_EXPLAINED, candidates=[one]), uncoloured)
    assert "its share is raised towards 1.000" in " ".join(shown.split())


def test_without_vectors_synonyms_count_as_the_page_says() -> None:
    """How many candidates they found, what a text in another script is given, and why this part of it is shown."""
    found = _candidate(
        1,
        cosine=None,
        meaning=0.0,
        by_words=1.28,
        foreign=1.0,
        expanded=1.0,
        alternatives=1.0,
        chosen="synonyms",
    )
    explanation = msgspec.structs.replace(
        _EXPLAINED,
        assumed_cosine=None,
        translations_weight=0.8,
        by_meaning=0,
        by_synonyms=2,
        candidates=[found, msgspec.structs.replace(found, place=2, cut="max_results")],
    )
    shown = " ".join(text(explanation, uncoloured).split())
    assert "3 by words, 0 by meaning, 2 by synonyms" in shown
    assert (
        "100% in another script: its share is raised towards 0.800, 0.8 x what it holds with translations"
        in shown
    )
    assert "with most of the synonyms" in shown
    assert "2 0.350 - 1.280" in shown
