from pathlib import Path

import numpy as np
import pytest

from memd.providers.local import bundled_model
from memd.providers.local.e5_file import BLOCK, ZERO, E5File, UnreadableModel


@pytest.fixture(scope="module")
def model() -> E5File:
    """The bundled model."""
    return E5File(bundled_model.model_file())


def test_the_model_has_the_size_that_is_promised(model: E5File) -> None:
    """Its vectors, its layers, and how many pieces it reads at once."""
    assert (model.width, model.layers, model.heads, model.longest) == (bundled_model.DIMENSIONS, 12, 12, 512)


def test_a_matrix_has_a_scale_for_each_block_and_a_bias_for_each_row(model: E5File) -> None:
    """The shapes that are promised."""
    tensors = model.tensors()
    for name in [name for name in tensors if f"{name[:-2]}.s" in tensors and name.endswith(".w")]:
        rows, blocks, size = tensors[name].shape
        assert size == BLOCK
        assert tensors[f"{name[:-2]}.s"].shape == (rows * blocks,)
        assert tensors[f"{name[:-2]}.b"].shape == (rows,)


def test_weights_are_those_of_the_file(model: E5File) -> None:
    """A block, packed by hand, is in the file."""
    block = [int(weight) + ZERO for weight in model.tensors()["l0.ao.w"][0, 0]]
    half = BLOCK // 2
    assert (
        bytes(block[at] | block[at + half] << 4 for at in range(half))
        in bundled_model.model_file().read_bytes()
    )


def test_a_piece_at_another_place_is_another_row(model: E5File) -> None:
    """Word and position add up."""
    rows = model.embeddings(np.array([5, 5, 9]))
    assert rows.shape == (3, model.width)
    assert not np.allclose(rows[0], rows[1])
    np.testing.assert_allclose(rows[:1], model.embeddings(np.array([5])))


@pytest.mark.parametrize("size", [4, 200, 100_000])
def test_a_file_that_was_cut_off_is_no_model(tmp_path: Path, size: int) -> None:
    """It is told by its name."""
    with bundled_model.model_file().open("rb") as file:
        tmp_path.joinpath("cut").write_bytes(file.read(size))
    with pytest.raises(UnreadableModel, match="cut is not a model"):
        E5File(tmp_path / "cut")


def test_another_file_is_no_model(tmp_path: Path) -> None:
    """It does not begin as one."""
    tmp_path.joinpath("other").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(UnreadableModel, match="does not begin"):
        E5File(tmp_path / "other")
