"""While files turn into ways out of the fence, nothing that lies outside gets in."""

from pathlib import Path

from tests.security.race import Race

SECONDS = 3.0
# Otherwise it was no race.
LEAST = {"read": 50, "missing": 20, "searches by builtin": 3, "passes": 5, "prompts": 10, "notes": 5}


def test_nothing_outside_is_told_while_files_are_swapped(home: Path) -> None:
    """Notes, extra paths, transcripts plain, packed and archived, and what an agent reads and writes by itself.

    Neither replies nor prompts, the index, the log or the embedding provider get a word of what lies outside, nothing is
    written there, and with everything in its place again everything is found.
    """
    tally = Race(home, copied=False).run(SECONDS, seed=1, least=LEAST)
    assert tally.leaks == []
    assert {what: count for what, count in LEAST.items() if tally.done[what] < count} == {}, tally
    assert tally.total_swaps > 100, tally
    assert tally.mounts["mount"] > 50, tally
