"""Words of Chinese in Latin letters, and Korean typed with Latin letters."""

from memd.redact.values import randomness, secret_candidates
from memd.redact.values.pinyin_and_korean import is_romanised, is_typed_korean
from tests.bounds import shipped
from tests.table import table


@table(
    ("word", "is_one"),
    [
        ("hua-duo-3a", True),
        ("hualihua08", True),
        ("mei-you-ni-de-1225", True),
        ("guan-guan-ju-jiu", True),
        ("lvdeng_1tiao", True),
        ("guan-guan", False),
        ("xiaoming", False),
        ("beijing-xiaoming2", False),  # a place
        ("banana-3", False),
        ("release-2024", False),
        ("time-zone-2", False),
        ("main_menu_2", False),
    ],
)
def test_words_of_chinese_are_told_by_their_syllables(word: str, *, is_one: bool) -> None:
    """With a digit, or in parts."""
    assert is_romanised(word) is is_one


def test_few_syllables_are_no_words() -> None:
    """One more syllable, and they are."""
    least = int(shipped("memd.redact.values.pinyin_and_korean._LEAST_SYLLABLES"))
    assert is_romanised("qiang" * least + "7")
    assert not is_romanised("qiang" * (least - 1) + "7")
    parts = int(shipped("memd.redact.values.pinyin_and_korean._LEAST_PARTS"))
    assert is_romanised("-".join(["qiang"] * parts))
    assert not is_romanised("-".join(["qiang"] * (parts - 1)))


@table(
    ("word", "is_one"),
    [
        ("qhdks!23", True),
        ("dkssud!77", True),
        ("wlfldtks", True),
        ("gksrmfdudxk", True),
        ("world", False),
        ("rock22", False),
        ("docker", False),
        ("tomorrow1", False),
    ],
)
def test_korean_is_told_by_the_syllables_that_its_letters_give(word: str, *, is_one: bool) -> None:
    """On a keyboard with consonants on the left and vowels on the right."""
    assert is_typed_korean(word) is is_one


def test_usual_pairs_of_letters_are_no_korean() -> None:
    """A word of another language gives syllables by chance."""
    most = float(shipped("memd.redact.values.pinyin_and_korean._MOST_USUAL"))
    assert randomness.usual_share("dkssud") < most <= randomness.usual_share("world")
    least = int(shipped("memd.redact.values.pinyin_and_korean._LEAST_TYPED"))
    assert is_typed_korean("qhdks"[:least])
    assert not is_typed_korean("qhdk"[: least - 1])


def test_such_a_word_is_likely_a_password() -> None:
    """If it has enough characters."""
    least = int(shipped("memd.redact.values.secret_candidates._LEAST_TYPED"))
    word = "qhdks1"[:least]
    found, shorter = secret_candidates.password(word, 0), secret_candidates.password(word[:-1], 0)
    assert found is not None
    assert found.grade == "likely"
    assert shorter is None
