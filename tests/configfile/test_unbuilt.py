"""What is planned, against what exists."""

import msgspec
import pytest

from memd.configfile import unbuilt


@pytest.mark.parametrize("table", [*unbuilt.KEYS])
def test_a_planned_key_does_not_exist_yet(table: type[msgspec.Struct]) -> None:
    """Whoever builds a key takes it out of the plan."""
    assert not set(unbuilt.KEYS[table]) & set(table.__struct_fields__)


def test_a_planned_value_belongs_to_a_key_that_exists() -> None:
    """A value is planned for a key that takes others already."""
    for table, values in unbuilt.VALUES.items():
        assert set(values) <= set(table.__struct_fields__)
