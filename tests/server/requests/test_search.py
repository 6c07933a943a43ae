from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import FoundHit
from memd.server.requests.search import STUMP_CHARS, citation, clamp, footer, is_cited
from tests.bounds import shipped


def hit(snippet: str, path: str = "memory/a.md", start_line: int = 3) -> FoundHit:
    end_line = start_line + snippet.count("\n")
    return FoundHit(path, start_line, end_line, 0.5, snippet, "memory")


def no_footer(_: FoundHit) -> str:
    return ""


def test_hits_that_fit_are_as_they_were() -> None:
    """What has room is not touched."""
    hits = [hit("a" * 100), hit("b" * 100)]
    assert clamp(hits, 200, no_footer) == hits


def test_the_last_hit_is_cut_at_a_line() -> None:
    """The hit that the room ends in is cut after a line, and says which line it ends on."""
    hits = [
        hit("a" * 100),
        hit("one line of the second hit, long enough\nanother line of it, of some length\nthe third"),
    ]
    [first, second] = clamp(hits, 180, no_footer)
    assert first == hits[0]
    assert second.snippet == "one line of the second hit, long enough\nanother line of it, of some length"
    assert (second.start_line, second.end_line) == (3, 4)


def test_no_stump_is_shown() -> None:
    """A hit of which only a few characters would be left is dropped, and nothing comes after it."""
    hits = [hit("a" * 100), hit("b" * 100), hit("c" * 10)]
    least = shipped("memd.server.requests.search.STUMP_CHARS")
    assert clamp(hits, 100 + least - 1, no_footer) == hits[:1]
    assert [len(one.snippet) for one in clamp(hits, 100 + least, no_footer)] == [100, least]


def test_footers_have_room() -> None:
    """What stands below each snippet counts."""
    one = hit("a" * 100)
    assert clamp([one], 100 + len(footer(one)), footer) == [one]
    [short] = clamp([one], 99 + len(footer(one)), footer)
    assert len(short.snippet) == 99
    few = hit("a" * (STUMP_CHARS - 1))
    assert clamp([few], STUMP_CHARS - 1 + len(footer(few)), footer) == [few]


def test_a_long_footer_keeps_only_its_own_hit_out() -> None:
    """What stands below it has no room; a hit after it has, and is shown."""
    long, short = hit("a" * 100, path="x" * 160), hit("harbour", path="s.md")
    assert clamp([long, short], 200, footer) == [short]
    assert clamp([short, long, short], 200, footer) == [short, short]


def test_visible_characters_stay_whole() -> None:
    """A family of emoji is shown whole or not at all."""
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    [short] = clamp([hit("数" * 50 + family)], 53, no_footer)
    assert short.snippet == "数" * 50


def test_a_cut_turn_keeps_its_lines() -> None:
    """A hit in a transcript, where one line holds many, goes on to cite all of them."""
    said = FoundHit("sessions/codex/1.jsonl", 7, 9, 0.5, "a turn of several lines\n" * 10, "sessions")
    [short] = clamp([said], 100, no_footer)
    assert (short.start_line, short.end_line) == (7, 9)


snippets = st.text(st.sampled_from("ab 数\n\N{COMBINING ACUTE ACCENT}"), min_size=1, max_size=200)


@given(st.lists(snippets.map(hit), max_size=12), st.integers(0, 600), st.integers(0, 12))
def test_room_is_kept_and_more_hits_only_append(hits: list[FoundHit], most: int, fewer: int) -> None:
    """No answer is longer than allowed, and a larger number of hits only appends."""
    kept = clamp(hits, most, footer)
    assert sum(len(one.snippet) + len(footer(one)) for one in kept) <= most
    some = clamp(hits[:fewer], most, footer)
    assert kept[: len(some)] == some
    assert [one.path for one in kept] == [one.path for one in hits[: len(kept)]]


def test_a_citation_names_file_and_lines() -> None:
    """One line is cited as one."""
    assert citation(hit("one")) == "memory/a.md#L3"
    assert citation(hit("one\ntwo")) == "memory/a.md#L3-L4"


def test_citations_are_for_direct_chats_unless_told() -> None:
    """Auto is on in direct chats; on and off hold everywhere."""
    assert [is_cited("auto", direct=direct) for direct in (True, False)] == [True, False]
    assert [is_cited("on", direct=direct) for direct in (True, False)] == [True, True]
    assert [is_cited("off", direct=direct) for direct in (True, False)] == [False, False]
