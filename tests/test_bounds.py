"""Every bound of time, size and number that is shipped is written down, and none changes unseen."""

import pytest

from tests.bounds import bounds, exercised, is_bound, no_bounds, numbers, unexercised, written


def test_every_bound_is_as_it_is_written_down() -> None:
    """Tests of what a bound does bring their own: that of the release, with a digit more or less, would pass them all."""
    now, then = bounds(), written()
    assert len(now) > 200
    told = [
        f"{name} was {then.get(name)}, is {now.get(name)}"
        for name in now | then
        if now.get(name) != then.get(name)
    ]
    assert not told, f"{'; '.join(told)}. If that is meant: python -m tests.bounds"


def test_the_bounds_that_matter_most_are_among_them() -> None:
    """Those without which a daemon that runs for months would hold memory, threads or requests without end."""
    expected = {
        "memd.backends.qmd.process.MAX_OUTPUT",
        "memd.config.load._MAX_BYTES",
        "memd.providers.local.query_thread.REPLACED",
        "memd.providers.local.query_thread.STUCK_S",
        "memd.server.acceptor.OWN",
        "memd.sources.transcripts.read_position.MAX_LINE_BYTES",
        "memd.sources.transcripts.open_transcript.MAX_UNPACKED_BYTES",
        "memd.store.connections.BUSY_TIMEOUT_MS",
        "memd.store.embedding_cache.UNSAVED",
        "memd_client.codec.REPLY_LIMIT",
        "memd_client.codec.REQUEST_LIMIT",
    }
    assert expected <= bounds().keys()


def test_every_bound_has_a_test_that_goes_to_it_or_a_reason() -> None:
    """A reason that holds no more is taken out by python -m tests.bounds."""
    known, tested, excused = bounds(), exercised(), unexercised()
    assert all(excused.values())
    assert excused.keys() <= known.keys(), f"no bounds: {sorted(excused.keys() - known.keys())}"
    missing = sorted(known.keys() - tested.keys() - excused.keys())
    assert not missing, f"no test names {', '.join(missing)}: see tests.bounds.shipped"


def test_every_number_in_capitals_is_a_bound_or_bounds_nothing() -> None:
    """Neither is missed where somebody adds a number, and none stays in the lists that is gone."""
    known, others, found = bounds().keys(), no_bounds(), numbers()
    assert all(others.values())
    assert not (both := sorted(others.keys() & known)), f"bounds, and said to be none: {both}"
    assert not (gone := sorted(others.keys() - found)), f"not in the code: {gone}"
    missing = sorted(found - known - others.keys())
    assert not missing, f"neither in bounds.json nor in no_bounds.txt: {', '.join(missing)}"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("STOP_S", 1.5, True),
        ("_MOST_CHARS", 80, True),
        ("LONGEST", 700, True),
        ("MAX_OUTPUT", 10, True),
        ("READERS", 3, True),
        ("NAMES", 3, False),
        ("ALMOST", 3, False),
        ("USERS", 3, False),
        ("IS_MAX", True, False),
        ("MAX_NAME", "x", False),
        ("max_bytes", 3, False),
    ],
)
def test_a_bound_is_known_by_its_name(name: str, value: object, *, expected: bool) -> None:
    """A unit at its end, or a word for a limit."""
    assert is_bound(name, value) is expected
