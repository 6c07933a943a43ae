"""Where a checkup takes place in tests of what it judges."""

from pathlib import Path
from typing import Any

from memd.ctl.doctor.finding import DoctorContext, Finding
from memd.ctl.invocation import Places

HOME = Path("/home/ann")
STATE = HOME / ".local/state/memd"
CONTEXT = DoctorContext(
    places=Places(home=HOME, config=None, state=STATE, socket=STATE / "memd.sock"),
    environ={},
    platform="linux",
    uid=1000,
    flags=("--socket", "/s"),
    prefix="/venv",
)


def sound(finding: Finding) -> bool:
    """Whether a finding is right without a fix, or wrong with one; else the test fails."""
    assert bool(finding.fix) is not finding.ok, finding
    assert finding.detail
    return finding.ok


def by_name(findings: Any) -> dict[str, Finding]:
    """Findings by name, each sound."""
    assert all(sound(one) in {True, False} for one in findings)
    return {one.name: one for one in findings}
