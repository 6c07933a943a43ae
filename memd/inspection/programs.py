"""Tries what an installation contains or needs: SQLite with its extension, the bundled model, qmd.

Native libraries are imported by the function that tries them, so that only its child process crashes with
them.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.backends.qmd.installation import QmdPlaces, find_program, qmd_environ
from memd.backends.qmd.process import QmdFailed, plain, run
from memd.config.settings import AgentSettings
from memd.inspection.probe import Model, Program, SqliteFacts


def look_at_sqlite() -> SqliteFacts:
    """Try SQLite: find a word, and compare vectors."""
    from memd.store import integrity  # noqa: PLC0415 - it may crash

    sqlite, apsw = integrity.sqlite_versions()
    vec, vectors = integrity.try_vectors()
    return SqliteFacts(sqlite=sqlite, apsw=apsw, keywords=integrity.try_keywords(), vectors=vectors, vec=vec)


def look_at_model() -> Model:
    """Embed a few sentences with the bundled model, and measure the vectors."""
    from memd.runtime.startup import prepare_environment  # noqa: PLC0415 - it may crash

    prepare_environment(os.environ)
    from memd.providers.local.bundled_model import ModelMissing, try_model  # noqa: PLC0415 - it imports numpy, which reads the environment

    try:
        tried = try_model()
    except ModelMissing as missing:
        return Model(fault=str(missing))
    return Model(**msgspec.structs.asdict(tried))


def look_at_qmd(
    agent: str,
    settings: AgentSettings,
    *,
    state: Path,
    environ: Mapping[str, str],
    home: Path,
    timeout_s: float,
) -> Program:
    """Find an agent's qmd and ask for its version; no data of the agent is passed to it.

    Args:
        agent: The agent's id.
        settings: The agent's settings.
        state: The daemon's state directory.
        environ: The environment of this process, which may differ from the daemon's.
        home: Replaces ~ in paths.
        timeout_s: Seconds until qmd is killed.
    """
    try:
        file = find_program(settings.qmd.command, workspace=settings.workspace, environ=environ, home=home)
    except QmdFailed as failure:
        return Program(agent=agent, fault=str(failure))
    around = qmd_environ(environ, QmdPlaces(state / "agents" / f"{agent}.qmd"), file)
    try:
        ended = asyncio.run(
            run((str(file), "--version"), what="qmd --version", environ=around, timeout_s=timeout_s)
        )
    except QmdFailed as failure:
        return Program(agent=agent, file=str(file), fault=str(failure))
    if ended.status:
        return Program(agent=agent, file=str(file), fault=f"`qmd --version` ended with status {ended.status}")
    return Program(agent=agent, file=str(file), version=plain(ended.stdout)[:80])
