"""Whether the system lets this user watch and open enough files."""

import resource
from collections.abc import Mapping

import msgspec

from memd.ctl.doctor import processes
from memd.ctl.doctor.finding import Finding, right, unchecked, wrong
from memd.ctl.doctor.processes import Watching

# A writer and three readers, each with the file, its log and its shared memory; a scan that goes deep; spare ones.
_FILES_AN_AGENT = 32
_FILES_ANYWAY = 128  # the cache, the model, the watcher, and some dozen clients
_WATCHES_WANTED = 524_288
_INSTANCES_WANTED = 1024


class SystemLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the system allows, and what is used of it."""

    open_files: int | None  # of this process; None: no limit
    of_daemons: Mapping[int, int] = {}  # open files, by pid
    watches: int | None = None  # of this user; None: the system has no such limit
    instances: int | None = None
    used: Mapping[int, Watching] = {}  # by pid


def look(uid: int) -> SystemLimits:
    """What the system allows this process and its user."""
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    watches = processes.number("fs/inotify/max_user_watches")
    return SystemLimits(
        open_files=None if own == resource.RLIM_INFINITY else own,
        of_daemons={
            pid: limit for pid in processes.daemons(uid) if (limit := processes.open_files_limit(pid))
        },
        watches=watches,
        instances=processes.number("fs/inotify/max_user_instances"),
        used={} if watches is None else processes.watching(uid),
    )


def check(limits: SystemLimits, *, agents: int, directories: int | None, daemon: int | None) -> list[Finding]:
    """Open files, inotify watches and inotify instances.

    Args:
        limits: What the system allows.
        agents: How many agents there are.
        directories: How many directories they want watched; None: not known.
        daemon: The pid of the daemon, whose own use is no obstacle to it.
    """
    return [
        _open_files(limits, agents, daemon),
        _watches(limits, directories, daemon),
        _instances(limits, agents, daemon),
    ]


def _open_files(limits: SystemLimits, agents: int, daemon: int | None) -> Finding:
    name, needed = "limits.open_files", _FILES_ANYWAY + _FILES_AN_AGENT * agents
    allowed = limits.open_files if daemon is None else limits.of_daemons.get(daemon, limits.open_files)
    if allowed is None:
        return right(name, "no limit")
    detail = f"{allowed:,} may be open, {needed:,} may be needed"
    if allowed >= needed:
        return right(name, detail)
    return wrong(
        name,
        detail,
        f"Raise it before the daemon starts: ulimit -n {max(1024, needed)} "
        "(a service: LimitNOFILE= in its unit).",
    )


def _watches(limits: SystemLimits, directories: int | None, daemon: int | None) -> Finding:
    name = "limits.watches"
    if limits.watches is None:
        return unchecked(name, "this system has no such limit")
    if directories is None:
        return unchecked(name, "it is not known how many directories there are")
    others = sum(each.watches for pid, each in limits.used.items() if pid != daemon)
    detail = f"{directories:,} directories to watch, {others:,} of {limits.watches:,} watches used by others"
    fits = others + directories <= limits.watches
    return _inotify(
        name, detail, fits=fits, setting="max_user_watches", wanted=max(_WATCHES_WANTED, 2 * directories)
    )


def _instances(limits: SystemLimits, agents: int, daemon: int | None) -> Finding:
    name = "limits.instances"
    if limits.instances is None:
        return unchecked(name, "this system has no such limit")
    others = sum(each.instances for pid, each in limits.used.items() if pid != daemon)
    # One for each agent, and one while a watcher is made anew.
    needed = agents + 1
    detail = f"{needed} watchers needed, {others} of {limits.instances} used by others"
    fits = others + needed <= limits.instances
    wanted = max(_INSTANCES_WANTED, 2 * (others + needed))
    return _inotify(name, detail, fits=fits, setting="max_user_instances", wanted=wanted)


def _inotify(name: str, detail: str, *, fits: bool, setting: str, wanted: int) -> Finding:
    if fits:
        return right(name, detail)
    return wrong(
        name,
        f"{detail}: changes would be looked for every few seconds, not seen as they happen",
        f"sudo sysctl fs.inotify.{setting}={wanted} (and a line of that in /etc/sysctl.d/memd.conf)",
    )
