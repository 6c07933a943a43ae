"""Measures the bundled model: `python -m memd.embed.measure` writes its bias anew, after a change of the model or the probe."""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memd.embed import bundled, probe
from memd.embed.centring import Line, line


def measured(model: bundled.Model) -> NDArray[np.float32]:
    """What BIAS_FILE holds, shape (4, dimensions): mean and slope of passages, then of questions."""
    answers = np.stack([model.passage(text) for text in probe.ANSWERS])
    questions = np.stack([model.query(text) for text in probe.QUESTIONS])
    return np.concatenate([_rows(line(answers, probe.ANSWERS)), _rows(line(questions, probe.QUESTIONS))])


def _rows(one: Line) -> NDArray[np.float32]:
    return np.stack([np.frombuffer(one.mean, "<f4"), np.frombuffer(one.slope, "<f4")])


def main() -> None:
    """Write the file."""
    file = Path(bundled.__file__).with_name(bundled.BIAS_FILE)
    np.save(file, measured(bundled.load()).astype("<f4"))
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
