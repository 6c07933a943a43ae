"""Tries what an installation contains or needs: SQLite with its extension, the bundled model, qmd.

Native libraries are imported by the function that tries them, so that only its child process crashes with
them.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memd.backends.qmd.installation import QmdPlaces, find_program, qmd_environ
from memd.backends.qmd.process import QmdFailed, plain, run
from memd.config.settings import AgentSettings
from memd.inspection.probe import ModelSelftest, Program, SqliteFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# (a question, its answer, an unrelated text), in English and in Chinese
_SENTENCES = (
    (
        "Which database did we choose for the new service?",
        "We decided to store everything in PostgreSQL, since the team knows it.",
        "The cat has slept on the warm windowsill all afternoon.",
    ),
    (
        "新服务我们选了哪个数据库?",
        "我们决定把所有数据存进 PostgreSQL,因为团队熟悉它。",
        "猫在温暖的窗台上睡了一个下午。",
    ),
)


def look_at_sqlite() -> SqliteFacts:
    """Try SQLite: find a word, and compare vectors."""
    from memd.store import integrity  # noqa: PLC0415 - it may crash

    sqlite, apsw = integrity.sqlite_versions()
    vec, vectors = integrity.try_vectors()
    return SqliteFacts(sqlite=sqlite, apsw=apsw, keywords=integrity.try_keywords(), vectors=vectors, vec=vec)


def look_at_model() -> ModelSelftest:
    """Embed a few sentences with the bundled model, and measure the vectors."""
    from memd.runtime.startup import prepare_environment  # noqa: PLC0415 - it may crash

    prepare_environment(os.environ)
    from memd.providers.local import bundled_model  # noqa: PLC0415 - it imports numpy, which reads the environment

    began = time.perf_counter()
    try:
        version, model = bundled_model.find().version, bundled_model.load()
    except bundled_model.ModelMissing as missing:
        return ModelSelftest(fault=str(missing))
    loaded = time.perf_counter()
    rows: list[NDArray[np.float32]] = []
    for question, answer, other in _SENTENCES:
        rows += [model.query(question), model.passage(answer), model.passage(other)]
    ended = time.perf_counter()
    return _measured(version, rows, 1000 * (loaded - began), 1000 * (ended - loaded) / len(rows))


def _measured(
    version: str, rows: "list[NDArray[np.float32]]", load_ms: float, embed_ms: float
) -> ModelSelftest:
    import numpy as np  # noqa: PLC0415 - it reads the environment

    finite = all(bool(np.isfinite(row).all()) for row in rows)
    lengths = [float(np.linalg.norm(row)) for row in rows]
    directed = finite and all(lengths)
    cosines = [
        (float(question @ answer), float(question @ other))
        for question, answer, other in (
            [row / length for row, length in zip(rows[at : at + 3], lengths[at : at + 3], strict=True)]
            for at in range(0, len(rows) if directed else 0, 3)
        )
    ]
    related, unrelated = min(cosines, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    return ModelSelftest(
        version=version,
        dimensions=min(row.shape[-1] for row in rows),
        finite=finite,
        length=max(lengths, key=lambda length: abs(length - 1)) if finite else 0.0,
        related=related,
        unrelated=unrelated,
        load_ms=round(load_ms, 1),
        embed_ms=round(embed_ms, 1),
    )


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
