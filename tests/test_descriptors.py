import os
from pathlib import Path

from tests.descriptors import open_descriptors


class _Cycle:
    """Garbage that holds a file open until it is collected."""

    def __init__(self, file: Path) -> None:
        self.itself = self
        self._descriptor = os.open(file, os.O_RDONLY)

    def __del__(self) -> None:
        os.close(self._descriptor)


def test_what_is_open_is_told(tmp_path: Path) -> None:
    """With what it leads to; the descriptor that lists them is none of them."""
    (tmp_path / "a.md").touch()
    before = open_descriptors()
    assert open_descriptors() == before
    with (tmp_path / "a.md").open() as file:
        assert set(open_descriptors()) == {*before, file.fileno()}
    assert open_descriptors() == before


def test_garbage_holds_nothing_open(tmp_path: Path) -> None:
    """What earlier tests left to the collector is closed before anybody counts."""
    (tmp_path / "a.md").touch()
    before = open_descriptors()
    _Cycle(tmp_path / "a.md")
    assert open_descriptors() == before
