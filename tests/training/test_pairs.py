from tests.training import languages
from tests.training.pairs import FILES, read


def test_every_note_has_its_questions_and_stands_once() -> None:
    """A line that is broken, empty in part or there twice would be trained on unnoticed."""
    trained, kept_back = read()
    every = [*trained, *kept_back]
    assert len(every) == sum(len(file.read_text().splitlines()) for file in FILES) > 1000
    assert all(text.strip() for pair in every for text in (pair.note, pair.near, *pair.questions))
    assert len({pair.note for pair in every}) == len(every)
    assert 0.1 < len(kept_back) / len(every) < 0.25


def test_the_same_notes_stand_in_all_languages() -> None:
    """Figures of two languages could not be compared otherwise."""
    found = languages.texts()
    assert len(found) == 8
    assert {len(pairs) for pairs in found.values()} == {12}
