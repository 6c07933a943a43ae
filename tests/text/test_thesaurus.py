import re
from zlib import crc32

from memd.text.thesaurus import FILE, LONGEST_CHINESE, LONGEST_ENGLISH, plain, thesaurus
from memd.text.tokens import fts_text, is_cjk
from tests.bounds import shipped
from tests.text.meanings import meanings


def test_each_line_has_words_of_both_languages_and_stands_once() -> None:
    """In lower case, sorted: so a change is a line of a diff."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    assert len(lines) > 10_000
    for line in lines:
        chinese, english = (side.split(",") for side in line.split("|"))
        assert all(any(map(is_cjk, word)) and " " not in word for word in chinese), line
        assert all(re.fullmatch(r"[a-z][a-z' .-]*[a-z.]|[a-z]|[0-9]+", word) for word in english), line
        assert len({*chinese, *english}) == len(chinese) + len(english), line
        assert line == line.lower()
        assert all(fts_text(word).strip() for word in (*chinese, *english)), line


def test_each_word_is_found_with_all_its_meanings() -> None:
    found = thesaurus()
    for meaning in meanings()[::50]:
        for word in (*meaning.chinese, *meaning.english):
            asked = plain(word)
            assert found.known([asked]) == {asked}
            assert meaning in found.meanings(asked)
            assert all(asked in map(plain, (*one.chinese, *one.english)) for one in found.meanings(asked))


def test_a_word_that_it_does_not_have_has_no_meaning() -> None:
    """Also one with the hash of another."""
    found = thesaurus()
    assert found.known(["xyzzy", "", "房东"]) == {"房东"}
    assert found.known([]) == set()
    assert found.meanings("xyzzy") == []
    hashes = set(found.hashes.tolist())
    twin = next(word for n in range(10**7) if crc32((word := f"q{n}").encode()) in hashes)
    assert found.known([twin]) == {twin}
    assert found.meanings(twin) == []


def test_what_is_looked_for_is_long_enough_for_nearly_all_words() -> None:
    """A longer word is found by none of the shorter ones in it."""
    assert shipped("memd.text.thesaurus.LONGEST_CHINESE") == LONGEST_CHINESE
    assert shipped("memd.text.thesaurus.LONGEST_ENGLISH") == LONGEST_ENGLISH
    words = [word for meaning in meanings() for word in (*meaning.chinese, *meaning.english)]
    longer = [word for word in words if len(word) > LONGEST_CHINESE and is_cjk(word[0])]
    longer += [word for word in words if len(plain(word).split()) > LONGEST_ENGLISH]
    assert len(longer) < len(words) / 100
