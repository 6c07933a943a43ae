"""From the bytes of a note to its text, whatever editor saved it."""

import codecs
from bisect import bisect_left, bisect_right
from itertools import accumulate
from random import Random
from string import digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd_client.note_encoding import DecodedNote, decode_ends, decode_note
from tests.bounds import shipped

SIMPLIFIED = "# 周会\n\n- 张三负责数据库迁移，截止日期是星期五。\n- 爸的降压药换成缬沙坦了，每天早上一粒。\nport 5433 不变\n"
TRADITIONAL = "# 週會\n\n我們決定把資料庫移到新的機器，因為舊的空間不夠。這個月要完成，下個月不能再等了。\n"

OTHERS = {
    "iso-8859-1": "Der Schlüssel für die Gäste hängt übers Wochenende hinter der Tür, größere Öfen prüft Jörg.\nZurück über Köln\n",
    "cp1252": "„Zurück“ – déjà vu à l’hôtel, côté forêt: 5 €.\n",
    "cp1250": "„Zażółć gęślą jaźń” – powiedział, że później.\n",
    "cp1251": "Ключ от квартиры лежит у соседки, вернуть до пятницы.\n",
    "koi8-r": "Ключ от квартиры лежит у соседки, вернуть до пятницы.\n",
    "shift_jis": "# 会議\n\n来週の金曜日までにデータベースを移行する。担当は田中さんです。\n",
    "euc-jp": "# 会議\n\n来週の金曜日までにデータベースを移行する。担当は田中さんです。\n",
    "euc-kr": "# 회의\n\n다음 주 금요일까지 데이터베이스를 옮기기로 했다. 담당자는 김 대리.\n",
    "big5": TRADITIONAL,
    "tis-620": "กุญแจบ้านอยู่กับเพื่อนบ้าน คืนก่อนวันศุกร์\n",
    "utf-16-le": "下周五之前迁移数据库，负责人是张三。\n",
    "utf-16-be": "下周五之前迁移数据库，负责人是张三。\n",
}


@pytest.mark.parametrize("text", [SIMPLIFIED, TRADITIONAL, SIMPLIFIED * 500, "好的，知道了"])
def test_chinese_that_windows_saved(text: str) -> None:
    """GBK and GB18030 are read, with every kind of line end; a first mark is no part of the text."""
    for encoding in ("gbk", "gb18030"):
        for end in ("\n", "\r\n", "\r"):
            ended = text.replace("\n", end)
            assert decode_note(ended.encode(encoding)) == DecodedNote(ended, "gb18030")
    assert decode_note(f"\ufeff{text}".encode("gb18030")) == DecodedNote(text, "gb18030")


def test_characters_that_only_gb18030_has() -> None:
    """Four bytes a character, with digits among them."""
    text = f"{SIMPLIFIED}😀 𠮷野家 café\n"
    assert decode_note(text.encode("gb18030")) == DecodedNote(text, "gb18030")


@pytest.mark.parametrize(("encoding", "text"), OTHERS.items())
def test_other_encodings_are_not_taken_for_chinese(encoding: str, text: str) -> None:
    """Nor is a text that is valid GB18030 by chance; its ASCII is left, and that something is missing."""
    raw = text.encode(encoding)
    assert decode_note(raw) == DecodedNote(raw.decode(errors="replace"), "utf-8", is_lossy=True)


def test_most_of_these_would_be_valid() -> None:
    """So that it is the characters which decide."""
    valid = []
    for encoding, text in OTHERS.items():
        try:
            text.encode(encoding).decode("gb18030")
        except UnicodeDecodeError:
            continue
        valid.append(encoding)
    assert {"shift_jis", "euc-jp", "euc-kr", "big5"} <= set(valid)


def test_damaged_utf8_is_not_taken_for_chinese() -> None:
    """Of a Chinese text that was cut at any byte, or has lost one, all other characters stay."""
    raw = SIMPLIFIED.encode()
    for at in range(len(raw)):
        for damaged in (raw[:at], raw[:at] + raw[at + 1 :]):
            assert decode_note(damaged).text == damaged.decode(errors="replace")


def test_random_bytes_are_not_taken_for_chinese() -> None:
    """Of any length."""
    random = Random(5)
    for _ in range(300):
        raw = random.randbytes(random.randrange(1, 400))
        assert decode_note(raw).encoding != "gb18030"


def test_one_word_is_not_enough() -> None:
    """Two common characters may be chance."""
    assert decode_note("你好".encode("gbk")).is_lossy
    assert decode_note("你好啊".encode("gbk")).text == "你好啊"


def test_a_program_that_appends_utf8() -> None:
    """Both parts are read; a single Chinese character that would be another one in UTF-8 belongs to the older part."""
    older = f"{SIMPLIFIED}## 一\n"
    assert "一".encode("gbk").decode() == "һ"
    raw = older.encode("gbk") + "- 10:15 agent wrote: 明天开会，带上报告 café\n".encode()
    expected = f"{older}- 10:15 agent wrote: 明天开会，带上报告 café\n"
    assert decode_note(raw) == DecodedNote(expected, "gb18030")


def test_one_invalid_byte_behind_much_chinese() -> None:
    """All lines must be valid: what cannot be GB18030 is not, wherever it stands."""
    raw = SIMPLIFIED.encode("gbk") * 500 + b"\xff\n"
    assert decode_note(raw) == DecodedNote(raw.decode(errors="replace"), "utf-8", is_lossy=True)


def test_the_beginning_decides() -> None:
    """Of what is not UTF-8, however much of it follows."""
    most = shipped("memd_client.note_encoding._TESTED_CHARS")
    korean, chinese = "데이터베이스를".encode("euc-kr"), "我们的时间".encode("gbk")
    assert decode_note(chinese * (most // 5 + 1) + korean * most).encoding == "gb18030"
    assert decode_note(korean * (most // 7 + 1) + chinese * most).encoding == "utf-8"
    # What is common among half as many would be enough.
    assert decode_note(chinese * (most * 35 // 100 // 5) + korean * most).encoding == "utf-8"


def test_marks() -> None:
    """A byte order mark decides, also where the rest is invalid."""
    assert decode_note(codecs.BOM_UTF8 + "日记".encode()) == DecodedNote("日记", "utf-8")
    assert decode_note(codecs.BOM_UTF8 + SIMPLIFIED.encode("gbk")).is_lossy
    assert decode_note("日记".encode("utf-16")) == DecodedNote("日记", "utf-16")
    assert decode_note(codecs.BOM_UTF16_BE + "日".encode("utf-16-be") + b"\0") == DecodedNote(
        "日\ufffd", "utf-16", is_lossy=True
    )


@pytest.mark.parametrize(
    "parts",
    [
        [(SIMPLIFIED * 3, "utf-8")],
        [("\ufeff" + SIMPLIFIED * 3, "utf-8")],
        [("Ключ от квартиры 😀 лежит у соседки\n" * 4, "utf-8")],
        [(SIMPLIFIED * 3, "gbk")],
        [("\ufeff" + SIMPLIFIED * 3, "gb18030")],
        [(SIMPLIFIED.replace("\n", "") * 3, "gbk")],
        [(f"{SIMPLIFIED}😀𠮷野家我们的时间 café\n" * 3, "gb18030")],
        [(SIMPLIFIED * 2, "gbk"), ("- 10:15 agent wrote: 明天开会 café，带上报告\n" * 2, "utf-8")],
        [("- 10:15 agent wrote: 明天开会 café，带上报告\n" * 2, "utf-8"), (SIMPLIFIED * 2, "gbk")],
        [(f"\ufeff{SIMPLIFIED}😀\n" * 3, "utf-16-le")],
        [(f"\ufeff{SIMPLIFIED}😀\n" * 3, "utf-16-be")],
    ],
    ids=lambda parts: "+".join(f"{encoding} {text[:6]!r}" for text, encoding in parts),
)
def test_both_ends_are_decoded_as_the_whole_is(parts: list[tuple[str, str]]) -> None:
    """Wherever the middle is taken out; of a character that is cut nothing is left, and the last byte is there."""
    encoded = [letter.encode(encoding) for text, encoding in parts for letter in text]
    text, raw = "".join(text for text, _ in parts), b"".join(encoded)
    starts = list(accumulate(map(len, encoded), initial=0))
    third = len(raw) // 3 & ~1
    for at in range(third, 2 * third):
        first, _ = decode_ends(raw[:at], raw[2 * third :])
        assert first == text[: bisect_right(starts, at) - 1].removeprefix("\ufeff")
    for at in range(third, 2 * third, 2):
        _, last = decode_ends(raw[:third], raw[at:])
        # A digit may be a byte of a character in GB18030.
        assert last.lstrip(digits) == text[bisect_left(starts, at) :].lstrip(digits)


def test_ends_in_another_encoding_keep_their_ascii() -> None:
    """As the whole would."""
    raw = OTHERS["iso-8859-1"].encode("iso-8859-1")
    assert decode_ends(raw[:20], raw[-20:]) == (
        raw[:20].decode(errors="replace"),
        raw[-20:].decode(errors="replace"),
    )


@settings(deadline=None)
@given(st.text())
def test_utf8_is_utf8(text: str) -> None:
    """Whatever it says, also characters that stand for errors."""
    if text.startswith("\ufeff"):
        return
    assert decode_note(text.encode("utf-8", "replace")).text.encode() == text.encode("utf-8", "replace")


@settings(deadline=None)
@given(st.binary(max_size=64), st.sampled_from((b"", SIMPLIFIED.encode("gbk"))))
def test_any_bytes_are_valid_text(raw: bytes, before: bytes) -> None:
    """With as many lines as the bytes have."""
    decoded = decode_note(before + raw)
    decoded.text.encode()
    if decoded.encoding != "utf-16":
        assert decoded.text.count("\n") == (before + raw).count(b"\n")
