"""Measures the bundled model in languages it was hardly trained on: `python -m tests.training.languages`.

The same twelve notes and questions stand in languages.jsonl in eight languages. Printed is the mean reciprocal rank of a note
among those of its language, for the question in the same language and for the one in English: with multilingual-e5-small alone, before
and after its training, and with the whole model.
"""

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memd.providers.local import bundled_model
from memd.providers.local.e5_onnx import E5Onnx

FILE = Path(__file__).with_name("languages.jsonl")


def texts() -> dict[str, list[tuple[str, str]]]:
    """By language, each note with its question; the order is the same in all."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["language"], []).append((row["note"], row["question"]))
    return found


def reciprocal_rank(questions: NDArray[np.float32], notes: NDArray[np.float32]) -> float:
    """The mean; both of shape (pairs, 384), in the same order."""
    cosines = questions @ notes.T
    ranks = 1 + (cosines > np.diag(cosines)[:, None]).sum(axis=1)
    return float(np.mean(1 / ranks))


def main() -> None:
    """Print a line for each language."""
    file, tuning = bundled_model.model_file(), bundled_model.beside(bundled_model.TUNING_FILE)
    figures: dict[str, list[float]] = {}
    for model in (E5Onnx(file, 2, None), E5Onnx(file, 2, tuning), bundled_model.load(2)):
        english = np.array([model.query(question) for _, question in texts()["en"]])
        for language, pairs in texts().items():
            notes = np.array([model.passage(note) for note, _ in pairs])
            questions = np.array([model.query(question) for _, question in pairs])
            figures.setdefault(language, []).extend(
                [reciprocal_rank(questions, notes), reciprocal_rank(english, notes)]
            )
    sys.stdout.write("      same language          asked in English\n")
    sys.stdout.write("      before  after  whole   before  after  whole\n")
    for name, rows in [*figures.items(), ("mean", np.mean(list(figures.values()), axis=0).tolist())]:
        columns = "   ".join("  ".join(f"{figure:.3f}" for figure in rows[side::2]) for side in (0, 1))
        sys.stdout.write(f"{name:4}  {columns}\n")


if __name__ == "__main__":
    main()
