from tests.recall.pairs import pairs
from tests.training import languages, talks
from tests.training.pairs import FILES, JOINING_FILES, for_joining, read


def test_every_note_has_its_questions_and_stands_once() -> None:
    """A line that is broken, empty in part or there twice would be trained on unnoticed."""
    trained, kept_back = read()
    every = [*trained, *kept_back]
    assert len(every) == sum(len(file.read_text().splitlines()) for file in FILES) > 1000
    assert all(text.strip() for pair in every for text in (pair.note, pair.near, *pair.questions))
    assert len({pair.note for pair in every}) == len(every)
    assert 0.1 < len(kept_back) / len(every) < 0.25


def test_notes_for_joining_are_no_others() -> None:
    """The first model has learned its own notes by heart, and what is measured must be new to both."""
    joining = for_joining()
    assert len(joining) == sum(len(file.read_text().splitlines()) for file in JOINING_FILES) > 3000
    assert all(text.strip() for pair in joining for text in (pair.note, pair.near, *pair.questions))
    notes = {pair.note for pair in joining}
    assert len(notes) == len(joining)
    assert notes.isdisjoint(pair.note for part in (*read(), pairs()) for pair in part)


def test_the_same_notes_stand_in_all_languages() -> None:
    """Figures of two languages could not be compared otherwise."""
    found = languages.texts()
    assert len(found) == 8
    assert {len(pairs) for pairs in found.values()} == {12}


def test_each_question_about_a_talk_has_a_text_that_holds_its_turn() -> None:
    """Else it would have no right answer in training, or all texts would be one."""
    said = talks.read()
    assert len(said) > 200
    assert len({talk.turns for talk in said}) == len(said)
    for n, talk in enumerate(said):
        assert all(one.question.strip() for one in talk.asked)
        for cut in (talks.as_transcript(talk, n), talks.as_note(talk, n)):
            assert len(cut.parts) > 1
            for texts in (cut.chunks, cut.parts):
                assert all(any(one.turn in held for held in texts.values()) for one in talk.asked)
