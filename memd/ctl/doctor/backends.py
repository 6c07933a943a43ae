"""Whether the engine that an agent is told to search with can be used. Pure."""

from memd.config.settings import AgentSettings
from memd.ctl.doctor.finding import Finding, right, unchecked, wrong
from memd.ctl.doctor.scene import Scene
from memd.ctl.output.humanize import counted, one_line
from memd.inspection.facts import Program
from memd_client.messages import AgentStatus


def judged_qmd(
    agent: str, settings: AgentSettings, status: AgentStatus | None, program: Program | None, scene: Scene
) -> list[Finding]:
    """What the daemon says of an agent's qmd, or without one what was found; nothing for an agent without qmd.

    Args:
        agent: Its id.
        settings: Of the agent.
        status: What the daemon says of it; None: there is none, or it does not say.
        program: What was found from here; None: that could not be looked at.
        scene: Where this takes place.
    """
    if settings.backend != "qmd":
        return []
    name = f"agents.{agent}.qmd"
    if status is not None:
        return [_as_told(agent, status, program, scene)]
    if program is None:
        return [unchecked(name, "qmd could not be looked at")]
    if program.fault is not None:
        return [wrong(name, _lost(program.fault), _fix(agent))]
    return [right(name, f"{program.version} at {scene.shown(program.file)}; no daemon tells how it does")]


def _as_told(agent: str, status: AgentStatus, program: Program | None, scene: Scene) -> Finding:
    name = f"agents.{agent}.qmd"
    fallback, told = status.backend_fallback, status.qmd
    if fallback is not None:
        if program is not None and program.fault is None:
            fix = _fix_of_one_that_runs(agent, scene.shown(program.file))
        else:
            fix = _fix(agent)
        return wrong(name, _lost(fallback.reason), fix)
    if told is None:
        return unchecked(name, "qmd is not ready yet")
    version = told.version or (program.version if program is not None else "") or "qmd of an unknown version"
    trouble = [*told.warnings, *([f"update: {told.update_failure}"] if told.update_failure else [])]
    if not status.vector.ok:
        trouble.append(f"vectors: {status.vector.reason or 'not available'}")
    if trouble:
        without = "" if status.vector.ok else f'; search_mode = "search" in [{name}] does without vectors'
        return wrong(
            name,
            f"{version} answers, but {one_line('; '.join(trouble))}",
            f"See {name} in the configuration, and {scene.ctl('logs', '-n', '50')}{without}",
        )
    return right(
        name,
        f"{version} at {scene.shown(told.command)} answers from {counted(len(told.collections), 'collection')}",
    )


def _lost(reason: str) -> str:
    return f"the built-in engine answers in its place: {one_line(reason)}"


def _fix(agent: str) -> str:
    return (
        "Install it (npm install -g @tobilu/qmd), or say where it is: command in"
        f' [agents.{agent}.qmd]; backend = "builtin" does without.'
    )


def _fix_of_one_that_runs(agent: str, file: str) -> str:
    """What may keep a program from answering the daemon that a person can run."""
    return (
        f"From here {file} runs: does a search with it answer? Are it and node on the daemon's PATH? If it needs"
        f' longer, raise timeout_ms in [agents.{agent}.qmd]; backend = "builtin" does without.'
    )
