"""Checks the servers of shared memories, and what this machine may use there."""

from collections.abc import Iterator, Mapping

import msgspec

from memd.config.settings import Config, SharedServer
from memd.ctl.doctor.finding import DoctorContext, Finding, failed, passed, unchecked
from memd.ctl.output.humanize import one_line
from memd.inspection.probe import ProbeResult
from memd.postgres.connection import (
    MemorySummary,
    SharedUnavailable,
    connect,
    find_state,
    read_dsn,
    summaries,
    troubles,
)


class ServerLook(msgspec.Struct, frozen=True):
    """The state of one server."""

    name: str  # in the configuration
    troubles: tuple[str, ...]  # why it must not be used, the most important first
    role: str = ""
    is_replica: bool = False
    memories: tuple[MemorySummary, ...] = ()


def look(servers: Mapping[str, SharedServer]) -> Iterator[ServerLook]:
    """Query each server in turn."""
    for name, server in sorted(servers.items()):
        try:
            with connect(read_dsn(server.dsn_file)) as connection:
                state = find_state(connection)
                found = tuple(troubles(state))
                memories = () if found else tuple(summaries(connection))
        except SharedUnavailable as failure:
            yield ServerLook(name, (str(failure),))
        else:
            yield ServerLook(name, found, state.role, state.is_replica, memories)


def check(config: Config | None, result: ProbeResult | None, context: DoctorContext) -> Iterator[Finding]:
    """Report on each server, and on each memory that agents use there."""
    if config is None or result is None:
        return
    looks = {one.name: one for one in result.of(ServerLook)}
    for name in sorted(config.shared):
        seen, at = looks.get(name), f"shared.{name}"
        if seen is None:
            yield failed(
                at,
                f"it cannot be looked at: {result.reason}",
                "Look whether the server runs, and can be reached.",
            )
        elif seen.troubles:
            yield failed(
                at,
                one_line("; ".join(seen.troubles)),
                f"See {context.ctl('help', 'shared')} and {config.shared[name].dsn_file}.",
            )
        else:
            yield _check_memories(at, seen, config, context)


def _check_memories(at: str, seen: ServerLook, config: Config, context: DoctorContext) -> Finding:
    """Check whether the role may do what the configured agents need."""
    agents = config.agents.values()
    searched = {one.shared.memory for one in agents if one.shared.server == seen.name}
    searched |= {one.memory for agent in agents for one in agent.include if one.server == seen.name}
    published = {one.publish.memory for one in agents if one.publish.to == seen.name}
    granted = {one.name: one.may_write for one in seen.memories}
    missing = [
        f"{name} is not granted to {seen.role}" for name in sorted((searched | published) - granted.keys())
    ]
    missing += [
        f"{name} is granted to {seen.role} for reading only"
        for name in sorted(published)
        if granted.get(name) is False
    ]
    if missing:
        return failed(
            at, "; ".join(missing), f"An administrator of the server runs {context.ctl('shared', 'grant')}."
        )
    if seen.is_replica and published:
        return failed(
            at, "it is a replica, which only reads", "Name the primary in the DSN of what is published."
        )
    if not granted:
        return unchecked(at, f"no memory is granted to {seen.role}")
    return passed(at, f"{seen.role} may use {', '.join(sorted(granted))}")
