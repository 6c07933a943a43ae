"""A cross-encoder of a few words, in the files that a published one has."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "roof", "dog", "which", "sits")
INT64, INT32, FLOAT = TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT


def write(
    directory: Path,
    *,
    labels: int = 1,
    kind: int = INT64,
    further: Sequence[str] = (),
    most: int | None = None,
) -> Path:
    """A model that counts the words that a text shares with the question, in the layout of published ones."""
    (directory / "onnx").mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    if most is not None:
        tokenizer.enable_truncation(most)
    tokenizer.save(str(directory / "tokenizer.json"))
    # A word is its own direction; what is no word is none.
    own = np.eye(len(WORDS), dtype=np.float32)
    own[:4] = 0
    to_labels = np.array([[1.0]] if labels == 1 else [[0.0, 1.0, 2.0][:labels]], np.float32)
    constants = [
        numpy_helper.from_array(own, "own"),
        numpy_helper.from_array(np.array([1], np.int64), "words"),
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.array(1, np.float32), "one"),
        numpy_helper.from_array(to_labels, "to_labels"),
    ]

    def node(name: str, inputs: Sequence[str], output: str, **fields: Any) -> onnx.NodeProto:
        return helper.make_node(name, list(inputs), [output], **fields)

    nodes = [
        node("Gather", ["own", "input_ids"], "vectors"),
        node("Cast", ["token_type_ids"], "types", to=FLOAT),
        node("Cast", ["attention_mask"], "mask", to=FLOAT),
        node("Mul", ["types", "mask"], "of_text"),
        node("Sub", ["one", "types"], "others"),
        node("Mul", ["others", "mask"], "of_question"),
        *(
            made
            for side in ("of_text", "of_question")
            for made in (
                node("Unsqueeze", [side, "last"], f"{side}.column"),
                node("Mul", ["vectors", f"{side}.column"], f"{side}.vectors"),
                node("ReduceSum", [f"{side}.vectors", "words"], f"{side}.sum", keepdims=0),
            )
        ),
        node("Mul", ["of_text.sum", "of_question.sum"], "shared"),
        node("ReduceSum", ["shared", "words"], "count", keepdims=1),
        node("MatMul", ["count", "to_labels"], "logits"),
    ]
    names = ["input_ids", "attention_mask", "token_type_ids", *further]
    graph = helper.make_graph(
        nodes,
        "counts",
        [helper.make_tensor_value_info(name, kind, ["texts", "pieces"]) for name in names],
        [helper.make_tensor_value_info("logits", FLOAT, ["texts", labels])],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    file = directory / "onnx" / "model.onnx"
    file.write_bytes(made.SerializeToString())
    return file
