import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.providers.local.sanitise import clean, fit

SALUTATION = "\ufdfa"


@pytest.mark.parametrize(
    ("text", "max_bytes", "expected"),
    [
        ("plain", 100, "plain"),
        ("", 100, ""),
        ("abcdef", 3, "abc"),
        ("数据库", 6, "数据"),
        ("数据库", 8, "数据"),
        ("👩🏽", 4, "👩"),
        ("a\ud800b", 100, "a?b"),
        ("\udcff" * 5, 3, "???"),
    ],
)
def test_fit_keeps_whole_characters(text: str, max_bytes: int, expected: str) -> None:
    """The head has at most so many bytes, and no character in part."""
    assert fit(text, max_bytes) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("before\0after", "beforeafter"),
        ("\0", ""),
        (unicodedata.normalize("NFD", "trường học"), "trường học"),
        (f"x{SALUTATION}", "x" + unicodedata.normalize("NFKC", SALUTATION)),
        ("ﬁne print", "ﬁne print"),
        (" \t\n ", " \t\n "),
    ],
)
def test_clean_changes_what_the_engine_cannot_take(text: str, expected: str) -> None:
    """NUL goes, accents join their letters, the long salutation is spelled out, all else stays."""
    assert clean(text, 1000) == expected


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200), st.integers(1, 300))
def test_clean_text_is_safe_for_the_engine(text: str, max_bytes: int) -> None:
    """Whatever comes in, what comes out is valid UTF-8 of bounded size, free of NUL and of U+FDFA."""
    result = clean(text, max_bytes)
    assert len(result.encode()) <= max_bytes
    assert "\0" not in result
    assert SALUTATION not in result


def test_spelling_out_stays_within_the_size() -> None:
    """A text that grows while it is cleaned is cut again."""
    assert len(clean(SALUTATION * 1000, 3000).encode()) <= 3000
