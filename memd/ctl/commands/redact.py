"""memd-ctl redact: show what would be taken out of a text."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memd.config.load import load
from memd.config.settings import Config, Redact
from memd.ctl.call import Call
from memd.ctl.failures import NOT_FOUND, USAGE, Failed
from memd.ctl.output.humanize import counted, shown, visible
from memd.ctl.output.terminal import Outcome

if TYPE_CHECKING:
    from memd.redact.redactor import Redactor

_LONGEST = 200  # signs of a line that are shown whole
_AROUND = 60  # signs on each side of what was taken out of a longer one
_MARK = "[REDACTED:"
_MODES = {
    "sessions": 'These rules are applied to transcripts; redact.mode = "all" has them applied to notes, too.',
    "off": "redact.mode is off: nothing is taken out of what is indexed.",
}


class RedactedLine(msgspec.Struct, frozen=True):
    """A line that something is taken out of, as it would be stored."""

    line: int  # from 1
    end_line: int  # the last of those that went with it: a private key has many
    text: str  # a long one is cut to what is around the first thing taken out


def run_redact(call: Call) -> Outcome:
    """Redact a file as its agent would have it redacted, and print the lines that change."""
    # Two hundred patterns are compiled for it: other commands do without.
    from memd.redact.redactor import VERSION, Redactor  # noqa: PLC0415 - a hook waits for other commands

    settings = _settings(call)
    data, shown_name = _read(call)
    redactor = Redactor(settings)
    said = _said(data, redactor)
    if said is None:
        text = _text(data, shown_name)
        redacted = redactor.redact(text)
        lines, counts = list(_lines(text, redacted.text)), dict(redacted.counts)
    else:
        lines, counts = list(said.lines), dict(said.counts)
    name = "-" if call.options.file == "-" else str(Path(call.options.file).absolute())
    told = {
        "file": name,
        "transcript": None if said is None else said.format,
        "rules": VERSION,
        "mode": settings.mode,
        "total": sum(counts.values()),
        "counts": counts,
        "lines": lines,
    }
    notes: tuple[str, ...] = (
        ()
        if said is None
        else (f"A transcript of {said.format}: what was said in it is indexed, and nothing else.",)
    )
    if settings.mode == "off" or (settings.mode == "sessions" and said is None):
        notes += (_MODES[settings.mode],)
    return Outcome(told, _told(lines, counts, call), notes)


def _settings(call: Call) -> Redact:
    config = load(call.places.config, call.environ, call.places.home)
    return config.agents[_agent(config, call.options.agent)].redact


def _agent(config: Config, named: str | None) -> str:
    """Whose rules are meant: the agent that is named, else the only one, else main."""
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


def _read(call: Call) -> tuple[bytes, str]:
    """What is in the file, unpacked, and how it is called in messages."""
    from memd.sources.notes import TooLarge  # noqa: PLC0415 - likewise
    from memd.sources.safe_open import FileUnreadable  # noqa: PLC0415 - as above
    from memd.sources.transcripts.open_transcript import PACKED_SUFFIX, unpacked  # noqa: PLC0415 - likewise

    given = call.options.file
    if given == "-":
        return sys.stdin.buffer.read(), "What came on stdin"
    path, name = Path(given), shown(visible(given), call.places.home)
    if path.is_dir():
        raise Failed("not_a_file", f"{name} is a directory.", "Name one file: a note or a transcript.")
    try:
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


class _Said(msgspec.Struct, frozen=True):
    """What would be indexed of a transcript."""

    format: str
    lines: list[RedactedLine]
    counts: Mapping[str, int]


def _said(data: bytes, redactor: "Redactor") -> _Said | None:
    """The turns that something is taken out of, as the index would have them; None: it is no transcript."""
    from memd.sources.transcripts.parser import TranscriptParser  # noqa: PLC0415 - as above
    from memd.sources.transcripts.read_position import LineSplitter  # noqa: PLC0415 - likewise
    from memd.sources.transcripts.reader import hear_all  # noqa: PLC0415 - likewise

    raw, clean = TranscriptParser(None, None), TranscriptParser(None, redactor)
    for hearing in (raw, clean):
        hear_all(hearing, LineSplitter(), iter((data,)))
    if clean.format is None:
        return None
    before = {(turn.start_line, turn.role): turn.text for turn in raw.fold.turns}
    lines = [
        RedactedLine(turn.start_line, turn.end_line, _excerpt(text))
        for turn in clean.fold.turns
        for text in _changed(before.get((turn.start_line, turn.role)), turn.text)
    ]
    prefix = "redacted."
    counts = {kind.removeprefix(prefix): n for kind, n in clean.tally.items() if kind.startswith(prefix)}
    return _Said(clean.format.name, lines, counts)


def _changed(before: str | None, after: str) -> Iterator[str]:
    """The lines of a turn that are not what they were; those that name something taken out, where that is not known."""
    if before is None or before.count("\n") != after.count("\n"):
        yield from (line for line in after.split("\n") if _MARK in line)
    else:
        yield from (line.text for line in _lines(before, after))


def _text(data: bytes, name: str) -> str:
    """The text to redact; what is no UTF-8 in it is replaced, as it is when it is indexed."""
    text = data.decode("utf-8-sig", "replace")
    if "\0" not in text:
        return text
    # A crash leaves NUL bytes in a text, which are taken out of it when it is indexed; other bytes are of no text.
    if "\N{REPLACEMENT CHARACTER}" in text:
        raise Failed(
            "binary",
            f"{name} is no text: it holds NUL bytes.",
        )
    return text.replace("\0", "")


def _lines(before: str, after: str) -> Iterator[RedactedLine]:
    """The lines that are not what they were."""
    pairs = list(zip(before.split("\n"), after.split("\n"), strict=True))
    number = 0
    while number < len(pairs):
        was, now = pairs[number]
        first = number
        number += 1
        if was == now:
            continue
        # What a secret of several lines leaves of the others is nothing.
        while number < len(pairs) and pairs[number][0] != pairs[number][1] and _MARK not in pairs[number][1]:
            number += 1
        yield RedactedLine(first + 1, number, _excerpt(now.rstrip("\r")))


def _excerpt(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    at = max(line.find(_MARK), 0)
    start, end = max(0, at - _AROUND), at + 2 * _AROUND
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _told(lines: list[RedactedLine], counts: dict[str, int], call: Call) -> str:
    if not counts:
        return "Nothing would be taken out."
    paint = call.screen.paint
    told = []
    for line in lines:
        place = f"{line.line}" if line.line == line.end_line else f"{line.line}-{line.end_line}"
        told.append(f"{paint(place, 'cyan')}: {visible(line.text)}")
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    told += ["", f"{counted(sum(counts.values()), 'thing')} would be taken out: {kinds}."]
    return "\n".join(told)
