"""What is read of a file for another store."""

from memd.store import publication


def test_terms_are_stems_and_pairs_with_their_places() -> None:
    """A stem counts in text and context; a pair is of two CJK characters, or of a number and one, that are beside each other."""
    terms, tokens = publication.term_reader().terms(("Deploys deployed 3月 部署", "deploying"))
    assert tokens == 7
    assert terms == {
        "deploi": [0, 1, 7],
        "3": [2],
        "月": [3],
        "部": [4],
        "署": [5],
        "3 月": [2],
        "月 部": [3],
        "部 署": [4],
    }


def test_a_text_without_words_has_no_terms() -> None:
    """Nothing finds it by words."""
    assert publication.term_reader().terms(("...", "")) == ({}, 0)
