"""memd-ctl logs: the log of a daemon that `up` started."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from memd.ctl.daemon_log import follow, last_of, lines_of, readable
from memd.ctl.failures import NOT_FOUND, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.terminal import Outcome
from memd.runtime.log_file import all_of

_BLOCK = 1 << 16
_BEFORE_FOLLOWING = 10  # lines, as tail has it


def run_logs(invocation: Invocation) -> Outcome:
    """Print the log, with the full files before it that are kept, or its end."""
    options, file = invocation.options, invocation.places.log
    count = wanted_lines(invocation)
    files = list(all_of(file))
    if not files:
        raise Failed(
            "not_found",
            f"There is no log at {file}.",
            "`memd-ctl up` writes one. `memd run` writes to its own stderr; `memd-ctl service logs` has what a service wrote.",
            exit_code=NOT_FOUND,
        )
    parts = [(path, 0) for path in files] if count is None else last_of(files, count)
    if invocation.screen.json:
        return Outcome({"file": str(file), "lines": lines_of(b"".join(_blocks(parts)))})
    _print(invocation, _followed(file, parts) if options.follow else _blocks(parts))
    return Outcome(None)


def wanted_lines(invocation: Invocation) -> int | None:
    """How many lines of what is there already are to be printed; None: all.

    Raises:
        UsageError: --json and --follow were given together.
    """
    options = invocation.options
    if options.follow and invocation.screen.json:
        raise UsageError("--json is one document, but --follow does not end: leave one of them out")
    return options.lines if options.lines is not None else _BEFORE_FOLLOWING if options.follow else None


def _blocks(parts: Sequence[tuple[Path, int]]) -> Iterator[bytes]:
    for path, at in parts:
        # What is gone since it was listed has been there too long.
        with suppress(FileNotFoundError), path.open("rb") as stream:
            stream.seek(at)
            yield from iter(partial(stream.read, _BLOCK), b"")


def _followed(file: Path, parts: Sequence[tuple[Path, int]]) -> Iterator[bytes]:
    """Yield the content of the log's files, and then appended lines, without end."""
    *before, (last, at) = parts
    yield from _blocks(before)
    stream = last.open("rb")
    stream.seek(at)
    yield from follow(file, stream)


def _print(invocation: Invocation, blocks: Iterable[bytes]) -> None:
    if not invocation.screen.is_terminal:
        for block in blocks:
            invocation.screen.copy(block)
        return
    for line in _lines(blocks):
        invocation.screen.say(readable(line, invocation.screen.paint))


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Split a text into whole lines; an incomplete last line is yielded at the end."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
