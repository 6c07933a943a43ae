"""What Chinese in Latin letters is, and what words of other languages and names in programs are."""

import pytest

from memd.redact.passwords.pinyin import is_pinyin
from memd.redact.words.chinese_syllables import fewest_syllables


@pytest.mark.parametrize(
    ("letters", "count"),
    [
        ("xian", 1),
        ("xianan", 2),
        ("zhuangzi", 2),
        ("database", 4),
        ("lvse", 2),
        ("hello", 0),
        ("", 0),
        ("nihaox", 0),
    ],
)
def test_letters_are_divided_into_as_few_syllables_as_possible(letters: str, count: int) -> None:
    """None, where a letter is left over; "v" stands for "ü"."""
    assert fewest_syllables(letters) == count


@pytest.mark.parametrize(
    "word",
    [
        "wanshangchixigua",
        "zhongguohenda",
        "woaixuexi_zhenhao",
        "Woaixuexi.zhenhao",
        "iloveguangzhou",
        "meiyoumimadewangzhan",
    ],
)
def test_a_sentence_of_chinese_is_pinyin(word: str) -> None:
    """In one word, in parts, and behind "ilove"."""
    assert is_pinyin(word)


@pytest.mark.parametrize(
    "word",
    [
        "database",  # four syllables, and too few letters
        "zhongguoren",  # three syllables
        "wodejiadian",  # eleven letters
        "lanadelapapade",  # as many letters for each syllable as Italian has
        "administrate",
        "QuantizeRange",
        "time_remaining",
        "nihaoya_huang",  # four syllables in parts
        "iloveparis",
        "ilovebeer",
        "ilovemama",
        "qingshurumima",
        "yonghumingcheng",
        "mimaguanlixitong",
        "woaixuexi_hello",
    ],
)
def test_what_is_no_sentence_of_chinese_is_none(word: str) -> None:
    """Words and names whose letters are syllables, too few of them, and what forms say of passwords."""
    assert not is_pinyin(word)
