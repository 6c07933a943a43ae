import numpy as np
import pytest

from memd.providers.local import e5_int8, e5_onnx
from memd.providers.local.e5_file import BLOCK, Tensors

COLUMNS, ROWS = 2 * BLOCK, 3


@pytest.fixture
def tensors() -> Tensors:
    """A layer's matrices, small ones, and one vector."""
    rng = np.random.default_rng(3)
    found: Tensors = {"eln.w": np.arange(3, dtype=np.float32)}
    for name in ("qkv", "ao", "fi", "fo"):
        found[f"l0.{name}.w"] = rng.integers(-8, 8, (ROWS, 2, BLOCK), np.int8)
        found[f"l0.{name}.s"] = rng.uniform(0.01, 0.1, 2 * ROWS).astype(np.float32)
        found[f"l0.{name}.b"] = rng.uniform(-1, 1, ROWS).astype(np.float32)
    return found


OUTLIERS = np.array([[[1, 40], [0, 63], [31, 32]]], np.int16)


def test_weights_are_rounded_to_a_127th_of_the_largest_of_their_row(tensors: Tensors) -> None:
    """Those of outliers are kept as they are, and count for nothing among the others."""
    made = e5_int8.quantised(tensors, OUTLIERS)
    for at, name in enumerate(("qkv", "fi", "fo", "ao")):
        weights = e5_int8.decoded(tensors, f"l0.{name}")
        assert weights.shape == (ROWS, COLUMNS)
        if name != "ao":
            large = OUTLIERS[0, at]
            assert made[f"l0.{name}.large"].tolist() == large.tolist()
            np.testing.assert_array_equal(made[f"l0.{name}.large.w"], weights[:, large].T)
            rest = made[f"l0.{name}.rest"]
            assert np.flatnonzero(rest == 0).tolist() == large.tolist()
            assert set(rest.tolist()) == {0, 1}
            weights[:, large] = 0
        integers, scales = made[f"l0.{name}.w"], made[f"l0.{name}.s"].astype(np.float32)
        assert integers.dtype == np.int8
        assert np.abs(integers).max(axis=0).tolist() == [127] * ROWS
        np.testing.assert_allclose(scales, np.abs(weights).max(axis=1) / 127, rtol=1e-6)
        wrong = np.abs(integers.T.astype(np.float32) * scales[:, None] - weights)
        assert (wrong <= 0.501 * scales[:, None]).all()


def test_what_is_no_matrix_stays_as_it_is(tensors: Tensors) -> None:
    """Vectors and biases; the fourth matrix has no outliers."""
    made = e5_int8.quantised(tensors, OUTLIERS)
    assert made["eln.w"] is tensors["eln.w"]
    assert made["l0.fo.b"] is tensors["l0.fo.b"]
    assert not {"l0.ao.rest", "l0.ao.large", "l0.ao.large.w"} & made.keys()


def test_the_outliers_are_four_different_inputs_of_each_product() -> None:
    """As the graph and the model have them."""
    outliers = np.load(e5_onnx.OUTLIERS)
    assert outliers.shape == (12, 3, 4)
    assert all(len(set(four.tolist())) == 4 for four in outliers.reshape(-1, 4))
    widths = np.array([384, 384, 1536])[:, None]
    assert ((outliers >= 0) & (outliers < widths)).all()
