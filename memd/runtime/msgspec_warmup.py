"""Has msgspec inspect every struct before there are threads, because it crashes if two threads meet a new one at once."""

import contextlib
from collections.abc import Iterator

import msgspec

_OURS = ("memd", "memd_client")


def learn_types() -> None:
    """Have msgspec inspect all structs of memd that are imported by now; call it before there are threads.

    msgspec caches what it knows of a struct in the class, and stores it there before it is complete. A thread that first
    decodes a struct while another thread does so reads past the end of the cache, and the process crashes (msgspec 0.22,
    SIGSEGV). Several threads begin at once when a daemon starts with transcripts to read, or with questions that wait.
    """
    for kind in list(_below(msgspec.Struct)):
        if kind.__module__.partition(".")[0] in _OURS:
            # Of what is only held in memory, some fields are of types that nothing can be decoded to.
            with contextlib.suppress(TypeError, NameError):
                msgspec.msgpack.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
