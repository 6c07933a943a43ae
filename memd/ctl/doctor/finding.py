"""Findings of checks, the context that checks are given, and the report. Pure.

A check that could not be made counts as passed, with a message that begins with "not checked", so that scripts which wait for exit
status 0 (before a daemon runs, or on a system without /proc) can get it. If the reason itself is a failure, such as a disk that
does not answer or a crash, the check has failed.
"""

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from memd.ctl.invocation import Places
from memd.ctl.output.humanize import counted, shown, visible
from memd.ctl.output.terminal import Paint


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report."""

    name: str  # group.check, such as state.directory or agents.main.index
    ok: bool
    detail: str
    fix: str = ""  # a sentence on how to fix it; "" if the check passed


def name_of(agent: str, check: str) -> str:
    """Return the name of a check of one agent."""
    return f"agents.{agent}.{check}"


def passed(name: str, detail: str) -> Finding:
    """Create the finding of a passed check."""
    return Finding(name=name, ok=True, detail=detail)


def failed(name: str, detail: str, fix: str) -> Finding:
    """Create the finding of a failed check, with a way to fix it."""
    return Finding(name=name, ok=False, detail=detail, fix=fix)


def unchecked(name: str, why: str) -> Finding:
    """Create the finding of a check that could not be made."""
    return Finding(name=name, ok=True, detail=f"not checked: {why}")


class DoctorContext(msgspec.Struct, frozen=True, kw_only=True):
    """The process and user that checks apply to."""

    places: Places
    environ: Mapping[str, str]
    platform: str  # see sys.platform
    uid: int
    flags: tuple[str, ...]  # command-line flags that another memd-ctl needs as well
    prefix: str  # the directory of this installation

    def ctl(self, *words: str) -> str:
        """Return a shell command line of memd-ctl for the same daemon."""
        return shlex.join(("memd-ctl", *self.flags, *words))

    def pip(self, *words: str) -> str:
        """Return a command line of pip for this installation."""
        return shlex.join((f"{self.prefix}/bin/pip", *words))

    def reinstall(self, *packages: str) -> str:
        """Return advice for packages that do not work."""
        return f"Reinstall it: {self.pip('install', '--force-reinstall', *packages)}"

    def restart(self) -> str:
        """Return the command lines that restart the daemon."""
        return f"{self.ctl('down')} && {self.ctl('up')}"

    def shown(self, path: str | Path) -> str:
        """Format a path for people."""
        return shown(path, self.places.home)


def quoted(path: str | Path) -> str:
    """Quote a path for a shell."""
    return shlex.quote(str(path))


_COLUMNS = 80
_TITLES = {
    "installation": "Installation",
    "config": "Configuration",
    "state": "State directory",
    "socket": "Socket",
    "daemon": "Daemon",
    "service": "Service",
    "limits": "Limits of the system",
    "shared": "Servers of shared memories",
    "agents": "Agents",
}
_MARKS = {True: "ok   ", False: "WRONG"}


def report_text(findings: Sequence[Finding], took_s: float, paint: Paint) -> str:
    """Format findings: a line each, below the heading of the group, with advice, and a summary at the end."""
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
    wrapped = _wrapped(visible(finding.detail), head)
    mark = paint(_MARKS[finding.ok], "green" if finding.ok else "red")
    lines = [wrapped.replace(_MARKS[finding.ok], mark, 1)]
    if finding.fix:
        lines.append(paint(_wrapped(visible(finding.fix), " " * 9 + "-> "), "yellow"))
    return "\n".join(lines)


def _wrapped(text: str, head: str) -> str:
    """Wrap to at most 80 columns, unless a path or a command cannot be broken."""
    rest = " " * len(head)
    lines = []
    for number, line in enumerate(text.splitlines() or [""]):
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
