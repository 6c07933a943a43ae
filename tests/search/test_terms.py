import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.query import parse
from memd.search.terms import held, names, occurrences, root
from memd.text.tokens import tokens
from tests.bounds import shipped
from tests.table import table


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paint", "painted"), ("paint", "painting"), ("hike", "hiking"), ("hike", "hikes"), ("study", "studies"),
        ("run", "running"), ("plan", "planned"), ("quick", "quickly"), ("database", "databases"), ("stop", "stopped"),
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_root(one: str, other: str) -> None:
    """Plurals, past forms and -ing forms are the same word."""
    assert root(one) == root(other)


@pytest.mark.parametrize("word", ["is", "need", "bring", "king", "class", "2026", "ключ", "数", "a"])
def test_other_words_stay_as_they_are(word: str) -> None:
    """What only looks like an ending is none."""
    assert root(word) == word


def test_tokens_have_their_places() -> None:
    """Words and single CJK characters, folded, where they stand in the text as it was written."""
    assert list(tokens("Ａb 用API做_x")) == [
        ("ab", 0, 2),
        ("用", 3, 4),
        ("api", 4, 7),
        ("做", 7, 8),
        ("x", 9, 10),
    ]


@pytest.mark.parametrize(
    ("text", "term", "places"),
    [
        ("They painted it.", "paint", ["painted"]),
        ("把数据库迁移到", "迁移", ["迁移"]),
        ("把数据，库迁移到", "数据", ["数据"]),
        ("a dairy-free cake, free of dairy", "dairy free", ["dairy-free"]),
        ("MemorySearch.Query", "memorysearch query", ["MemorySearch.Query"]),
        ("nothing here", "cat", []),
        ("scatter", "cat", []),
        ("end of dairy", "dairy free", []),
    ],
)
def test_terms_are_found_where_they_stand(text: str, term: str, places: list[str]) -> None:
    """A word in any of its forms, a phrase whatever stands between its words, nothing inside another word."""
    assert [text[one.start : one.end] for one in occurrences(text, [term])] == places


def test_what_is_held_is_told_by_index() -> None:
    """A term counts once, in whichever text it stands."""
    assert held(["a cat, a cat", "dogs"], ["dog", "cat", "bird"]) == {0, 1}


@given(st.text(), st.lists(st.text(max_size=6), max_size=6))
def test_places_are_within_the_text(text: str, terms: list[str]) -> None:
    """Whatever the text, a place is a stretch of it, and places are in order."""
    found = occurrences(text, terms)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert [one.start for one in found] == sorted(one.start for one in found)


@given(
    st.text(alphabet="ab的数据库ＡＰ,，_ .-'éパ一Paintedgs0", max_size=40),
    st.lists(st.text(alphabet="ab的数据库ＡP paintedgs0一-", max_size=8), max_size=5),
)
def test_what_is_held_is_what_occurs(text: str, terms: list[str]) -> None:
    """The quick way tells the same terms as the places do."""
    assert held([text], terms) == {one.term for one in occurrences(text, terms)}


@table(
    ("text", "proper", "codes"),
    [
        ("When did Thaddeus meet Mrs O'Neill?", ["thaddeus", "neill"], []),
        ("Thaddeus came when?", [], []),  # any word may begin a sentence
        ("I asked. Nobody came? 'Maybe later', said Ingrid", ["ingrid"], []),
        ("where does benedikt live", [], []),
        ("WHERE DOES BENEDIKT LIVE", [], []),
        ("Deploy Barnacle Today", [], []),
        ("what is due on Friday in March", [], []),
        ("which NASA mission", [], []),
        ("Wann kommt der Techniker für den Aufzug?", [], []),  # every noun has a capital letter
        ("what did Inès say in Tromsø", ["ines", "tromsø"], []),
        ("Kubernetes 集群有几个节点？", ["kubernetes"], []),
        ("欧阳医生什么时候来上班？", [], []),
        ("PB-211", [], ["pb 211"]),
        ("what is wrong with pb211 and 2026-02-09 at 10am", [], ["pb211"]),
        ("memory/2026-02-09-notes.md", [], []),
        ('who wrote "a long sentence with 3 numbers"', [], []),
    ],
)
def test_names_are_told_by_capital_letters_and_digits(text: str, proper: list[str], codes: list[str]) -> None:
    """What may be any word is no name."""
    asked = parse(text)
    assert [asked.terms[n] for n in asked.names.proper] == proper
    assert [asked.terms[n] for n in asked.names.codes] == codes


@given(st.text())
def test_names_are_terms(text: str) -> None:
    """Whatever is asked."""
    asked = parse(text)
    assert {*asked.names.proper, *asked.names.codes} <= set(range(len(asked.terms)))
    assert asked.names.missing(range(len(asked.terms))) == ()
    assert asked.names.missing(()) == asked.names.proper + asked.names.codes


def test_a_phrase_of_four_words_is_no_code() -> None:
    """It is a path or a quotation, whatever digits are in it."""
    most = "nv" + " 55" * (shipped("memd.search.terms._CODE_WORDS") - 1)
    assert names("", ["nv 5582", most, f"{most} 1", "5582", "nv"]).codes == (0, 1)


def test_whether_a_word_begins_a_sentence_is_told_by_what_is_before_it() -> None:
    """By so many characters, blanks and quotation marks among them; a name is one within a sentence."""
    look_back = shipped("memd.search.terms.LOOK_BACK")
    for blanks, proper in ((look_back - 1, ["marchetti"]), (look_back, [])):
        asked = parse("and then" + " " * blanks + "Marchetti said so")
        assert [asked.terms[n] for n in asked.names.proper] == proper
