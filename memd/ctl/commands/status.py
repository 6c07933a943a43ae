"""memd-ctl status: how everything is."""

import time
from collections.abc import Iterator
from pathlib import Path

from memd.ctl.call import Call
from memd.ctl.paint import Paint
from memd.ctl.screen import Outcome
from memd.ctl.vectors import in_words
from memd.ctl.words import ago, counted, duration, one_line, shown, size, visible
from memd_client.messages import AgentStatus, Health, Pass, StatusReport

_NAME = 10  # columns of the longest name of a line


def run(call: Call) -> Outcome:
    """Ask, and print it at a glance."""
    with call.client() as memd:
        report = memd.status(call.options.agent)
    return Outcome(report, text(report, time.time(), call.places.home, call.screen.paint))


def text(report: StatusReport, now: float, home: Path, paint: Paint) -> str:
    """The daemon, then its agents one by one.

    Args:
        report: What the daemon said.
        now: Unix time.
        home: Shown as ~.
        paint: How to set off what matters.
    """
    lines = [
        f"{paint(f'memd {report.version}', 'bold')}  running for {duration(report.uptime_s)}, pid {report.pid}",
        _line("socket", visible(shown(report.socket, home)), paint),
        _line("config", visible(_config(report, home)), paint),
    ]
    if report.config_error is not None:
        lines.append(paint("The configuration is wrong; the one before is in force:", "red"))
        lines += [paint(f"  {visible(line)}", "red") for line in report.config_error.splitlines()]
    for name, agent in sorted(report.agents.items()):
        lines += ["", f"{paint(name, 'bold')}  {visible(shown(agent.workspace, home))}"]
        lines += [_line(label, visible(value), paint) for label, value in _facts(agent, now, home)]
        lines += [
            _line(label, paint(f"{visible(one_line(problem))}", "yellow"), paint)
            for label, problem in troubles(agent)
        ]
    return "\n".join(lines)


def troubles(agent: AgentStatus) -> Iterator[tuple[str, str]]:
    """What does not work as it should: the part, and why."""
    parts = (
        ("keyword", agent.keyword),
        ("vector", agent.vector),
        ("watcher", agent.watcher),
        ("provider", agent.provider_health),
    )
    for name, health in parts:
        if not health.ok:
            yield name, f"degraded: {health.reason or 'no reason given'}"
    if agent.last_pass is not None and agent.last_pass.failed is not None:
        yield "last pass", f"failed: {agent.last_pass.failed}"
    if agent.rebuild is not None:
        yield "rebuild", f"under way: {agent.rebuild}; the old index answers meanwhile"


def _config(report: StatusReport, home: Path) -> str:
    return "built-in defaults" if report.config is None else shown(report.config, home)


def _facts(agent: AgentStatus, now: float, home: Path) -> Iterator[tuple[str, str]]:
    yield (
        "index",
        f"{counted(agent.files, 'file')}, {counted(agent.chunks, 'chunk')}, {size(agent.store_bytes)}",
    )
    yield "vectors", _vectors(agent)
    yield "provider", " ".join(part for part in (agent.provider, agent.model) if part)
    yield (
        "dirty",
        f"{counted(agent.dirty, 'change')} to look into"
        if agent.dirty
        else "nothing: the index is up to date",
    )
    yield "last pass", _last_pass(agent.last_pass, now)
    yield "health", _healthy(agent)
    if agent.extra_paths:
        yield "also", ", ".join(shown(path, home) for path in agent.extra_paths)
    if agent.sources and agent.sources != ["memory"]:
        yield "sources", ", ".join(agent.sources)
    if agent.backend != "builtin":
        yield "backend", agent.backend
    if agent.skipped:
        most_first = sorted(agent.skipped.items(), key=lambda item: (-item[1], item[0]))
        yield "skipped", ", ".join(f"{counted(number, 'file')}: {reason}" for reason, number in most_first)


def _vectors(agent: AgentStatus) -> str:
    if agent.provider == "none" and not agent.vectors.done:
        return "none: search is by keywords alone"
    return in_words(agent.vectors)


def _last_pass(last: Pass | None, now: float) -> str:
    if last is None:
        return "none yet"
    return f"{ago(now - last.at)}, took {duration(last.took_s)}"


def _healthy(agent: AgentStatus) -> str:
    parts: tuple[tuple[str, Health], ...] = (
        ("keyword", agent.keyword),
        ("vector", agent.vector),
        ("watcher", agent.watcher),
        ("provider", agent.provider_health),
    )
    return ", ".join(f"{name} {'ok' if health.ok else 'DEGRADED'}" for name, health in parts)


def _line(label: str, value: str, paint: Paint) -> str:
    return f"  {paint(label.ljust(_NAME), 'dim')}{value}"
