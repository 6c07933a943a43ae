"""Whether the system lets this user watch and open enough files."""

from typing import Any

import msgspec
import pytest

from memd.ctl.doctor.limits import SystemLimits, check
from memd.ctl.doctor.processes import Watching
from tests.ctl.doctor.context import by_name

_MINE = 7
_GOOD = SystemLimits(
    open_files=1024, watches=1000, instances=128, used={_MINE: Watching(2, 300), 8: Watching(1, 100)}
)


@pytest.mark.parametrize(
    ("changed", "directories", "bad"),
    [
        ({}, 300, set()),
        ({}, 900, set()),  # what the daemon itself uses is no obstacle to it
        ({}, 901, {"watches"}),
        ({}, None, set()),
        ({"watches": None, "instances": None}, 10**6, set()),
        ({"instances": 3}, 1, {"instances"}),
        ({"instances": 4}, 1, set()),
        ({"open_files": 191}, 1, {"open_files"}),
        ({"open_files": None}, 1, set()),
        ({"of_daemons": {_MINE: 100}}, 1, {"open_files"}),
        ({"open_files": 100, "of_daemons": {_MINE: 1024}}, 1, set()),
    ],
)
def test_what_does_not_suffice_is_told(
    changed: dict[str, Any], directories: int | None, bad: set[str]
) -> None:
    """With the command that raises it; what the system does not limit is fine."""
    limits = msgspec.structs.replace(_GOOD, **changed)
    found = by_name(check(limits, agents=2, directories=directories, daemon=_MINE))
    assert {name.removeprefix("limits.") for name, one in found.items() if not one.ok} == bad
    for name in bad - {"open_files"}:
        assert f"sysctl fs.inotify.max_user_{name}=" in found[f"limits.{name}"].fix
