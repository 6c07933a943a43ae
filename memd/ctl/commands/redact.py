"""memd-ctl redact: shows what would be redacted in a text, or where secrets are in files."""

import os
import select
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memd.config.load import load
from memd.config.settings import Config, Redact
from memd.ctl.failures import NOT_FOUND, SECRETS_FOUND, USAGE, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, shown, visible
from memd.ctl.output.terminal import Outcome
from memd_client.note_encoding import decode_note

if TYPE_CHECKING:
    from memd.redact.redactor import Redactor

_LONGEST = 200  # longest line that is shown whole, in characters
_AROUND = 60  # characters shown on each side of a redaction in a longer line
_MARK = "[REDACTED:"
WRITER_S = 10.0  # the time in which a program must have opened a pipe for writing
_MODES = {
    "sessions": 'These rules are applied to transcripts; redact.mode = "all" has them applied to notes, too.',
    "off": "redact.mode is off: nothing is taken out of what is indexed.",
}


class RedactedLine(msgspec.Struct, frozen=True):
    """A line with redactions, as it would be stored."""

    line: int  # from 1
    end_line: int  # last of the lines that were replaced together: a private key has many
    text: str  # a long one is cut to the surroundings of the first redaction


class FoundSecret(msgspec.Struct, frozen=True):
    """The position of a secret, and the rule that found it; never its value."""

    line: int  # from 1; in a transcript the first line of the turn
    kind: str
    rule: str
    why: str


class ScannedFile(msgspec.Struct, frozen=True):
    """A file that contains secrets."""

    file: str
    found: list[FoundSecret]


def run_redact(invocation: Invocation) -> Outcome:
    """Redact a file by its agent's rules, and print the lines that change."""
    # Imported late, as it compiles two hundred patterns that other commands do not need.
    from memd.redact.redactor import Redactor  # noqa: PLC0415 - a hook waits for other commands
    from memd.redact.rule import VERSION  # noqa: PLC0415 - as above

    if (invocation.options.file is None) == (invocation.options.scan is None):
        raise Failed(
            "usage",
            "Either one FILE is needed, or --scan with paths.",
            "See memd-ctl redact --help.",
            exit_code=USAGE,
        )
    settings = _settings(invocation)
    redactor = Redactor(settings)
    if invocation.options.scan is not None:
        return _scan(invocation, redactor)
    data, shown_name = _read(invocation)
    said = _said(data, redactor)
    if said is None:
        text = _text(data, shown_name)
        redacted = redactor.redact(text)
        lines, counts = list(_lines(text, redacted.text)), dict(redacted.counts)
        found = list(_found(text, redactor)) if invocation.options.explain else []
    else:
        lines, counts = list(said.lines), dict(said.counts)
        found = said.found if invocation.options.explain else []
    name = "-" if invocation.options.file == "-" else str(Path(invocation.options.file).absolute())
    result = {
        "file": name,
        "transcript": None if said is None else said.format,
        "rules": VERSION,
        "mode": settings.mode,
        "total": sum(counts.values()),
        "counts": counts,
        "lines": lines,
    } | ({"found": found} if invocation.options.explain else {})
    notes: tuple[str, ...] = (
        ()
        if said is None
        else (f"A transcript of {said.format}: what was said in it is indexed, and nothing else.",)
    )
    if settings.mode == "off" or (settings.mode == "sessions" and said is None):
        notes += (_MODES[settings.mode],)
    text = _outcome_text(lines, counts, invocation)
    if found:
        text += "\n\n" + "\n".join(f"{one.line}: {one.kind}: rule {one.rule}, {one.why}" for one in found)
    return Outcome(result, text, notes)


def _found(text: str, redactor: "Redactor", *, line: int | None = None) -> Iterator[FoundSecret]:
    """Yield the secrets in a text.

    Args:
        text: The text.
        redactor: The rules.
        line: The line to report for all of them; None: the line within the text.
    """
    from memd.redact.rule_set import explained  # noqa: PLC0415 - as above

    number, after = 1, 0
    for find in redactor.finds(text):
        number, after = number + text.count("\n", after, find.start), find.start
        yield FoundSecret(number if line is None else line, find.kind, *explained(find))


def _scan(invocation: Invocation, redactor: "Redactor") -> Outcome:
    """List the secrets in files of any kind."""
    files: list[ScannedFile] = []
    counts: Counter[str] = Counter()
    closed: list[str] = []
    read, left_out, others = 0, 0, 0
    for path in _files(invocation, closed):
        name = str(path)
        try:
            if not path.is_file():
                others += path.exists()  # not a symlink that leads nowhere
                continue
            found = list(_found(_text(path.read_bytes(), name), redactor))
        except (OSError, Failed):
            left_out += 1
            continue
        read += 1
        counts.update(one.kind for one in found)
        if found:
            files.append(ScannedFile(name, found))
    paint = invocation.screen.paint
    lines = [
        f"{paint(visible(file.file), 'cyan')}:{one.line}: {one.kind}"
        + (f": rule {one.rule}, {one.why}" if invocation.options.explain else "")
        for file in files
        for one in file.found
    ]
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))
    lines.append(
        f"{counted(sum(counts.values()), 'secret')} in {counted(len(files), 'file')} of {read:,}"
        + (f": {kinds}." if kinds else ".")
    )
    notes: tuple[str, ...] = (
        (f"{counted(left_out, 'file')} left out: no text, or not to be read.",) if left_out else ()
    )
    if others:
        notes += (f"{counted(others, 'file')} left out: a pipe, a socket or a device.",)
    notes += tuple(
        f"Nothing below {shown(visible(directory), invocation.places.home)} was looked at: it cannot be read."
        for directory in closed
    )
    data = {
        "read": read,
        "left_out": left_out + others + len(closed),
        "counts": dict(sorted(counts.items())),
        "files": files,
    }
    return Outcome(data, "\n".join(lines), notes, exit_code=SECRETS_FOUND if files else 0)


def _files(invocation: Invocation, closed: list[str]) -> Iterator[Path]:
    """Yield the given files, and what is no directory below given directories, except in .git.

    Args:
        invocation: The command, with the paths.
        closed: Gets the directories that cannot be listed.
    """
    for given in invocation.options.scan:
        path = Path(given)
        if not path.exists():
            raise Failed(
                "not_found",
                f"{shown(visible(given), invocation.places.home)} does not exist.",
                exit_code=NOT_FOUND,
            )
        if path.is_file():
            yield path
            continue
        if not path.is_dir():
            raise Failed(
                "not_a_file",
                f"{shown(visible(given), invocation.places.home)} is no file and no directory; it may never end.",
                "Of what a program prints: `... | memd-ctl redact -`.",
            )
        for top, directories, names in os.walk(path, onerror=lambda error: closed.append(error.filename)):
            directories[:] = sorted(name for name in directories if name != ".git")
            yield from (Path(top, name) for name in sorted(names))


def _settings(invocation: Invocation) -> Redact:
    config = load(invocation.places.config, invocation.environ, invocation.places.home)
    return config.agents[_agent(config, invocation.options.agent)].redact


def _agent(config: Config, named: str | None) -> str:
    """Return the agent whose rules apply: the one named, else the only one, else main."""
    if named is None and len(config.agents) == 1:
        return next(iter(config.agents))
    agent = "main" if named is None else named
    if agent not in config.agents:
        known = ", ".join(sorted(config.agents))
        raise Failed(
            "unknown_agent",
            f"There is no agent {visible(agent)}." if named else "It is not said which agent is meant.",
            f"Name one with --agent: {known}.",
            exit_code=USAGE,
        )
    return agent


def _read(invocation: Invocation) -> tuple[bytes, str]:
    """Return the content of the file, decompressed, and its name for messages."""
    from memd.sources.notes import TooLarge  # noqa: PLC0415 - likewise
    from memd.sources.safe_open import FileUnreadable  # noqa: PLC0415 - as above
    from memd.sources.transcripts.open_transcript import PACKED_SUFFIX, unpacked  # noqa: PLC0415 - likewise

    given = invocation.options.file
    if given == "-":
        return sys.stdin.buffer.read(), "What came on stdin"
    path, name = Path(given), shown(visible(given), invocation.places.home)
    if path.is_dir():
        raise Failed("not_a_file", f"{name} is a directory.", "Name one file: a note or a transcript.")
    if path.is_block_device() or path.is_char_device():
        raise Failed("not_a_file", f"{name} is a device.", "Name one file, or - for stdin.")
    try:
        if path.is_fifo():
            return _of_pipe(path, name), name
        if path.suffix != PACKED_SUFFIX:
            return path.read_bytes(), name
        with path.open("rb") as packed:
            return b"".join(unpacked(packed.fileno(), os.fstat(packed.fileno()).st_size, name)), name
    except FileNotFoundError:
        raise Failed("not_found", f"{name} does not exist.", exit_code=NOT_FOUND) from None
    except (FileUnreadable, TooLarge) as error:
        raise Failed("unreadable", f"{error}.") from error
    except OSError as error:
        raise Failed("unreadable", f"{name} cannot be read: {error.strerror}.") from error


def _of_pipe(path: Path, name: str) -> bytes:
    """Return all that is written into a pipe.

    Raises:
        Failed: no program writes into it.
    """
    if not Path(os.path.realpath(path)).exists():
        return path.read_bytes()  # <(command) on Linux: a pipe without a name ends with its program
    deadline = time.monotonic() + WRITER_S
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:
        events = select.poll()
        events.register(pipe, select.POLLIN)
        has_ended, begun = False, b""
        while not (has_ended or begun):
            try:
                begun = os.read(pipe.fileno(), 1)
            except BlockingIOError:
                break  # a program has opened it, and has written nothing yet
            if not begun and time.monotonic() >= deadline:
                raise Failed(
                    "unreadable",
                    f"{name} is a pipe, and no program writes into it.",
                    "Start the program that writes into it first, or: ... | memd-ctl redact -",
                )
            has_ended = any(event & select.POLLHUP for _, event in events.poll(100))  # ms
        os.set_blocking(pipe.fileno(), True)
        return begun + pipe.read()


class _Said(msgspec.Struct, frozen=True):
    """What would be indexed of a transcript."""

    format: str
    lines: list[RedactedLine]
    counts: Mapping[str, int]
    found: list[FoundSecret]


def _said(data: bytes, redactor: "Redactor") -> _Said | None:
    """Return the turns with redactions, as they would be indexed; None: the data is no transcript."""
    from memd.sources.transcripts.parser import TranscriptParser  # noqa: PLC0415 - as above
    from memd.sources.transcripts.read_position import LineSplitter  # noqa: PLC0415 - likewise
    from memd.sources.transcripts.reader import parse_all  # noqa: PLC0415 - likewise

    raw, clean = TranscriptParser(None, None), TranscriptParser(None, redactor)
    for parser in (raw, clean):
        parse_all(parser, LineSplitter(), iter((data,)))
    if clean.format is None:
        return None
    before = {(turn.start_line, turn.role): turn.text for turn in raw.builder.turns}
    lines = [
        RedactedLine(turn.start_line, turn.end_line, _excerpt(text))
        for turn in clean.builder.turns
        for text in _changed(before.get((turn.start_line, turn.role)), turn.text)
    ]
    prefix = "redacted."
    counts = {kind.removeprefix(prefix): n for kind, n in clean.tally.items() if kind.startswith(prefix)}
    found = [one for turn in raw.builder.turns for one in _found(turn.text, redactor, line=turn.start_line)]
    return _Said(clean.format.name, lines, counts, found)


def _changed(before: str | None, after: str) -> Iterator[str]:
    """Yield the changed lines of a turn; if lines cannot be compared, those that contain a redaction mark."""
    if before is None or before.count("\n") != after.count("\n"):
        yield from (line for line in after.split("\n") if _MARK in line)
    else:
        yield from (line.text for line in _lines(before, after))


def _text(data: bytes, name: str) -> str:
    """Decode the text to redact as when it is indexed."""
    decoded = decode_note(data)
    # A crash can leave NUL bytes in a text, which are removed when it is indexed; with other invalid bytes it
    # is binary.
    if decoded.is_lossy and "\0" in decoded.text:
        raise Failed(
            "binary",
            f"{name} is no text: it holds NUL bytes.",
        )
    return decoded.text.replace("\0", "")


def _lines(before: str, after: str) -> Iterator[RedactedLine]:
    """Yield the lines that have changed."""
    pairs = list(zip(before.split("\n"), after.split("\n"), strict=True))
    number = 0
    while number < len(pairs):
        was, now = pairs[number]
        first = number
        number += 1
        if was == now:
            continue
        # Further lines of a secret that spans several are empty afterwards.
        while number < len(pairs) and pairs[number][0] != pairs[number][1] and _MARK not in pairs[number][1]:
            number += 1
        yield RedactedLine(first + 1, number, _excerpt(now.rstrip("\r")))


def _excerpt(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    at = max(line.find(_MARK), 0)
    start, end = max(0, at - _AROUND), at + 2 * _AROUND
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _outcome_text(lines: list[RedactedLine], counts: dict[str, int], invocation: Invocation) -> str:
    if not counts:
        return "Nothing would be taken out."
    paint = invocation.screen.paint
    out_lines = []
    for line in lines:
        place = f"{line.line}" if line.line == line.end_line else f"{line.line}-{line.end_line}"
        out_lines.append(f"{paint(place, 'cyan')}: {visible(line.text)}")
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    out_lines += ["", f"{counted(sum(counts.values()), 'thing')} would be taken out: {kinds}."]
    return "\n".join(out_lines)
