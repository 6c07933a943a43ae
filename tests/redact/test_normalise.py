"""Texts as a reader sees them."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.redact.normalise import decoded, folded, without_repeats
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("password", "password"),
        ("密码：abc", "密码：abc"),
        ("ｐａｓｓＷｏｒｄ：１２ａ", "passWord：12a"),
        ("pass\u200bword\ufeff:\u00a0x", "password: x"),
        ("\u200b\u200b", ""),
        ("pass\u2066word\ufe0f\u202f:\u3000x", "password : x"),
        ("٠١٢٣٤٥٦٧٨٩ ۰۱۲۳۴۵۶۷۸۹ ०१२३४५६७८९ ๐๑๒๓๔๕๖๗๘๙", "0123456789 0123456789 0123456789 0123456789"),
        ("𝟎𝟗 𝟘𝟡 𝟢𝟫 𝟬𝟵 𝟶𝟿 ②Ⅳ½", "09 09 09 09 09 ②Ⅳ½"),
    ],
)
def test_a_text_is_folded(text: str, plain: str) -> None:
    """Letters and digits only; punctuation stays as it is."""
    assert folded(text).text == plain


def test_a_digit_of_another_script_becomes_the_one_of_its_value() -> None:
    """Whatever is changed into a digit is one, as Unicode has it."""
    signs = [chr(code) for code in range(sys.maxunicode + 1)]
    changed = {sign: plain for sign in signs if (plain := folded(sign).text) != sign and plain.isdecimal()}
    assert len(changed) > 200
    assert changed == {sign: str(unicodedata.decimal(sign)) for sign in changed}


def test_every_sign_without_a_width_is_left_out_and_every_blank_is_one() -> None:
    """As Unicode has them, of whatever version this Python knows."""
    signs = [chr(code) for code in range(sys.maxunicode + 1)]
    unseen = [sign for sign in signs if unicodedata.category(sign) == "Cf"]
    blanks = [sign for sign in signs if unicodedata.category(sign) == "Zs"]
    assert {folded(sign).text for sign in unseen} == {""}
    assert {folded(sign).text for sign in blanks} == {" "}


@given(st.text(alphabet="ab１Ａ\u200b\ufeff\u2066\U000e0100 \u00a0\u202f\u3000密", max_size=30))
def test_every_sign_knows_its_place(text: str) -> None:
    """What stands there in the text is the same sign, folded or not."""
    plain = folded(text)
    places = [plain.place(at) for at in range(len(plain.text))]
    assert places == sorted(set(places))
    assert [folded(text[place]).text for place in places] == list(plain.text)


def test_escapes_in_escapes_are_taken_out_so_often() -> None:
    """A sign that is escaped once more stays escaped once."""
    levels = shipped("memd.redact.normalise._LEVELS")
    for depth in range(1, levels + 2):
        text = "key%" + "25" * (depth - 1) + "3D1"
        found = [plain.text for _, plain in decoded(text, [(0, len(text))])]
        assert len(found) == min(depth, levels)
        assert (found[-1] == "key=1") is (depth <= levels)


@pytest.mark.parametrize(("more", "parts"), [(0, 1), (1, 2)])
def test_only_lines_near_an_escape_are_decoded(more: int, parts: int) -> None:
    """Lines with escapes, and what stands between two of them if it is short; not what is before, between or after."""
    between = "\n" + "x" * (shipped("memd.redact.normalise._MOST_BETWEEN") - 2 + more) + "\n"
    text = f"nothing\na%3Db{between}c&amp;d %20\nnothing"
    found = [(start, plain.text) for start, plain in decoded(text, [(0, len(text))])]
    assert len(found) == parts
    assert "".join(said for _, said in found).replace(between, "") == "a=bc&d  "
    assert found[0][0] == len("nothing\n")
    assert found[-1][1].endswith("c&d  ")


@given(st.text(alphabet="ab%\\u003dx5&amp;#6 \n", max_size=40))
def test_what_is_decoded_knows_its_place(text: str) -> None:
    """Of any part, what stands there decodes to the same."""
    for offset, plain in decoded(text, [(0, len(text))]):
        if plain.under is not None and plain.under.under is None:
            for at in range(len(plain.text)):
                start, end = plain.span(at, at + 1)
                stood = text[offset + start : offset + end]
                again = [one.text for _, one in decoded(f"{stood}a", [(0, len(stood) + 1)])]
                assert plain.text[at] == (again[0][:-1] if again else stood)


@given(text=st.text("ab\u200b\u00ad", max_size=14), start=st.integers(0, 14), length=st.integers(0, 14))
def test_a_part_of_a_text_is_found_in_what_was_made_of_it(text: str, start: int, length: int) -> None:
    """Where what stands before its ends is as long without what is left out."""
    start = min(start, len(text))
    end = min(start + length, len(text))
    expected = (len(folded(text[:start]).text), len(folded(text[:end]).text))
    assert folded(text).inner([(start, end)]) == [expected]


@pytest.mark.parametrize("piece", ["a", "ab", "password: ", "密码 %3D ", "".join(map(str, range(150)))])
def test_what_repeats_itself_is_left_out(piece: str) -> None:
    """All but so much at either end, and each sign knows its place."""
    kept = shipped("memd.redact.normalise.REPEATS_KEPT")
    text = "before it\n" + piece * (60_000 // len(piece)) + "and behind it"
    shorter, repeats = without_repeats(text)
    assert [repeat.period for repeat in repeats] == [len(piece)]
    assert len(shorter.text) + len(piece) * repeats[0].times == len(text)
    assert 2 * kept <= len(shorter.text) <= 5 * kept
    assert all(text[shorter.place(at)] == sign for at, sign in enumerate(shorter.text))
    gap = repeats[0].gap
    left_out = shorter.text[gap - len(piece) : gap] * repeats[0].times
    assert text == shorter.text[:gap] + left_out + shorter.text[gap:]


@pytest.mark.parametrize("before", [0, 9, 300, 371, 372, 500])
def test_a_stretch_is_left_out_where_its_line_stands_just_before_it(before: int) -> None:
    """What is between ends the first stretch, which is too short, and not the second."""
    text = "said again\n" * before + "and something else\n" + "said again\n" * 3_000
    shorter, repeats = without_repeats(text)
    assert repeats
    assert len(shorter.text) < len(text) - 15_000


@pytest.mark.parametrize("more", [0, 1])
def test_what_repeats_itself_for_a_short_way_stays(more: int) -> None:
    """Neither a short stretch nor a long piece is left out."""
    least = shipped("memd.redact.normalise._LEAST_REPEATED")
    most = shipped("memd.redact.normalise._MOST_REPEATED")
    assert bool(without_repeats("x" * (least - 1 + more))[1]) is bool(more)
    piece = "".join(map(chr, range(0x4E00, 0x4E00 + most + 1 - more)))
    assert bool(without_repeats(piece * 60)[1]) is bool(more)
    assert not without_repeats("ab" * 5_000 + "c" + "ab" * 5_000)[1]


@given(st.lists(st.tuples(st.text("ab\n密", min_size=1, max_size=5), st.integers(1, 9_000)), max_size=4))
def test_a_text_without_repeats_knows_its_places(pieces: list[tuple[str, int]]) -> None:
    """However stretches of it follow one another."""
    text = "".join(piece * times for piece, times in pieces)
    shorter, repeats = without_repeats(text)
    assert len(text) - len(shorter.text) == sum(repeat.period * repeat.times for repeat in repeats)
    assert all(text[shorter.place(at)] == sign for at, sign in enumerate(shorter.text))
