"""Checks whether memd starts at login, with units that fit this installation."""

import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.ctl.doctor.finding import DoctorContext, Finding, failed, passed, quoted, unchecked
from memd.ctl.failures import Failed
from memd.ctl.output.humanize import listed
from memd.ctl.service.installation import ServiceInstallation, find_installation
from memd.ctl.service.manager import ENABLE_LINGER, lingers
from memd.ctl.service.supervisor import InstalledUnits, config_home

_UNITS, _LOGIN, _KEYS = "service.units", "service.login", "service.keys"


class SeenService(msgspec.Struct, frozen=True):
    """The installed service."""

    installation: ServiceInstallation | None  # None: the platform has no supported service manager
    lingers: bool | None = None  # None: unknown
    keys: Path | None = None  # the file with keys for the service
    keys_mode: int | None = None  # its mode; None: it does not exist
    fault: str | None = None  # why no units can be created for these places


def look(context: DoctorContext) -> SeenService:
    """Read the files; the manager is only asked whether it needs a login."""
    try:
        found = find_installation(context.environ, context.places, platform=context.platform)
    except Failed as failed:
        return SeenService(None, fault=failed.message)
    if found is None or not found.is_installed or found.supervisor.name != "systemd":
        return SeenService(found)
    keys = config_home(context.environ, context.places.home) / "memd" / "env"
    try:
        mode = stat.S_IMODE(keys.stat().st_mode)
    except OSError:
        mode = None
    return SeenService(found, lingers(context.uid, context.environ), keys, mode)


def check(seen: SeenService, context: DoctorContext) -> list[Finding]:
    """Check unit files, start at login, and the file with keys. Pure."""
    found = seen.installation
    if seen.fault is not None:
        return [unchecked(_UNITS, seen.fault)]
    if found is None:
        return [unchecked(_UNITS, f"memd knows no service manager on {context.platform}")]
    name = found.supervisor.name
    if not found.is_installed:
        return [
            passed(
                _UNITS,
                f"memd is not a service of {name}; to have it started at login: {context.ctl('service', 'install')}",
            )
        ]
    return [_units(found, context), *_login(seen.lingers), *_keys(seen, context)]


def _units(found: ServiceInstallation, context: DoctorContext) -> Finding:
    wanted = {unit.path for unit in found.units}
    bad = [
        one
        for one in found.installed
        if one.state != "current" and (one.state != "missing" or one.path in wanted)
    ]
    if not bad:
        return passed(_UNITS, f"{context.shown(found.main.path)} is as this memd-ctl writes it")
    force = ["--force"] if any(one.state in {"edited", "foreign"} for one in bad) else []
    return failed(
        _UNITS,
        "\n".join(_drift(one, context) for one in bad),
        f"Write it again: {context.ctl('service', 'install', *force)}",
    )


def _keys(seen: SeenService, context: DoctorContext) -> list[Finding]:
    if seen.keys is None or seen.keys_mode is None:
        return []
    name = context.shown(seen.keys)
    if seen.keys_mode & 0o077:
        return [
            failed(
                _KEYS,
                f"{name} is for keys, and others than its owner may read it (mode {seen.keys_mode:04o})",
                f"chmod 600 {quoted(seen.keys)}",
            )
        ]
    return [passed(_KEYS, f"{name}, mode {seen.keys_mode:04o}")]


_STATES: Mapping[str, str] = {
    "missing": "is missing",
    "outdated": "is for another installation or other places than this memd-ctl",
    "edited": "was changed since memd wrote it",
    "foreign": "was not written by memd",
}


def _drift(one: InstalledUnits, context: DoctorContext) -> str:
    differs = f" ({listed(one.differing)})" if one.differing and one.state != "foreign" else ""
    state = _STATES.get(one.state) or f"cannot be read: {one.reason}"
    return f"{context.shown(one.path)} {state}{differs}"


def _login(lingers: bool | None) -> list[Finding]:
    match lingers:
        case True:
            return [passed(_LOGIN, "memd runs without a login too")]
        case False:
            return [
                passed(
                    _LOGIN, f"memd runs while its user is logged in; to have it run always: {ENABLE_LINGER}"
                )
            ]
        case None:
            return [unchecked(_LOGIN, "this system does not report whether services need a login")]
