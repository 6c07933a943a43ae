"""memd-ctl doctor: what is wrong, and what to do about it."""

import os
import platform
import resource
import sys
import time
from collections.abc import Sequence

import msgspec

from memd.config.load import ConfigError
from memd.config.settings import Config
from memd.ctl.call import Call
from memd.ctl.daemon.process import find_holder, is_held
from memd.ctl.doctor import (
    agents,
    backends,
    configuration,
    daemon,
    inspect,
    installation,
    limits,
    processes,
    report,
    service,
    socket,
    state,
)
from memd.ctl.doctor import socket_answer as answer
from memd.ctl.doctor.finding import Finding, unchecked, wrong
from memd.ctl.doctor.installation import Platform
from memd.ctl.doctor.limits import SystemLimits
from memd.ctl.doctor.scene import Scene
from memd.ctl.failures import ERROR, UsageError
from memd.ctl.output.screen import Outcome
from memd.inspection.facts import Cache, Disk, InspectionRequest, Program, RootsScan, Store
from memd.inspection.timeouts import BackgroundWork, StillRunning, WorkFailed
from memd.version import VERSION
from memd_client.messages import StatusReport
from memd_client.version import __version__ as client_version

_PATIENCE_S = 5.0  # for a disk or a daemon that does not answer
_MODEL_S = 10.0  # loading code from a slow disk is no fault
_LATE_S = 0.5  # what gives up by itself may be so late


class _Seen(msgspec.Struct, frozen=True):
    """What the pieces of work came to."""

    config: Config | ConfigError | WorkFailed | StillRunning
    answer: answer.SocketAnswer | WorkFailed | StillRunning
    place: socket.SocketPlace | WorkFailed | StillRunning
    state: state.StateDirectory | WorkFailed | StillRunning
    process: daemon.Process | WorkFailed | StillRunning
    limits: SystemLimits | WorkFailed | StillRunning
    engine: inspect.InspectionAnswer | WorkFailed | StillRunning
    model: inspect.InspectionAnswer | WorkFailed | StillRunning | None  # None: no agent uses it
    roots: inspect.InspectionAnswer | WorkFailed | StillRunning
    stores: inspect.InspectionAnswer | WorkFailed | StillRunning
    programs: (
        inspect.InspectionAnswer | WorkFailed | StillRunning | None
    )  # None: no agent is told to search with one
    service: service.SeenService | WorkFailed | StillRunning


def run(call: Call) -> Outcome:
    """Check everything side by side, and tell all of it."""
    began = time.monotonic()
    scene = _scene(call)
    patience_s = call.options.timeout or _PATIENCE_S
    seen = _look(scene, patience_s, call.options.timeout or _MODEL_S)
    findings = _judged(seen, scene, patience_s)
    if call.options.agent is not None:
        findings = _of_agent(findings, call.options.agent)
    took_s = time.monotonic() - began
    exit_code = 0 if all(one.ok for one in findings) else ERROR
    return Outcome(findings, report.text(findings, took_s, call.screen.paint), exit_code=exit_code)


def _scene(call: Call) -> Scene:
    given = (
        ("--config", call.options.config),
        ("--state-dir", call.options.state_dir),
        ("--socket", call.options.socket),
    )
    return Scene(
        places=call.places,
        environ=call.environ,
        platform=sys.platform,
        uid=os.getuid(),
        flags=tuple(word for name, value in given if value for word in (name, value)),
        prefix=sys.prefix,
    )


# --- looking


def _look(scene: Scene, patience_s: float, model_s: float) -> _Seen:
    """Everything that takes a system call, each piece on a thread of its own."""
    places = scene.places
    question = InspectionRequest(
        config=None if places.config is None else str(places.config),
        home=str(places.home),
        state=str(places.state),
        patience_s=patience_s,
        now=time.time(),
    )

    def asked(aspect: str, within_s: float) -> BackgroundWork[inspect.InspectionAnswer]:
        return BackgroundWork(
            lambda: inspect.ask(inspect.command_for(aspect), question, scene.environ, within_s),
            within_s + inspect.STARTS_S + _LATE_S,
        )

    config = BackgroundWork(lambda: configuration.read(scene), patience_s)
    told = BackgroundWork(lambda: answer.ask(places.socket, patience_s), patience_s + _LATE_S)
    place = BackgroundWork(lambda: socket.look(places.socket), patience_s)
    directory = BackgroundWork(lambda: state.look(scene), patience_s)
    engine = asked("engine", model_s)
    roots, stores = asked("roots", patience_s + _LATE_S), asked("stores", patience_s + _LATE_S)
    process = BackgroundWork(lambda: _process(scene), patience_s)
    allowed = BackgroundWork(lambda: _limits(scene), patience_s)
    installed = BackgroundWork(lambda: service.look(scene), patience_s + _LATE_S)
    configured = config.outcome()
    model = asked("model", model_s) if _wants_model(configured) else None
    programs = asked("programs", patience_s + _LATE_S) if _wants_program(configured) else None
    return _Seen(
        config=configured,
        answer=told.outcome(),
        place=place.outcome(),
        state=directory.outcome(),
        process=process.outcome(),
        limits=allowed.outcome(),
        engine=engine.outcome(),
        model=None if model is None else model.outcome(),
        roots=roots.outcome(),
        stores=stores.outcome(),
        programs=None if programs is None else programs.outcome(),
        service=installed.outcome(),
    )


def _process(scene: Scene) -> daemon.Process:
    places = scene.places
    running = processes.daemons(scene.uid)
    return daemon.Process(
        state_holder=find_holder(places.lock),
        is_state_held=is_held(places.lock),
        socket_holder=find_holder(places.socket.with_name(f"{places.socket.name}.lock")),
        others=tuple(running) if processes.PROC.is_dir() else None,
        interpreters={pid: program for pid in running if (program := processes.interpreter(pid))},
        code_at=daemon.newest_code(),
    )


def _limits(scene: Scene) -> SystemLimits:
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    running = processes.daemons(scene.uid)
    watches = processes.number("fs/inotify/max_user_watches")
    return SystemLimits(
        open_files=None if own == resource.RLIM_INFINITY else own,
        of_daemons={pid: limit for pid in running if (limit := processes.open_files_limit(pid))},
        watches=watches,
        instances=processes.number("fs/inotify/max_user_instances"),
        used={} if watches is None else processes.watching(scene.uid),
    )


# --- judging


def _judged(seen: _Seen, scene: Scene, patience_s: float) -> list[Finding]:
    config = seen.config if isinstance(seen.config, Config) else None
    told = seen.answer if isinstance(seen.answer, answer.SocketAnswer) else None
    status = None if told is None else told.report
    return [
        installation.judged_versions(VERSION, client_version, scene),
        installation.judged_platform(_platform(), wants_model=_wants_model(seen.config)),
        *installation.judged_engine(_asked(seen.engine), scene),
        installation.judged_model(None if seen.model is None else _asked(seen.model)),
        configuration.judged(seen.config, scene),
        *_state(seen, scene),
        *_socket(seen, told, scene),
        *_daemon(seen, told, config, scene),
        *_service(seen, scene),
        *_limits_judged(seen, config, status),
        *_agents(seen, config, status, scene, patience_s),
    ]


def _wants_model(config: Config | ConfigError | WorkFailed | StillRunning) -> bool:
    """Whether the bundled model is for somebody; where the configuration does not tell, it may be."""
    match config:
        case Config(agents=agents):
            return any(
                "local" in {one.provider, one.fallback}
                or (one.provider == "auto" and not one.remote.base_url)
                for one in agents.values()
            )
        case _:
            return True


def _wants_program(config: Config | ConfigError | WorkFailed | StillRunning) -> bool:
    """Whether an agent is told to search with another program."""
    return isinstance(config, Config) and any(one.backend != "builtin" for one in config.agents.values())


def _state(seen: _Seen, scene: Scene) -> list[Finding]:
    match seen.state:
        case state.StateDirectory() as found:
            disk = next(iter(_asked(seen.roots).of(Disk)), None)
            findings = state.judged(found, disk, scene)
        case trouble:
            return [state.unreachable(_reason(trouble), scene)]
    stores = _asked(seen.stores)
    caches = stores.of(Cache)
    if not caches:
        return [*findings, _stopped("state.embeddings", stores, scene)]
    is_ours = found.owner == scene.uid
    return [
        *findings,
        *(one for cache in caches for one in agents.judged_cache(cache, scene, is_ours=is_ours)),
    ]


def _socket(seen: _Seen, told: answer.SocketAnswer | None, scene: Scene) -> list[Finding]:
    match seen.place:
        case socket.SocketPlace() as place:
            return socket.judged(place, told, scene)
        case trouble:
            return socket.judged(_reason(trouble), told, scene)


def _daemon(
    seen: _Seen, told: answer.SocketAnswer | None, config: Config | None, scene: Scene
) -> list[Finding]:
    match seen.process:
        case daemon.Process() as process:
            pass
        case _:  # the state directory is out of reach, which is told there
            process = daemon.Process()
    return daemon.judged(told, process, config, scene, now=time.time(), executable=sys.executable)


def _service(seen: _Seen, scene: Scene) -> list[Finding]:
    match seen.service:
        case service.SeenService() as found:
            return service.judged(found, scene)
        case trouble:
            return [unchecked("service.units", _reason(trouble))]


def _limits_judged(seen: _Seen, config: Config | None, status: StatusReport | None) -> list[Finding]:
    match seen.limits:
        case SystemLimits() as found:
            grounds = _asked(seen.roots).of(RootsScan)
            complete = config is not None and len(grounds) == len(config.agents)
            complete &= all(ground.hangs_at is None for ground in grounds)
            return limits.judged(
                found,
                agents=len(config.agents) if config is not None else len(status.agents) if status else 1,
                directories=sum(ground.directories for ground in grounds) if complete else None,
                daemon=None if status is None else status.pid,
            )
        case trouble:
            return [unchecked("limits.open_files", _reason(trouble))]


def _agents(
    seen: _Seen, config: Config | None, status: StatusReport | None, scene: Scene, patience_s: float
) -> list[Finding]:
    settings = {} if config is None else config.agents
    told = {} if status is None else status.agents
    roots, stores = _asked(seen.roots), _asked(seen.stores)
    grounds = {ground.agent: ground for ground in roots.of(RootsScan)}
    indexes = {store.agent: store for store in stores.of(Store)}
    programs = () if seen.programs is None else _asked(seen.programs).of(Program)
    engine_of = {program.agent: program for program in programs}
    apart = agents.judged_overlap([*grounds.values()], settings, scene) if len(settings) > 1 else []
    is_ours = isinstance(seen.state, state.StateDirectory) and seen.state.owner == scene.uid
    findings: list[Finding] = []
    if config is None:
        findings.append(unchecked("agents.notes", "the configuration does not tell which"))
    for name in sorted({*settings, *told, *indexes}):
        if name in settings or name in told:
            findings.append(agents.judged_health(name, told.get(name), scene))
        if name in settings:
            found = engine_of.get(name)
            findings += backends.judged_qmd(name, settings[name], told.get(name), found, scene)
        if name in grounds:
            findings += agents.judged_notes(grounds[name], scene, patience_s)
        elif name in settings:
            findings.append(_stopped(f"agents.{name}.notes", roots, scene))
        findings += [one for one in apart if one.name.split(".")[1] == name]
        if name in indexes:
            findings += agents.judged_store(
                indexes[name], scene, is_ours=is_ours, knows_config=config is not None
            )
        elif name in settings and isinstance(seen.state, state.StateDirectory):
            findings.append(_stopped(f"agents.{name}.index", stores, scene))
        elif name in settings:
            findings.append(unchecked(f"agents.{name}.index", "the state directory is out of reach"))
    return findings


def _stopped(name: str, asked: inspect.InspectionAnswer, scene: Scene) -> Finding:
    """What could not be looked at because the process that looks came to an early end."""
    return wrong(
        name,
        f"looking at it {asked.trouble or 'found nothing'}",
        f"See whether the disk answers: ls {scene.places.state}; or allow more time with --timeout 60.",
    )


def _asked(outcome: inspect.InspectionAnswer | WorkFailed | StillRunning) -> inspect.InspectionAnswer:
    return (
        outcome
        if isinstance(outcome, inspect.InspectionAnswer)
        else inspect.InspectionAnswer((), _reason(outcome))
    )


def _reason(trouble: WorkFailed | StillRunning) -> str:
    """Why a piece of work gave nothing. The message of an error may hold anything, but for those of the system."""
    match trouble:
        case StillRunning(patience_s=patience_s):
            return f"gave no answer within {patience_s:g} s"
        case WorkFailed(error=OSError(strerror=str(reason))):
            return f"cannot be looked at: {reason}"
        case WorkFailed(error=error):
            return f"cannot be looked at ({type(error).__name__})"


def _of_agent(findings: Sequence[Finding], agent: str) -> list[Finding]:
    """All but what concerns other agents alone.

    Raises:
        UsageError: there is no such agent.
    """
    known = sorted({one.name.split(".")[1] for one in findings if one.name.count(".") == 2})
    if agent not in known:
        raise UsageError(f"There is no agent {agent}.", f"The agents are: {', '.join(known) or 'not known'}.")
    return [one for one in findings if one.name.count(".") < 2 or one.name.split(".")[1] == agent]


def _platform() -> Platform:
    libc, version = platform.libc_ver()
    major, minor, micro, *_ = sys.version_info
    return Platform(
        python=(major, minor, micro),
        system=sys.platform,
        machine=platform.machine(),
        libc=f"{libc} {version}".strip(),
    )
