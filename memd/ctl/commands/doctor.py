"""memd-ctl doctor: checks the installation and the daemon, with advice on how to fix what is wrong."""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from memd import VERSION
from memd.config.settings import AgentSettings, Config
from memd.ctl.doctor import agents, daemon, finding, installation, service, shared, socket, state, system
from memd.ctl.doctor.finding import DoctorContext, Finding, unchecked
from memd.ctl.failures import ERROR, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.terminal import Outcome
from memd.inspection.probe import Cache, Disk, ProbeResult, Program, RootsScan, Store, start_probe
from memd.inspection.programs import look_at_model, look_at_qmd, look_at_sqlite
from memd.inspection.roots import disk_of, look_at_roots
from memd.postgres.connection import CONNECT_S
from memd_client.conversation import __version__ as client_version
from memd_client.messages import StatusReport

_TIMEOUT_S = 5.0  # for a disk or a daemon that does not answer
_MODEL_S = 10.0  # loading code from a slow disk is no fault
_LATE_S = 0.5  # what gives up by itself may be so late


class _Seen(msgspec.Struct, frozen=True):
    """The results of all probes."""

    config: Config | None  # None: it is wrong, or could not be read
    results: Mapping[str, ProbeResult]  # by the name of the probe; no "model" where no agent uses it
    roots: Mapping[str, ProbeResult]  # by agent

    @property
    def answer(self) -> socket.SocketAnswer | None:
        """The answer at the socket; None: the probe did not end in time."""
        return self.results["answer"].first(socket.SocketAnswer)

    @property
    def status(self) -> StatusReport | None:
        """The daemon's report; None: no daemon has answered."""
        return None if self.answer is None else self.answer.report


def run_doctor(invocation: Invocation) -> Outcome:
    """Run all checks concurrently, and report their findings."""
    began = time.monotonic()
    context = _context(invocation)
    timeout_s = invocation.options.timeout or _TIMEOUT_S
    findings = _check(_look(context, timeout_s, invocation.options.timeout or _MODEL_S), context)
    if invocation.options.agent is not None:
        findings = _of_agent(findings, invocation.options.agent)
    took_s = time.monotonic() - began
    exit_code = 0 if all(one.ok for one in findings) else ERROR
    return Outcome(
        findings, finding.report_text(findings, took_s, invocation.screen.paint), exit_code=exit_code
    )


def _context(invocation: Invocation) -> DoctorContext:
    given = (
        ("--config", invocation.options.config),
        ("--state-dir", invocation.options.state_dir),
        ("--socket", invocation.options.socket),
    )
    return DoctorContext(
        places=invocation.places,
        environ=invocation.environ,
        platform=sys.platform,
        uid=os.getuid(),
        flags=tuple(word for name, value in given if value for word in (name, value)),
        prefix=sys.prefix,
    )


# --- looking


def _look(context: DoctorContext, timeout_s: float, model_s: float) -> _Seen:
    """Run everything that accesses a disk, a socket or native code, in concurrent probes."""
    places, late_s = context.places, timeout_s + _LATE_S
    reading = start_probe(lambda: [installation.read_configuration(context)], timeout_s)
    probes = {
        "answer": start_probe(lambda: [socket.ask(places.socket, timeout_s)], late_s),
        "place": start_probe(lambda: [socket.look(places.socket)], timeout_s),
        "state": start_probe(lambda: _look_at_state(context), timeout_s),
        "process": start_probe(lambda: [daemon.look(context)], timeout_s),
        "limits": start_probe(lambda: [system.look_at_limits(context.uid)], timeout_s),
        "service": start_probe(lambda: [service.look(context)], late_s),
        "sqlite": start_probe(lambda: [look_at_sqlite()], model_s),
    }
    configured = reading.result()
    config = configured.first(Config)
    settings = {} if config is None else config.agents
    if _wants_model(config):
        probes["model"] = start_probe(lambda: [look_at_model()], model_s)
    if config is not None and config.shared:
        servers = config.shared
        probes["shared"] = start_probe(lambda: shared.look(servers), late_s + len(servers) * CONNECT_S)
    probes["stores"] = start_probe(lambda: _look_at_stores(context, settings, timeout_s), late_s)
    probes["programs"] = start_probe(lambda: _look_at_programs(context, settings, timeout_s), late_s)
    now = time.time()
    roots = {
        agent: start_probe(partial(look_at_roots, agent, one, now, places.state), timeout_s)
        for agent, one in sorted(settings.items())
    }
    results = {name: probe.result() for name, probe in probes.items()} | {"configuration": configured}
    return _Seen(config, results, {agent: probe.result() for agent, probe in roots.items()})


def _wants_model(config: Config | None) -> bool:
    """Return whether an agent may use the bundled model; True if the configuration is unknown."""
    return config is None or any(
        "local" in {one.provider, one.fallback} or (one.provider == "auto" and not one.remote.base_url)
        for one in config.agents.values()
    )


def _look_at_state(context: DoctorContext) -> Iterable[state.StateDirectory | Disk]:
    yield state.look_at_state(context)
    if (disk := disk_of(context.places.state)) is not None:
        yield disk


def _look_at_stores(
    context: DoctorContext, settings: Mapping[str, AgentSettings], timeout_s: float
) -> Iterable[Cache | Store]:
    from memd.inspection.stores import look_at_stores  # noqa: PLC0415 - SQLite may crash

    return look_at_stores(context.places.state, settings, timeout_s)


def _look_at_programs(
    context: DoctorContext, settings: Mapping[str, AgentSettings], timeout_s: float
) -> Iterable[Program]:
    for agent, one in sorted(settings.items()):
        if one.backend == "qmd":
            yield look_at_qmd(
                agent,
                one,
                state=context.places.state,
                environ=context.environ,
                home=context.places.home,
                timeout_s=timeout_s,
            )


# --- checking


def _check(seen: _Seen, context: DoctorContext) -> list[Finding]:
    results, answer = seen.results, seen.answer
    # Where the state directory is out of reach, that is reported there.
    process = results["process"].first(daemon.DaemonProcesses)
    place = results["place"]
    return [
        installation.check_versions(VERSION, client_version, context),
        installation.check_platform(installation.this_platform(), wants_model=_wants_model(seen.config)),
        *installation.check_sqlite(results["sqlite"], context),
        installation.check_model(results.get("model")),
        installation.check_configuration(results["configuration"], context),
        *_check_state(seen, context),
        *socket.check(place.first(socket.SocketPlace) or place.reason or "", answer, context),
        *daemon.check(answer, process, seen.config, context, now=time.time(), executable=sys.executable),
        *_check_service(seen, context),
        *_check_limits(seen),
        *shared.check(seen.config, results.get("shared"), context),
        *_check_agents(seen, context),
    ]


def _check_state(seen: _Seen, context: DoctorContext) -> list[Finding]:
    result, stores = seen.results["state"], seen.results["stores"]
    found = result.first(state.StateDirectory)
    if found is None:
        return [state.unreachable(result.reason or "", context)]
    findings = state.check_state(found, result.first(Disk), context)
    cache = stores.first(Cache)
    if cache is None:
        return [*findings, state.unseen("state.embeddings", stores, context)]
    return [*findings, *state.check_cache(cache, context, is_ours=found.owner == context.uid)]


def _check_service(seen: _Seen, context: DoctorContext) -> list[Finding]:
    result = seen.results["service"]
    found = result.first(service.SeenService)
    if found is None:
        return [unchecked("service.units", result.reason or "")]
    return service.check(found, context)


def _check_limits(seen: _Seen) -> list[Finding]:
    result = seen.results["limits"]
    found = result.first(system.SystemLimits)
    if found is None:
        return [unchecked("limits.open_files", result.reason or "")]
    config, status = seen.config, seen.status
    scans = [result.first(RootsScan) for result in seen.roots.values()]
    directories = None if config is None else sum(scan.directories for scan in scans if scan is not None)
    return system.check_limits(
        found,
        agents=len(config.agents) if config is not None else len(status.agents) if status else 1,
        directories=None if None in scans else directories,
        daemon=None if status is None else status.pid,
    )


def _check_agents(seen: _Seen, context: DoctorContext) -> list[Finding]:
    config, stores = seen.config, seen.results["stores"]
    settings = {} if config is None else config.agents
    statuses = {} if seen.status is None else seen.status.agents
    scans = {agent: scan for agent, result in seen.roots.items() if (scan := result.first(RootsScan))}
    indexes = {store.agent: store for store in stores.of(Store)}
    programs = {program.agent: program for program in seen.results["programs"].of(Program)}
    apart = agents.check_overlap([*scans.values()], settings, context) if len(settings) > 1 else []
    directory = seen.results["state"].first(state.StateDirectory)
    is_ours = directory is not None and directory.owner == context.uid
    findings: list[Finding] = []
    if config is None:
        findings.append(unchecked("agents.notes", "the configuration does not tell which"))
    for name in sorted({*settings, *statuses, *indexes}):
        if name in settings or name in statuses:
            findings.append(agents.check_health(name, statuses.get(name), context))
        if name in settings:
            findings += agents.check_qmd(
                name, settings[name], statuses.get(name), programs.get(name), context
            )
            looked = seen.roots[name]
            if name in scans:
                searched = settings[name].shared if settings[name].backend == "postgres" else None
                findings += agents.check_notes(scans[name], context, searched=searched)
            elif looked.timed_out:
                at = (settings[name].workspace, *looked.of(Path))[-1]
                findings += agents.report_hanging(name, at, context, looked.reason or "")
            else:
                findings.append(state.unseen(f"agents.{name}.notes", looked, context))
        findings += [one for one in apart if one.name.split(".")[1] == name]
        if name in indexes:
            findings += state.check_store(
                indexes[name], context, is_ours=is_ours, knows_config=config is not None
            )
        elif name in settings and directory is not None:
            findings.append(state.unseen(f"agents.{name}.index", stores, context))
        elif name in settings:
            findings.append(unchecked(f"agents.{name}.index", "the state directory is out of reach"))
    return findings


def _of_agent(findings: Sequence[Finding], agent: str) -> list[Finding]:
    """Return all findings except those of other agents.

    Raises:
        UsageError: there is no such agent.
    """
    known = sorted({one.name.split(".")[1] for one in findings if one.name.count(".") == 2})
    if agent not in known:
        raise UsageError(f"There is no agent {agent}.", f"The agents are: {', '.join(known) or 'not known'}.")
    return [one for one in findings if one.name.count(".") < 2 or one.name.split(".")[1] == agent]
