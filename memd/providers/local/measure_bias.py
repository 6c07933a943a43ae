"""Measures the bundled model: `python -m memd.providers.local.measure_bias` writes its bias anew, after a change of the model or the probe."""

import sys
from pathlib import Path

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
    """Write the file."""
    file = Path(bundled_model.__file__).with_name(bundled_model.BIAS_FILE)
    np.save(file, measured(bundled_model.load()).astype("<f4"))
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
