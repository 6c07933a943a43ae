"""What a checkup says of the service."""

from pathlib import Path

import msgspec

from memd.ctl.doctor import service
from memd.ctl.doctor.finding import DoctorContext
from memd.ctl.invocation import Places
from tests.ctl.doctor.context import CONTEXT, by_name


def _context(home: Path, **changed: object) -> DoctorContext:
    places = Places(home=home, config=None, state=home / "st", socket=home / "s")
    return msgspec.structs.replace(CONTEXT, places=places, environ={"PATH": str(home)}, **changed)


def _install(home: Path) -> list[Path]:
    found = service.look(_context(home)).installation
    assert found is not None
    for unit in found.units:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, encoding="utf-8")
    return [unit.path for unit in found.units]


def test_to_have_no_service_is_right(tmp_path: Path) -> None:
    """It is told how to have one; a system without a service manager is not to blame."""
    context = _context(tmp_path)
    found = by_name(service.check(service.look(context), context))
    assert found["service.units"].ok
    assert "memd-ctl --socket /s service install" in found["service.units"].detail
    other = _context(tmp_path, platform="freebsd14")
    (unknown,) = service.check(service.look(other), other)
    assert unknown.detail == "not checked: memd knows no service manager on freebsd14"


def test_units_that_fit_are_right(tmp_path: Path) -> None:
    """And whether they need a login is told, where somebody knows."""
    _install(tmp_path)
    context = _context(tmp_path)
    seen = service.look(context)
    found = by_name(service.check(seen, context))
    assert found["service.units"].ok
    assert found["service.login"].detail.startswith("not checked")
    away, here = (
        by_name(service.check(msgspec.structs.replace(seen, lingers=lingers), context))["service.login"]
        for lingers in (False, True)
    )
    assert "loginctl enable-linger" in away.detail
    assert here.detail == "memd runs without a login too"


def test_drift_is_wrong_with_a_remedy(tmp_path: Path) -> None:
    """Each file that is missing, changed or from somebody else; force is advised only where it is needed."""
    unit, socket = _install(tmp_path)
    context = _context(tmp_path)
    socket.unlink()
    missing = by_name(service.check(service.look(context), context))["service.units"]
    assert (missing.ok, missing.fix.endswith("service install")) == (False, True)
    assert "memd.socket is missing" in missing.detail
    unit.write_text(
        unit.read_text(encoding="utf-8").replace("RestartSec=2", "RestartSec=sk-1"), encoding="utf-8"
    )
    changed = by_name(service.check(service.look(context), context))["service.units"]
    assert "memd.service was changed since memd wrote it (RestartSec)" in changed.detail
    assert "sk-1" not in changed.detail
    assert changed.fix.endswith("service install --force")
    unit.write_text("[Service]\n", encoding="utf-8")
    assert (
        "was not written by memd"
        in by_name(service.check(service.look(context), context))["service.units"].detail
    )


def test_places_that_fit_into_no_unit_are_told(tmp_path: Path) -> None:
    """Nothing can be compared then."""
    context = _context(tmp_path / "line\nend")
    (finding,) = service.check(service.look(context), context)
    assert "cannot be told of the path" in finding.detail


def test_keys_that_others_may_read_are_told(tmp_path: Path) -> None:
    """Never what stands in their file; without one there is nothing to say."""
    _install(tmp_path)
    context = _context(tmp_path)
    assert "service.keys" not in by_name(service.check(service.look(context), context))
    keys = tmp_path / ".config" / "memd" / "env"
    keys.parent.mkdir(parents=True)
    keys.write_text("OPENAI_API_KEY=sk-1\n", encoding="utf-8")
    keys.chmod(0o644)
    found = by_name(service.check(service.look(context), context))["service.keys"]
    assert (found.ok, found.fix) == (False, f"chmod 600 {keys}")
    assert "sk-1" not in found.detail
    keys.chmod(0o600)
    assert by_name(service.check(service.look(context), context))["service.keys"].ok
