"""Looks whether programs that agents are told to search with are there, and run."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from memd.backends.qmd.error_text import plain
from memd.backends.qmd.errors import QmdFailed
from memd.backends.qmd.installation import QmdPlaces, find_program, qmd_environ
from memd.backends.qmd.process import run
from memd.config.settings import AgentSettings
from memd.inspection.facts import Program


def look_at_qmd(
    agent: str,
    settings: AgentSettings,
    *,
    state: Path,
    environ: Mapping[str, str],
    home: Path,
    patience_s: float,
) -> Program:
    """Whether the qmd of an agent is found, and tells its version; nothing of the agent is given to it.

    Args:
        agent: Its id.
        settings: Of the agent.
        state: Where the daemon keeps its things.
        environ: Of this process, which may be another than the daemon's.
        home: What ~ stands for.
        patience_s: What has not told by then is killed.
    """
    try:
        file = find_program(settings.qmd.command, workspace=settings.workspace, environ=environ, home=home)
    except QmdFailed as failure:
        return Program(agent=agent, fault=str(failure))
    around = qmd_environ(environ, QmdPlaces(state / "agents" / f"{agent}.qmd"), file)
    try:
        ended = asyncio.run(
            run((str(file), "--version"), what="qmd --version", environ=around, timeout_s=patience_s)
        )
    except QmdFailed as failure:
        return Program(agent=agent, file=str(file), fault=str(failure))
    if ended.status:
        return Program(agent=agent, file=str(file), fault=f"`qmd --version` ended with status {ended.status}")
    return Program(agent=agent, file=str(file), version=plain(ended.stdout)[:80])
