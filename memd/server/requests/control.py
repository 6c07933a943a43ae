"""Answers `reload` and `stop`, which concern the whole daemon."""

import os
from collections.abc import Awaitable, Callable

import msgspec

from memd.config.load import ConfigError
from memd.server.requests.caller import Caller, DeniedSession
from memd_client import messages as wire


class DaemonControl(msgspec.Struct, frozen=True):
    """What the daemon does when its owner asks for it."""

    stop: Callable[[], None]  # as SIGTERM does
    # As SIGHUP does; the settings that were not in force before.
    reload: Callable[[], Awaitable[tuple[str, ...]]]


async def control_daemon(
    request: wire.Reload | wire.Stop, caller: Caller, control: DaemonControl, config: str | None
) -> wire.Reloaded | wire.Stopping:
    """Stop the daemon, or load its configuration again.

    Args:
        request: Which of them.
        caller: Only the owner may.
        control: Of the daemon.
        config: The configuration file in use; None: built-in defaults.

    Raises:
        DeniedSession: a session asks, even one that nobody else reads along: it concerns all agents.
    """
    if caller.key is not None:
        raise DeniedSession("only the owner may do this")
    if isinstance(request, wire.Stop):
        control.stop()
        return wire.Stopping(pid=os.getpid())
    try:
        changed = await control.reload()
    except ConfigError as error:
        return wire.Reloaded(config=config, error=str(error))
    return wire.Reloaded(config=config, changed=list(changed))
