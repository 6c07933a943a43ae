"""Measures the bundled model in languages it was hardly trained on: `python -m tests.training.languages`.

The same twelve notes and questions stand in languages.jsonl in eight languages. Printed is the mean reciprocal rank of a note
among those of its language, before and after training: for the question in the same language, and for the one in English.
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
    figures: dict[str, list[float]] = {}
    for tuning in (None, bundled_model.beside(bundled_model.TUNING_FILE)):
        model = E5Onnx(bundled_model.model_file(), 2, tuning)
        english = np.array([model.query(question) for _, question in texts()["en"]])
        for language, pairs in texts().items():
            notes = np.array([model.passage(note) for note, _ in pairs])
            questions = np.array([model.query(question) for _, question in pairs])
            figures.setdefault(language, []).extend(
                [reciprocal_rank(questions, notes), reciprocal_rank(english, notes)]
            )
    sys.stdout.write("      same language   asked in English\n      before  after   before  after\n")
    for name, rows in [*figures.items(), ("mean", np.mean(list(figures.values()), axis=0).tolist())]:
        same, across, same_after, across_after = rows
        sys.stdout.write(f"{name:4}  {same:.3f}   {same_after:.3f}   {across:.3f}   {across_after:.3f}\n")


if __name__ == "__main__":
    main()
