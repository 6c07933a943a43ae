import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text import tokens as text
from tests.awkward.characters import characters
from tests.table import table


@table(
    ("given_text", "expected"),
    [
        ("Hello World", "hello world"),
        ("数据库", "数 据 库"),
        ("用API做", "用 api 做"),
        ("ＡＰＩ　ｶﾀｶﾅ", "api カ タ カ ナ"),
        ("한국어 메모", "한 국 어 메 모"),
        ("々〇", "々 〇"),
        ("Straße", "strasse"),
        ("İstanbul IŞIK ışık", "istanbul isik isik"),
        ("за́мок Ёлка мой", "замок елка мой"),
        ("ọ̀rẹ́ café cafe\u0301", "ore cafe cafe"),
        ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
        ("हिन्दी में", "हिन्दी में"),
        ("می\u200cخواهم שָׁלוֹם", "میخواهم שלום"),
        ("co\u00adop zero\u200bwidth", "coop zero width"),
        ("a🦭b 👍🏽 👩\u200d💻", "a 🦭 b 👍 👩 💻"),
        ("\ue0a0main", "\ue0a0 main"),
        ("├── tree", "tree"),
        ("葛\U000e0100城 1\ufe0f a\u034fb", "葛 城 1 ab"),
    ],
)
def test_keyword_text_sets_cjk_characters_apart(given_text: str, expected: str) -> None:
    """Width and case are folded, and every character of a script without spaces is a word."""
    assert text.fts_text(given_text).split() == expected.split()


def words(keyword_text: str) -> list[str]:
    """What FTS5 makes of it: its tokenizer "ascii" divides at ASCII characters that are neither letters nor digits."""
    return re.findall(r"[0-9a-z\u0080-\U0010ffff]+", keyword_text)


@pytest.mark.long
def test_every_code_point_is_divided_alike_in_texts_questions_and_places() -> None:
    """Alone, inside a word and beside one: the tokens of a text have places, and dividing them again changes nothing.

    Surrogates are no characters: of them nothing is left. FTS5 itself is asked in tests/search/test_query.py.
    """
    for ch in characters():
        code = ord(ch)
        alone = words(text.fts_text(ch))
        assert bool(alone) or not any(map(str.isalnum, text.folded(ch))), hex(code)
        assert not (0xD800 <= code <= 0xDFFF and alone)
        for given_text in (ch, f"ab{ch}cd", f"x {ch} y"):
            divided = words(text.fts_text(given_text))
            assert text.words_of(given_text) == divided, hex(code)
            assert [token for token, _, _ in text.tokens(given_text)] == divided, hex(code)
            assert words(text.fts_text(" ".join(divided))) == divided, hex(code)


def test_marks_that_are_taken_out_beforehand_change_nothing_beside_them() -> None:
    """No combining character composes with fullwidth punctuation: NFKC of both gives the same text."""
    for ch in filter(unicodedata.combining, map(chr, range(0x110000))):
        for mark, plain in zip("，：；！？（）", ",:;!?()", strict=True):
            assert text.fts_text(f"a{mark}{ch}b数") == text.fts_text(f"a{plain}{ch}b数"), (mark, hex(ord(ch)))


@given(st.text())
def test_any_text_is_divided_alike_in_texts_and_places(given_text: str) -> None:
    """Places follow each other and are inside the text; what stands there has the token."""
    found = list(text.tokens(given_text))
    assert [token for token, _, _ in found] == text.words_of(given_text) == words(text.fts_text(given_text))
    ends = [0, *(end for _, _, end in found)]
    for (token, start, end), ended in zip(found, ends, strict=False):
        assert 0 <= start < end <= len(given_text)
        assert start >= ended or end == ended
        assert token in words(text.fts_text(given_text[start:end]))


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("We chose it", [("we", 0, 2), ("chose", 3, 8), ("it", 9, 11)]),
        ("für 数据库 API", [("fur", 0, 3), ("数", 4, 5), ("据", 5, 6), ("库", 6, 7), ("api", 8, 11)]),
        ("cafe\u0301, が", [("cafe", 0, 5), ("が", 7, 8)]),
        ("ﬁn ㎏ ½", [("fin", 0, 2), ("kg", 3, 4), ("1", 5, 6), ("2", 5, 6)]),
        ("\u1112\u1161\u11ab b", [("한", 0, 3), ("b", 4, 5)]),
    ],
)
def test_each_token_has_its_place(given_text: str, expected: list[tuple[str, int, int]]) -> None:
    """In the text as it is written."""
    assert list(text.tokens(given_text)) == expected


@pytest.mark.parametrize("ch", list("中々〇あアーㄅ가ㄱ㐀豈\U00020000\U0003134a"))
def test_cjk_characters_are_known(ch: str) -> None:
    """Han, Kana, Bopomofo and Hangul are indexed by character."""
    assert text.is_cjk(ch)


@pytest.mark.parametrize("ch", list("aé1。、！・ ЖΩ🙂ａ\u3000"))
def test_other_characters_are_not_cjk(ch: str) -> None:
    """Letters of scripts with spaces, punctuation and emoji are not."""
    assert not text.is_cjk(ch)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("", False),
        ("plain English", False),
        ("Где ключ?", False),
        ("用户决定把数据库迁移到 PostgreSQL", True),
        ("He said 你好 and then left for the train", False),
        ("。！？", False),
    ],
)
def test_the_script_of_a_text_is_known(given_text: str, expected: bool) -> None:
    """A text with at least as many CJK characters as other words is a CJK text."""
    assert text.is_mostly_cjk(given_text) is expected


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("", 0.0),
        ("plain English", 0.0),
        ("café", 0.0),
        ("。！？", 0.0),
        ("数据库", 1.0),
        ("用 API 做 2", 0.5),
        ("a b c 猫", 0.25),
    ],
)
def test_the_share_of_a_script_is_known(given_text: str, expected: float) -> None:
    """A CJK character counts as much as another word; punctuation does not count."""
    assert text.cjk_share(given_text) == expected


def test_some_signs_are_kept_and_a_run_of_cjk_is_a_word() -> None:
    """Of names of files, for one; all else is as in the keyword text."""
    assert text.words_and("./-")("Größe: 12.5-a/b 数据库!").split() == ["grosse", "12.5-a/b", "数据库"]
    assert text.words_and("")("12.5-a").split() == ["12", "5", "a"]


@pytest.mark.parametrize(
    ("given_text", "width"), [("", 0), ("abc", 3), ("café", 4), ("数据", 4), ("ab数据", 6), ("🙂", 1)]
)
def test_a_cjk_character_takes_the_room_of_two(given_text: str, width: int) -> None:
    """On a screen, and so in a window of text."""
    assert text.width(given_text) == width


def test_words_are_found_by_how_they_begin() -> None:
    """Not by what is in their middle; signs mean themselves."""
    found = text.words_beginning(["post", "c."]).findall(
        text.fts_text("PostgreSQL compost: posts, cat c.d post")
    )
    assert found == ["postgresql", "posts", "c.d", "post"]


@pytest.mark.parametrize(
    ("given_text", "end", "least", "expected"),
    [
        ("one two", 5, 0, 4),  # before the word that it is in
        ("one two", 4, 0, 4),
        ("one two", 3, 0, 3),
        ("one two", 7, 0, 7),
        ("one two", 9, 0, 9),
        ("我们选了PostgreSQL", 7, 2, 4),
        ("我们选了PostgreSQL", 7, 3, 4),
        ("我们选了PostgreSQL", 7, 4, 7),  # that would be nothing
        ("我们选了PostgreSQL", 3, 0, 3),
        ("oneword", 3, 0, 3),
    ],
)
def test_no_word_is_cut_in_two(given_text: str, end: int, least: int, expected: int) -> None:
    """Where there is another place."""
    assert text.word_end(given_text, end, least) == expected
