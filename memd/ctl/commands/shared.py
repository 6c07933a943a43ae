"""memd-ctl shared: administers memories that several machines share on a PostgreSQL server."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from memd.config.check import MEMORY_NAME
from memd.config.load import load
from memd.config.settings import SharedServer
from memd.ctl.atomic_write import write_text
from memd.ctl.failures import BAD_CONFIG, BUSY, NOT_FOUND, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, shown, visible
from memd.ctl.output.terminal import Outcome
from memd.postgres import administration
from memd.postgres.connection import (
    DriverMissing,
    MemorySummary,
    SharedRefused,
    SharedUnavailable,
    check,
    connect,
    find_state,
    read_dsn,
    summaries,
)


class SharedInit(msgspec.Struct, frozen=True):
    """The steps that were done or would be done, as --json prints them."""

    steps: list[str]
    done: bool


class SharedStatus(msgspec.Struct, frozen=True):
    """The state of a server for a member, as --json prints it."""

    shared: str
    role: str
    server: int
    pgvector: str | None
    replica: bool
    memories: list[MemorySummary]


def run_shared(invocation: Invocation) -> Outcome:
    """Run the action of the command line."""
    member = getattr(invocation.options, "member", None)
    if member is not None and not administration.MEMBER.fullmatch(member):
        raise UsageError(
            f"{visible(member)} is no name for a member: a-z, digits and _, at most 40, a letter first"
        )
    match invocation.options.action:
        case "init":
            return _init(invocation)
        case "grant":
            return _grant(invocation)
        case "revoke":
            return _revoke(invocation)
        case _:
            return _status(invocation)


def _init(invocation: Invocation) -> Outcome:
    options = invocation.options
    published = list(_published(invocation))
    with _administrator(invocation) as connection:
        if options.print or not options.yes:
            steps = administration.plan(connection)
            connection.rollback()
        else:
            steps = administration.carry_out(connection)
            _grant_itself(options.member, published, connection)
    home = invocation.places.home
    own = [
        f"let {options.member} publish {memory}, and write the connection string to {shown(server.dsn_file, home)}"
        for server, memory in published
    ]
    report = SharedInit([*(step.what for step in steps), *own], done=bool(options.yes and not options.print))
    if not steps and not own:
        return Outcome(report, "Everything exists already.")
    if options.print:
        return Outcome(report, "\n\n".join(f"-- {step.what}\n{step.sql};" for step in steps))
    listed = "\n".join(f"  {what}" for what in report.steps)
    if report.done:
        return Outcome(report, f"Done:\n{listed}\nNext: memd-ctl shared grant MEMBER MEMORY read ...")
    return Outcome(
        report, f"This would be done:\n{listed}\n--print shows the SQL, --yes does it. Nothing has changed."
    )


def _published(invocation: Invocation) -> Iterator[tuple[SharedServer, str]]:
    """Yield the memories that this machine publishes according to its configuration, if their DSN file is missing."""
    config = load(invocation.places.config, invocation.environ, invocation.places.home)
    for name, server in config.shared.items():
        if invocation.options.shared in {None, name} and not os.path.lexists(server.dsn_file):
            publishing = {one.publish.memory for one in config.agents.values() if one.publish.to == name}
            yield from ((server, memory) for memory in sorted(publishing))


def _grant_itself(member: str, published: Iterable[tuple[SharedServer, str]], connection: Any) -> None:
    """Grant this machine the right to publish its memories, and write the DSN files."""
    for server, memory in published:
        is_first = not os.path.lexists(server.dsn_file)
        made = administration.grant(connection, member, memory, may_write=True, new_password=is_first)
        if made.dsn is not None:
            write_text(server.dsn_file, made.dsn + "\n")


def _grant(invocation: Invocation) -> Outcome:
    options = invocation.options
    if not MEMORY_NAME.fullmatch(options.memory):
        raise UsageError(
            f"{options.memory} is no name for a memory: words such as alice/main, of letters, digits, . - and _"
        )
    out = None if options.dsn_file is None else _absolute(options.dsn_file)
    if out is not None and os.path.lexists(out) and not options.force:
        raise UsageError(f"{shown(out, invocation.places.home)} is there already", "--force replaces it.")
    may_write = options.rights == "write"
    with _administrator(invocation) as connection:
        if out is None and not administration.can_log_in(connection, options.member):
            raise UsageError(
                f"{options.member} has no DSN yet", "Name the file that it is to be written to: --dsn-file."
            )
        made = administration.grant(
            connection, options.member, options.memory, may_write=may_write, new_password=out is not None
        )
    remark = ""
    if out is not None and made.dsn is not None:
        write_text(out, made.dsn + "\n")
        remark = (
            f" {shown(out, invocation.places.home)} has the DSN, with its password: take the file to the machine of"
            f" {options.member} over a private channel."
        )
    what = "publish and search" if may_write else "search"
    data = {
        "role": made.role,
        "memory": options.memory,
        "rights": options.rights,
        "dsn_file": None if made.dsn is None else str(out),
    }
    return Outcome(data, f"{options.member} may {what} {options.memory}.{remark}")


def _revoke(invocation: Invocation) -> Outcome:
    options = invocation.options
    with _administrator(invocation) as connection:
        taken = administration.revoke(connection, options.member, options.memory)
    if not taken:
        raise Failed("not_found", f"{options.member} had no such right.", exit_code=NOT_FOUND)
    what = options.memory or ("a memory" if taken == 1 else f"{taken} memories")
    return Outcome({"member": options.member, "taken": taken}, f"{options.member} may no longer use {what}.")


def _status(invocation: Invocation) -> Outcome:
    name, server = _server(invocation)
    with _told(), connect(read_dsn(server.dsn_file)) as connection:
        state = find_state(connection)
        check(state)
        found = summaries(connection)
    report = SharedStatus(name, state.role, state.server, state.vector, state.is_replica, found)
    lines = [
        f"{name}: PostgreSQL {state.server // 10_000}.{state.server % 10_000}, pgvector {state.vector}, as {state.role}"
        + (" (a replica: it can be searched, not published to)" if state.is_replica else "")
    ]
    lines += [_line(one) for one in found] or ["  no memory is granted to this role"]
    return Outcome(report, "\n".join(lines))


def _line(one: MemorySummary) -> str:
    when = "never published" if one.published_at is None else f"published {one.published_at}"
    rights = "may publish" if one.may_write else "may search"
    vectors = "" if one.vectors == one.chunks else f", {one.vectors} with a vector"
    return f"  {one.name}: {rights}; {counted(one.files, 'file')}, {counted(one.chunks, 'chunk')}{vectors}; {when}"


def _server(invocation: Invocation) -> tuple[str, SharedServer]:
    """Return the name and settings of the server that the command line means.

    Raises:
        UsageError: there is none, or there are several and none was named.
    """
    servers = load(invocation.places.config, invocation.environ, invocation.places.home).shared
    wanted = invocation.options.shared
    if wanted is None and len(servers) == 1:
        wanted = next(iter(servers))
    if wanted in servers:
        return wanted, servers[wanted]
    if not servers:
        raise UsageError(
            "The configuration names no server.", 'Add: [shared.team] dsn_file = "~/.config/memd/team.dsn"'
        )
    raise UsageError(f"The servers are: {', '.join(sorted(servers))}.", "Name one with --shared.")


@contextmanager
def _administrator(invocation: Invocation) -> Iterator[Any]:
    """Connect as the administrator within the context."""
    with _told(), connect(read_dsn(_absolute(invocation.options.admin_dsn_file))) as connection:
        yield connection


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except DriverMissing as failure:
        raise Failed("shared_refused", str(failure), exit_code=BAD_CONFIG) from failure
    except SharedRefused as failure:
        hint = "`memd-ctl help shared` says what the server, the roles and the DSN must be like."
        raise Failed("shared_refused", str(failure), hint, exit_code=BAD_CONFIG) from failure
    except SharedUnavailable as failure:
        raise Failed("shared_unavailable", str(failure), exit_code=BUSY) from failure


def _absolute(file: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(file)))  # noqa: PTH100, PTH111  Path.absolute keeps `..`
