"""Examines the databases of a state directory, and whether the indexes fit the configuration."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from memd.config.settings import AgentSettings
from memd.inspection.probe import Cache, KeptBackup, Store
from memd.providers.api_keys import ChoiceInputs, read_small
from memd.providers.choose import choose
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.store import migrations, read_only, recovery
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.meta import why_rebuild

T = TypeVar("T")

_NAMED = 3  # notes that are named; the rest is counted


def look_at_stores(
    state: Path, agents: Mapping[str, AgentSettings], timeout_s: float
) -> Iterator[Cache | Store]:
    """Yield the state of the cache, then of each agent's index, whether or not the agent is configured.

    Args:
        state: The state directory.
        agents: Settings by agent id; empty if the configuration is unknown.
        timeout_s: Seconds for all of them.
    """
    deadline = time.monotonic() + timeout_s
    yield look_at_cache(state, deadline - time.monotonic())
    for agent in sorted({*agents, *_agents_with_store(state)}):
        yield look_at_store(state, agent, agents.get(agent), deadline - time.monotonic())


def _agents_with_store(state: Path) -> list[str]:
    """Return the ids of agents that have an index; empty if the directory cannot be listed."""
    try:
        return sorted(file.stem for file in (state / "agents").glob("*.sqlite"))
    except OSError:
        return []


def look_at_store(state: Path, agent: str, settings: AgentSettings | None, timeout_s: float) -> Store:
    """Examine the index of one agent.

    Args:
        state: The state directory.
        agent: The agent's id.
        settings: The agent's settings; None if it is not configured.
        timeout_s: Seconds that the check may take.
    """
    file = state / "agents" / f"{agent}.sqlite"

    def fields(seen: read_only.IndexCondition) -> dict[str, object]:
        rebuild = _rebuild(seen, settings)
        return {
            **_health(seen),
            "files": seen.files,
            "chunks": seen.chunks,
            "rebuild": rebuild,
            "not_utf8": seen.not_utf8[:_NAMED],
            "not_utf8_count": len(seen.not_utf8),
            "long_front_matter": seen.long_front_matter[:_NAMED],
            "long_front_matter_count": len(seen.long_front_matter),
        }

    return Store(
        agent=agent,
        configured=settings is not None,
        **_found(file, read_only.look_at_index, timeout_s, fields),  # type: ignore[arg-type]  # fields of a Store
    )


def look_at_cache(state: Path, timeout_s: float) -> Cache:
    """Examine embeddings.sqlite in a state directory."""

    def fields(seen: read_only.CacheCondition) -> dict[str, object]:
        return {**_health(seen), "rows": seen.rows, "files": seen.files}

    file = state / "embeddings.sqlite"
    return Cache(**_found(file, read_only.look_at_cache, timeout_s, fields))  # type: ignore[arg-type]  # likewise


def _found(
    file: Path, look: Callable[[Path, float], T], timeout_s: float, fields: Callable[[T], dict[str, object]]
) -> dict[str, object]:
    """Return the fields of a Store or Cache: what was found in the database, or why it could not be examined."""
    damaged = tuple(path.name for path in recovery.kept_damaged(file))
    kept = tuple(
        KeptBackup(name=copy.path.name, bytes=copy.bytes, schema=copy.schema, made_at=copy.made_at)
        for copy in migrations.kept_copies(file)
    )
    found: dict[str, object] = {
        "file": str(file),
        "bytes": _bytes(file),
        "damaged": damaged,
        "copies": kept,
    }
    try:
        if not file.exists():
            return {**found, "exists": False}
        seen = look(file, timeout_s)
    except StoreDamaged as damage:
        return {**found, "faults": (_reason(damage, file),)}
    except read_only.LookImpossible as reason:
        return {**found, "unchecked": str(reason)}
    except (StoreUnavailable, OSError) as failure:
        return {**found, "closed": _reason(failure, file)}
    return {**found, **fields(seen)}


def _health(seen: read_only.DatabaseCondition) -> dict[str, object]:
    return {"faults": seen.faults, "schema": seen.schema, "known_schema": seen.known_schema}


def _rebuild(seen: read_only.IndexCondition, settings: AgentSettings | None) -> str | None:
    if settings is None or seen.is_newer or seen.faults or not seen.files:
        return None
    # Without a request the identity of a remote model is unknown: then only the text part is compared.
    provider = choose(settings, ChoiceInputs(os.environ, Path.home(), read_small)).provider
    wanted = wanted_fingerprint(settings, None if provider is None else provider.identity)
    return why_rebuild(seen.fingerprint, wanted)


def _reason(failure: Exception, file: Path) -> str:
    """Return the reason of a failure without the file's name, which is reported separately."""
    if isinstance(failure, OSError):
        return failure.strerror or type(failure).__name__
    return str(failure).removeprefix(f"{file}: ")


def _bytes(file: Path) -> int:
    total = 0
    for part in _parts(file):
        with contextlib.suppress(OSError):
            total += part.stat().st_size
    return total


def _parts(file: Path) -> Iterable[Path]:
    return file, Path(f"{file}-wal")
