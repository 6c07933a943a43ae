"""memd-ctl status: shows the state of the daemon and of each agent."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from memd import VERSION
from memd.ctl.failures import UsageError, failure_for
from memd.ctl.invocation import Invocation
from memd.ctl.output import reply_text, terminal
from memd.ctl.output.humanize import ago, clause, counted, duration, one_line, shown, size, visible
from memd.ctl.output.reply_text import vectors_in_words
from memd.ctl.output.terminal import Outcome, Paint
from memd_client.errors import MemdClientError
from memd_client.messages import (
    AgentStatus,
    BackendFallback,
    FallbackStatus,
    Health,
    Memory,
    Pass,
    QmdStatus,
    Searches,
    Sessions,
    StatusReport,
)

_STEP_S = 1.0
_NAME = 10  # width of the labels
_PARTS = 3  # parts of a slow search that are shown, longest first


def run_status(invocation: Invocation) -> Outcome:
    """Print the status once, or every second."""
    if invocation.options.watch:
        _watch(invocation)
    with invocation.client() as memd:
        report = memd.status(invocation.options.agent)
    return Outcome(report, text(report, time.time(), invocation.places.home, invocation.screen.paint))


def _watch(invocation: Invocation) -> NoReturn:
    """Redraw the status every second.

    Raises:
        UsageError: the output is no terminal, or JSON.
        MemdClientError: the daemon does not answer at the start.
    """
    screen = invocation.screen
    if screen.json:
        raise UsageError("--json is one document, but --watch does not end: leave one of them out")
    if not screen.draws:
        raise UsageError(
            "--watch draws on a terminal, and this is none.", "Without it the status is printed once."
        )
    with invocation.client() as memd:
        # A daemon that does not run at the start is an error; one that stops later is waited for.
        memd.status(invocation.options.agent)

        def draw() -> str:
            try:
                report = memd.status(invocation.options.agent)
            except MemdClientError as error:
                return screen.paint(visible(failure_for(error).message), "red")
            return text(report, time.time(), invocation.places.home, screen.paint)

        terminal.show_page(screen, draw, _STEP_S)


def _of_another_version(report: StatusReport, paint: Paint) -> Iterator[str]:
    """Yield a remark if the daemon runs another version, as a new installation needs a restart."""
    if report.version != VERSION:
        remark = (
            f"This is memd-ctl {VERSION}. If that is what is installed, restart memd to run it: "
            "memd-ctl service restart, or memd-ctl down and memd-ctl up"
        )
        yield paint(remark, "yellow")


def text(report: StatusReport, now: float, home: Path, paint: Paint) -> str:
    """Return the text about the daemon, and about each agent.

    Args:
        report: The daemon's reply.
        now: Unix time.
        home: Shown as ~.
        paint: Adds colours.
    """
    config = "built-in defaults" if report.config is None else shown(report.config, home)
    lines = [
        f"{paint(f'memd {report.version}', 'bold')}  running for {duration(report.uptime_s)}, pid {report.pid}",
        *_of_another_version(report, paint),
        _line("socket", visible(shown(report.socket, home)), paint),
        _line("config", visible(config), paint),
    ]
    if (memory := report.memory) is not None:
        trouble = memory.trouble  # it contains the amount, too
        title = (
            _line("memory", _memory(memory), paint) if trouble is None else _warning("memory", trouble, paint)
        )
        lines.append(title)
    lines += [
        _line("sent", f"{one.provider} {one.model}: {one.texts:,} texts, about {one.tokens:,} tokens", paint)
        for one in report.sent
    ]
    if report.config_error is not None:
        lines.append(paint("The configuration is wrong; the one before is in force:", "red"))
        lines += [paint(f"  {visible(line)}", "red") for line in report.config_error.splitlines()]
    if waiting := ", ".join(report.config_waiting):
        lines.append(
            _warning(
                "waiting", f"{waiting}: changed in the file, and in force after `memd-ctl reload`", paint
            )
        )
    if not report.cache.ok:
        lines.append(_warning("cache", f"degraded: {report.cache.reason}", paint))
    if not report.synonyms.ok:
        lines.append(_warning("synonyms", f"degraded: {report.synonyms.reason}", paint))
    if not report.daemon_health.ok:
        lines.append(_warning("daemon", f"degraded: {report.daemon_health.reason}", paint))
    if report.damaged:
        lines.append(_warning("damaged", ", ".join(report.damaged), paint))
    for name, agent in sorted(report.agents.items()):
        lines += ["", f"{paint(name, 'bold')}  {visible(shown(agent.workspace, home))}"]
        lines += [_line(label, visible(value), paint) for label, value in _facts(agent, now, home)]
        lines += [_warning(label, one_line(problem), paint) for label, problem in troubles(agent, now)]
    return "\n".join(lines)


def troubles(agent: AgentStatus, now: float) -> Iterator[tuple[str, str]]:
    """Yield the parts of an agent that do not work, with reasons, at a Unix time."""
    for name, health in {**_health(agent), "store": agent.store}.items():
        if not health.ok:
            yield name, f"degraded: {health.reason or 'no reason given'}"
    yield from _backend_troubles(agent, now)
    if agent.embedding is not None:
        others = [one.reason or "" for one in (agent.provider_health, agent.store) if not one.ok]
        yield from reply_text.embedding_troubles(agent.embedding, others)
    # An agent that searches a memory on a server needs no local directory.
    is_elsewhere = agent.backend == "postgres" and not agent.files
    if agent.watcher.ok and agent.watcher.reason is not None and not is_elsewhere:
        yield "watcher", agent.watcher.reason
    if agent.last_pass is not None and agent.last_pass.failed is not None:
        yield "last pass", f"failed: {agent.last_pass.failed}"
    if agent.rebuild is not None:
        yield "rebuild", f"under way: {agent.rebuild}; the old index answers meanwhile"
    if agent.damaged:
        yield "damaged", f"set aside and made anew; kept, and yours to delete: {', '.join(agent.damaged)}"


def _backend_troubles(agent: AgentStatus, now: float) -> Iterator[tuple[str, str]]:
    if agent.backend_fallback is not None:
        yield "backend", _fallen_back(agent.backend_fallback, now)
    if agent.publish is not None and agent.publish.reason is not None:
        yield "publish", f"to {agent.publish.to}: {clause(agent.publish.reason)}"
    for one in agent.included:
        if one.reason is not None:
            yield "included", f"{one.memory}: {clause(one.reason)}"
    if agent.qmd is not None:
        if agent.qmd.update_failure is not None:
            yield "qmd", f"its last update failed: {agent.qmd.update_failure}"
        yield from (("qmd", warning) for warning in agent.qmd.warnings)


def _memory(memory: Memory) -> str:
    used = f"{memory.daemon_mb:.0f} MB"
    if memory.worker_mb:
        used += f", and {memory.worker_mb:.0f} MB of what embeds"
    return f"{used}; the limit is {memory.limit_mb:,} MB" if memory.limit_mb else used


def _facts(agent: AgentStatus, now: float, home: Path) -> Iterator[tuple[str, str]]:
    if not agent.store.ok and not agent.store_bytes and agent.last_pass is None:
        # The agent does not run, so nothing else is known.
        yield "index", "not open: this agent answers nothing"
        return
    yield (
        "index",
        f"{counted(agent.files, 'file')}, {counted(agent.chunks, 'chunk')}, {size(agent.store_bytes)}",
    )
    if agent.progress is not None:
        yield "reading", f"{agent.progress.done:,} of {counted(agent.progress.total, 'file')}"
    yield "vectors", _vectors(agent)
    yield "provider", _provider(agent)
    if agent.fallback is not None:
        yield "fallback", _fallback(agent.fallback)
    if agent.passed_over:
        yield "not taken", "; ".join(clause(one.reason) for one in agent.passed_over)
    if agent.embedding is not None and agent.embedding.batch is not None and agent.embedding.batch.enabled:
        yield "batches", reply_text.batch_in_words(agent.embedding.batch, now)
    yield "dirty", _dirty(agent)
    yield "last pass", _last_pass(agent.last_pass, now)
    yield (
        "health",
        ", ".join(f"{name} {'ok' if one.ok else 'DEGRADED'}" for name, one in _health(agent).items()),
    )
    if agent.searches is not None:
        yield "searches", _searches(agent.searches, now)
    others = [path for path in agent.extra_paths if path != agent.workspace]
    if others:
        yield "also", ", ".join(shown(path, home) for path in others)
    yield from _sources(agent)
    if agent.backend != "builtin":
        yield "backend", agent.backend if agent.qmd is None else _qmd(agent.qmd, now)
    if agent.skipped:
        most_first = sorted(agent.skipped.items(), key=lambda item: (-item[1], item[0]))
        yield "skipped", ", ".join(f"{counted(number, 'file')}: {reason}" for reason, number in most_first)


def _fallen_back(fallback: BackendFallback, now: float) -> str:
    substitute = f"builtin, in the place of {fallback.from_}: {clause(fallback.reason)}"
    if fallback.retry_at is None:
        return substitute
    left_s = fallback.retry_at - now
    when = "the next search" if left_s < 1 else f"the first search in {duration(left_s)}"
    return f"{substitute}; {when} tries it again"


def _qmd(qmd: QmdStatus, now: float) -> str:
    fields = [
        f"qmd {qmd.version}" if qmd.version is not None else "qmd",
        f"mode {qmd.search_mode}",
        counted(len(qmd.collections), "collection"),
    ]
    if qmd.files is not None:
        fields.append(counted(qmd.files, "file"))
    if qmd.exported:
        fields.append(counted(qmd.exported, "exported transcript"))
    fields.append("updating" if qmd.updating else _ago("updated", qmd.last_update, now))
    if qmd.last_embed is not None:
        fields.append(_ago("embedded", qmd.last_embed, now))
    return ", ".join(fields)


def _ago(what: str, at: float | None, now: float) -> str:
    return f"not {what} yet" if at is None else f"{what} {ago(now - at)}"


def _sources(agent: AgentStatus) -> Iterator[tuple[str, str]]:
    if agent.sources and agent.sources != ["memory"]:
        yield "sources", ", ".join(agent.sources)
    if agent.sessions is not None:
        yield "sessions", _sessions(agent.sessions)
    if agent.redacted:
        yield "redacted", f"{counted(sum(agent.redacted.values()), 'secret')}: {_most_first(agent.redacted)}"
    if agent.included:
        yield "includes", ", ".join(one.memory for one in agent.included)
    if agent.publish is not None:
        late = f", {agent.publish.waiting:,} to go" if agent.publish.waiting else ""
        late += (
            f"; {counted(agent.publish.taken_back, 'vector')} taken back" if agent.publish.taken_back else ""
        )
        yield (
            "published",
            f"{counted(agent.publish.files, 'file')} as {agent.publish.memory} on {agent.publish.to}{late}",
        )


def _sessions(sessions: Sessions) -> str:
    fields = [f"{counted(sessions.files, 'transcript')}, {counted(sessions.turns, 'turn')}"]
    if sessions.waiting:
        fields.append(f"{sessions.waiting:,} still growing, indexed once quiet")
    if sessions.lines_skipped:
        fields.append(f"lines skipped: {_most_first(sessions.lines_skipped)}")
    return "; ".join(fields)


def _most_first(numbers: Mapping[str, int]) -> str:
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in ordered)


def _provider(agent: AgentStatus) -> str:
    name = " ".join(dict.fromkeys(part for part in (agent.provider, agent.model) if part))
    return name if agent.endpoint is None else f"{name} at {agent.endpoint}"


def _fallback(fallback: FallbackStatus) -> str:
    if fallback.in_use:
        return (
            f"{fallback.provider}, in use instead of {fallback.instead_of}: {one_line(fallback.reason or '')}"
        )
    return fallback.provider if fallback.reason is None else f"none: {one_line(fallback.reason)}"


def _vectors(agent: AgentStatus) -> str:
    if agent.provider == "none" and agent.vectors.note is None:
        kept = f", and {agent.vectors.done:,} of an earlier provider are kept" if agent.vectors.done else ""
        return f"none: search is by keywords alone{kept}"
    return vectors_in_words(agent.vectors)


def _dirty(agent: AgentStatus) -> str:
    """Return whether the index is up to date with the disk, as far as memd can know."""
    if agent.dirty:
        return f"{counted(agent.dirty, 'change')} to look into"
    if agent.last_pass is None:
        return "not known: nothing was looked at yet"
    if agent.last_pass.failed is not None:
        return "not known: the last pass failed"
    if not agent.watcher.ok:
        return "no other change is known: see watcher"
    return "nothing: the index is up to date"


def _last_pass(last: Pass | None, now: float) -> str:
    if last is None:
        return "none yet"
    return f"{ago(now - last.at)}, took {duration(last.took_s)}"


def _searches(searches: Searches, now: float) -> str:
    slowest = searches.slowest
    took = f"{duration(slowest.took_ms / 1000)}, {ago(now - slowest.at)}"
    where = [f"{name} {duration(ms / 1000)}" for name, ms in list(slowest.parts.items())[:_PARTS]]
    slow = took + (f" ({', '.join(where)})" if where else "")
    if searches.count == 1:
        return f"one: {slow}"
    return f"the last {searches.count}: half within {duration(searches.median_ms / 1000)}; the slowest {slow}"


def _health(agent: AgentStatus) -> dict[str, Health]:
    """Return the health of each part of an agent, except for its store."""
    return {
        "keyword": agent.keyword,
        "vector": agent.vector,
        "watcher": agent.watcher,
        "provider": agent.provider_health,
    }


def _warning(label: str, value: str, paint: Paint) -> str:
    return _line(label, paint(visible(value), "yellow"), paint)


def _line(label: str, value: str, paint: Paint) -> str:
    return f"  {paint(label.ljust(_NAME), 'dim')}{value}"
