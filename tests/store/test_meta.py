"""What an index that was built for something else may be used for until it is rebuilt."""

import pytest

from memd.store.meta import Fingerprint, usable_part

WANTED = Fingerprint("c2", "t1", ("memory",), "fake", "small", "k", 8)
STORED = Fingerprint("c1", "t1", ("memory",), "fake", "large", "k", 16)


@pytest.mark.parametrize(
    ("stored", "usable"),
    [
        (STORED, Fingerprint("c1", "t1", ("memory",), "fake", "large", "k", 16, is_mixed=True)),
        (None, Fingerprint("c2", "t1", ("memory",), is_mixed=True)),
    ],
)
def test_what_is_there_is_used_and_what_is_not_is_not_begun(
    stored: Fingerprint | None, usable: Fingerprint
) -> None:
    """Its own text and vectors; where it does not say whose they are, its text."""
    assert usable_part(stored, WANTED) == usable
