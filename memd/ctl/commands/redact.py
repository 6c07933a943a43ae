"""memd-ctl redact: show what would be taken out of a text."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from memd.config import Config, Redact
from memd.configfile.load import load
from memd.ctl.call import Call
from memd.ctl.failures import NOT_FOUND, USAGE, Failed
from memd.ctl.screen import Outcome
from memd.ctl.words import counted, shown, visible

_LONGEST = 200  # signs of a line that are shown whole
_AROUND = 60  # signs on each side of what was taken out of a longer one
_MARK = "[REDACTED:"
_MODES = {
    "sessions": 'These rules are applied to transcripts; redact.mode = "all" has them applied to notes, too.',
    "off": "redact.mode is off: nothing is taken out of what is indexed.",
}


class Line(msgspec.Struct, frozen=True):
    """A line that something is taken out of, as it would be stored."""

    line: int  # from 1
    end_line: int  # the last of those that went with it: a private key has many
    text: str  # a long one is cut to what is around the first thing taken out


def run(call: Call) -> Outcome:
    """Redact a file as its agent would have it redacted, and print the lines that change."""
    # Two hundred patterns are compiled for it: other commands do without.
    from memd.sources.redact.engine import VERSION, Redactor  # noqa: PLC0415 - a hook waits for other commands

    settings = _settings(call)
    text = _text(call)
    redacted = Redactor(settings).redact(text)
    lines = list(_lines(text, redacted.text))
    name = "-" if call.options.file == "-" else str(Path(call.options.file).absolute())
    data = {
        "file": name,
        "rules": VERSION,
        "mode": settings.mode,
        "total": sum(redacted.counts.values()),
        "counts": dict(redacted.counts),
        "lines": lines,
    }
    notes = (_MODES[settings.mode],) if settings.mode in _MODES else ()
    return Outcome(data, _told(lines, dict(redacted.counts), call), notes)


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


def _text(call: Call) -> str:
    """The text to redact; what is no UTF-8 in it is replaced, as it is when it is indexed."""
    given = call.options.file
    if given == "-":
        data, name = sys.stdin.buffer.read(), "What came on stdin"
    else:
        path, name = Path(given), shown(visible(given), call.places.home)
        if path.is_dir():
            raise Failed("not_a_file", f"{name} is a directory.", "Name one file: a note or a transcript.")
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise Failed("not_found", f"{name} does not exist.", exit_code=NOT_FOUND) from None
        except OSError as error:
            raise Failed("unreadable", f"{name} cannot be read: {error.strerror}.") from error
    text = data.decode("utf-8-sig", "replace")
    if "\0" not in text:
        return text
    # A crash leaves NUL bytes in a text, which are taken out of it when it is indexed; other bytes are of no text.
    if "\N{REPLACEMENT CHARACTER}" in text:
        raise Failed(
            "binary",
            f"{name} is no text: it holds NUL bytes.",
            "A compressed transcript must be unpacked first.",
        )
    return text.replace("\0", "")


def _lines(before: str, after: str) -> Iterator[Line]:
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
        yield Line(first + 1, number, _excerpt(now.rstrip("\r")))


def _excerpt(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    at = max(line.find(_MARK), 0)
    start, end = max(0, at - _AROUND), at + 2 * _AROUND
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _told(lines: list[Line], counts: dict[str, int], call: Call) -> str:
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
