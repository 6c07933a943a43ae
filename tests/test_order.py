"""Where slow tests stand among others."""

from tests.order import spread


def ordered(*names: str) -> str:
    """The names of items in order; the first letter is their file, and capitals are slow."""
    return " ".join(spread(names, lambda name: name[0], str.isupper))


def test_slow_files_lie_evenly_among_the_others() -> None:
    """Each kind keeps its order."""
    assert ordered("A", "B", "C", "d", "e", "f") == "A d B e C f"
    assert ordered("a", "b", "c", "d", "E", "F") == "a E b c F d"


def test_a_file_stays_together() -> None:
    """Its tests may share a daemon."""
    assert ordered("A1", "A2", "b1", "b2", "c1", "C1", "A3") == "b1 b2 A1 A2 A3 c1 C1"


def test_a_long_file_lies_about_its_middle() -> None:
    """One with half of all slow tests takes the room of half of the others."""
    assert ordered("A1", "A2", "A3", "B", "C", "D", "e", "f", "g", "h") == "e A1 A2 A3 f B g C h D"


def test_one_kind_stays_as_it_is() -> None:
    """As when the tests of one directory are run."""
    assert ordered("C1", "A1", "B1") == "C1 A1 B1"
    assert ordered("c1", "a1", "b1") == "c1 a1 b1"
    assert ordered() == ""
