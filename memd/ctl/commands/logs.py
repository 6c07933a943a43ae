"""memd-ctl logs: the log of a daemon that `up` started."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from memd.ctl.call import Call
from memd.ctl.failures import NOT_FOUND, Failed, UsageError
from memd.ctl.logline import readable
from memd.ctl.screen import Outcome
from memd.ctl.tail import follow, start_of_last

_BLOCK = 1 << 16
_BEFORE_FOLLOWING = 10  # lines, as tail has it


def run(call: Call) -> Outcome:
    """Print the log, or its end."""
    options, file = call.options, call.places.log
    if options.follow and call.screen.json:
        raise UsageError("--json is one document, and --follow has no end: leave one of them out")
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        raise Failed(
            "not_found",
            f"There is no log at {file}.",
            "`memd-ctl up` writes one. `memd run` writes to its own stderr, a service to the journal of the system.",
            exit_code=NOT_FOUND,
        ) from None
    with stream:
        count = options.lines if options.lines is not None else _BEFORE_FOLLOWING if options.follow else None
        stream.seek(0 if count is None else start_of_last(stream, count))
        if call.screen.json:
            lines = stream.read().decode("utf-8", "replace").splitlines()
            return Outcome({"file": str(file), "lines": lines})
        _print(call, follow(file, stream) if options.follow else _blocks(stream))
    return Outcome(None)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_BLOCK), b"")


def _print(call: Call, blocks: Iterable[bytes]) -> None:
    if not call.screen.is_terminal:
        for block in blocks:
            call.screen.copy(block)
        return
    for line in _lines(blocks):
        call.screen.say(readable(line, call.screen.paint))


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines, and at the end what is left without an end."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
