"""A checkup as a person reads it. Pure."""

import textwrap
from collections.abc import Sequence
from itertools import groupby

from memd.ctl.doctor.finding import Finding
from memd.ctl.output.humanize import counted, visible
from memd.ctl.output.terminal import Paint

_COLUMNS = 80
_TITLES = {
    "installation": "Installation",
    "config": "Configuration",
    "state": "State directory",
    "socket": "Socket",
    "daemon": "Daemon",
    "service": "Service",
    "limits": "Limits of the system",
    "agents": "Agents",
}
_MARKS = {True: "ok   ", False: "WRONG"}


def text(findings: Sequence[Finding], took_s: float, paint: Paint) -> str:
    """A line a check under the heading of its group, what to do about it below, a summary at the end."""
    blocks = []
    for group, members in groupby(findings, key=_group):
        blocks.append("\n".join([paint(_title(group), "bold"), *(_lines(one, paint) for one in members)]))
    return "\n\n".join([*blocks, _summary(findings, took_s, paint)])


def _group(finding: Finding) -> str:
    return finding.name.rpartition(".")[0]


def _title(group: str) -> str:
    return _TITLES.get(group, f"Agent {group.partition('.')[2]}")


def _lines(finding: Finding, paint: Paint) -> str:
    label = finding.name.rpartition(".")[2].replace("_", " ")
    head = f"  {_MARKS[finding.ok]}  {label.ljust(12)} "
    told = _wrapped(visible(finding.detail), head)
    mark = paint(_MARKS[finding.ok], "green" if finding.ok else "red")
    lines = [told.replace(_MARKS[finding.ok], mark, 1)]
    if finding.fix:
        lines.append(paint(_wrapped(visible(finding.fix), " " * 9 + "-> "), "yellow"))
    return "\n".join(lines)


def _wrapped(told: str, head: str) -> str:
    """Lines of at most 80 columns, unless a path or a command has no place to break."""
    rest = " " * len(head)
    lines = []
    for number, line in enumerate(told.splitlines() or [""]):
        lines += textwrap.wrap(
            line,
            _COLUMNS,
            initial_indent=rest if number else head,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [(rest if number else head).rstrip()]
    return "\n".join(lines)


def _summary(findings: Sequence[Finding], took_s: float, paint: Paint) -> str:
    bad = sum(not one.ok for one in findings)
    left = sum(one.ok and one.detail.startswith("not checked") for one in findings)
    head = (
        paint(f"{bad} of {counted(len(findings), 'check')} {'is' if bad == 1 else 'are'} wrong", "red")
        if bad
        else paint(f"All is well: {counted(len(findings), 'check')}", "green")
    )
    not_made = f", {left} could not be made" if left else ""
    return f"{head}{not_made} ({took_s:.1f} s)."
