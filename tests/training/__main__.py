"""Trains the bundled model: `python -m tests.training` in an environment that also has torch.

Writes memd/providers/local/e5-small-tuning.npy; then run `python -m tests.training.model_files`. It takes some minutes
on two cores with bfloat16.

Trained is a factor of each row of a matrix and whatever vectors are added (102,144 numbers); the matrices keep their 4 bits. A
question is to be closer to its note than to all other notes of a batch, and to all that are near (InfoNCE: van den Oord et al.
2018). The mean of several runs is written, which finds more than each of them (model soups: Wortsman et al. 2022).
"""

import argparse
import random
import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from memd.providers.local import bundled_model, e5_int8
from memd.providers.local.e5_file import BIAS, MATRICES, NORMS, SCALES, E5File
from memd.providers.local.unigram_tokenizer import UnigramTokenizer
from tests.training.pairs import NotePair, read

EPOCHS = 2
BATCH = 32  # notes
RATE = 1e-3
WARM_UP = 10  # steps
TEMPERATURE = 0.04
LONGEST = 200  # pieces of a text that are trained on
TOGETHER = 32  # texts of similar length that are computed at once
SEEDS = (1, 2)  # of the runs


class TrainableE5:
    """The model with weights in bfloat16, and what is trained in float32."""

    def __init__(self, file: E5File) -> None:
        self._file, self._tokenizer = file, UnigramTokenizer(file.vocabulary)
        tensors = file.tensors()
        self._weights = {
            f"l{layer}.{name}": torch.from_numpy(e5_int8.decoded(tensors, f"l{layer}.{name}")).bfloat16()
            for layer in range(file.layers)
            for name in MATRICES
        }
        self.trained = {}
        for name, values in tensors.items():
            if name.endswith(SCALES):
                self.trained[name] = torch.ones(len(tensors[name.removesuffix(SCALES) + BIAS]))
            elif values.dtype == np.float32:
                self.trained[name] = torch.from_numpy(np.array(values))
        self._before = {name: values.clone() for name, values in self.trained.items()}
        for values in self.trained.values():
            values.requires_grad_(True)

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Of texts with their prefixes; shape (texts, width), each of length 1."""
        pieces = [self._pieces(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(pieces[at]))
        rows: list[torch.Tensor] = [torch.empty(0)] * len(texts)
        for begin in range(0, len(order), TOGETHER):
            some = order[begin : begin + TOGETHER]
            for at, row in zip(some, self._computed([pieces[at] for at in some]), strict=True):
                rows[at] = row
        return torch.stack(rows)

    def changes(self) -> NDArray[np.float32]:
        """What memd.providers.local.e5_onnx.tuned takes."""
        changed = [(values.detach() - self._before[name]).numpy() for name, values in self.trained.items()]
        return np.concatenate(changed)

    def _pieces(self, text: str) -> list[int]:
        vocabulary = self._file.vocabulary
        return [vocabulary.begin, *self._tokenizer.ids(text)[:LONGEST], vocabulary.end]

    def _computed(self, texts: list[list[int]]) -> torch.Tensor:
        model, width = self._file, self._file.width
        longest = max(map(len, texts))
        values = torch.zeros(len(texts), longest, width)
        there = torch.zeros(len(texts), longest, dtype=torch.bool)
        for row, pieces in enumerate(texts):
            values[row, : len(pieces)] = torch.from_numpy(model.embeddings(np.array(pieces)))
            there[row, : len(pieces)] = True
        heads = (len(texts), longest, model.heads, width // model.heads)
        values = self._normalised(values, "eln")
        for layer in range(model.layers):
            name = f"l{layer}"
            query, key, value = (
                part.view(heads).transpose(1, 2)
                for part in self._product(values, f"{name}.qkv").split(width, -1)
            )
            attended = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=there[:, None, None, :]
            )
            attended = self._product(attended.transpose(1, 2).reshape(values.shape), f"{name}.ao")
            values = self._normalised(attended + values, f"{name}.{NORMS[0]}")
            outer = self._product(functional.gelu(self._product(values, f"{name}.fi")), f"{name}.fo")
            values = self._normalised(outer + values, f"{name}.{NORMS[1]}")
        weights = there[..., None].float()
        return functional.normalize((values * weights).sum(1) / weights.sum(1), dim=-1)

    def _product(self, values: torch.Tensor, matrix: str) -> torch.Tensor:
        product = (values.bfloat16() @ self._weights[matrix].T).float()
        return product * self.trained[matrix + SCALES] + self.trained[matrix + BIAS]

    def _normalised(self, values: torch.Tensor, norm: str) -> torch.Tensor:
        trained = self.trained
        return functional.layer_norm(
            values, values.shape[-1:], trained[f"{norm}.w"], trained[f"{norm}.b"], self._file.epsilon
        )


def passages(pairs: Sequence[NotePair]) -> list[str]:
    """The notes, then what is near."""
    return ["passage: " + text for text in (*[one.note for one in pairs], *[one.near for one in pairs])]


def train(model: TrainableE5, pairs: list[NotePair]) -> None:
    """EPOCHS times through all pairs."""
    optimiser = torch.optim.AdamW(model.trained.values(), lr=RATE, weight_decay=0.0)
    steps = EPOCHS * (len(pairs) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, (step + 1) / WARM_UP) * (1 - step / steps)
    )
    for _ in range(EPOCHS):
        order = random.sample(pairs, len(pairs))
        for begin in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[begin : begin + BATCH]
            documents = model.vectors(passages(batch))
            kinds = zip(*[one.questions for one in batch], strict=True)
            questions = model.vectors(["query: " + text for kind in kinds for text in kind])
            own = torch.arange(BATCH).repeat(len(questions) // BATCH)
            loss = functional.cross_entropy(questions @ documents.T / TEMPERATURE, own)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            sys.stdout.write(f"{schedule.last_epoch} of {steps}: {float(loss.detach()):.3f}\n")
            sys.stdout.flush()


def measured(model: TrainableE5, pairs: list[NotePair]) -> str:
    """Of questions by kind: the share with their note among the first six of all that is kept back, and the mean of 1/rank."""
    documents = passages(pairs)
    found = []
    with torch.no_grad():
        rows = model.vectors(documents).numpy()
        for kind, some in zip(
            ("para", "cross", "plain"), zip(*[one.questions for one in pairs], strict=True), strict=True
        ):
            texts = ["query: " + text for text in some]
            asked = model.vectors(texts).numpy()
            cosines = asked @ rows.T
            ranks = 1 + (cosines > np.diagonal(cosines)[:, None]).sum(axis=1)
            found.append(f"{kind} {(ranks <= 6).mean():.3f}/{(1 / ranks).mean():.3f}")
    return "  ".join(found)


def main() -> None:
    """Train, and say what is found before and after."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    pairs, kept_back = read()
    file = E5File(bundled_model.model_file())
    sys.stdout.write(
        f"{len(pairs)} pairs, and {len(kept_back)} to measure: {measured(TrainableE5(file), kept_back)}\n"
    )
    runs = []
    for seed in SEEDS:
        random.seed(seed)
        torch.manual_seed(seed)
        model = TrainableE5(file)
        train(model, pairs)
        sys.stdout.write(f"run {seed}: {measured(model, kept_back)}\n")
        runs.append(model.changes())
    np.save(bundled_model.beside(bundled_model.TUNING_FILE), np.mean(runs, axis=0).astype("<f2"))


if __name__ == "__main__":
    main()
