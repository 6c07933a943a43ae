"""Lines put together to blocks of a size that is handled in no time."""

from collections.abc import Iterable, Iterator

BLOCK = 256 << 10  # bytes, roughly: all of a large file at once would stop every thread of the interpreter


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, each with its end, a few at a time."""
    block = bytearray()
    for line in lines:
        block += line
        block += b"\n"
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
