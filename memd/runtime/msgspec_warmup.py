"""Has msgspec look at every type before two threads meet the same one at once."""

import contextlib
from collections.abc import Iterator

import msgspec

_OURS = ("memd", "memd_client")


def learn_types() -> None:
    """Have msgspec know all structs of memd that are imported by now.

    What it learns of a struct it keeps with the class, and it puts it there before it has learnt all: a thread that
    first decodes or converts to a struct while another one does so reads past what is there, and the process is gone
    (msgspec 0.22, SIGSEGV). Several threads begin at once wherever a daemon starts with transcripts to read, or with
    questions that wait. Call it before there are threads.
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
