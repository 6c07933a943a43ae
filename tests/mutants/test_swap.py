import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.swap import CannotSwap, LoadedFunctions

pytestmark = pytest.mark.long  # a tool of developers, which is slow: each test starts others

_SOURCE = """\
import functools

def plain(a):
    return a + 1

class Kind:
    size = 4

    @property
    def twice(self):
        return self.size * 2

    @staticmethod
    def fixed():
        return 6

@functools.cache
def kept():
    return 7

def adding(n):
    def added(a):
        return a + n
    return added

add_8 = adding(8)
by_name = {"nine": lambda: 9, "ten": lambda: 10}
listed = [one + 11 for one in range(1)]
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "swapped.py").write_text(_SOURCE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("swapped")
    del sys.modules["swapped"]


def _swap(loaded: ModuleType, old: str, new: str) -> None:
    assert old in _SOURCE
    file = Path(str(loaded.__file__))
    LoadedFunctions(file.parent).swap(file, _SOURCE, _SOURCE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "asked", "expected"),
    [
        ("a + 1", "a - 1", "plain(1)", 0),
        (
            "return a + 1",
            "\n\n    return a - 1",
            "plain(1), by_name['ten']()",
            (0, 10),
        ),  # all lines below have moved
        ("size * 2", "size // 2", "Kind().twice", 2),
        ("return 6", "return 16", "Kind.fixed()", 16),
        ("return 7", "return 17", "kept()", 17),
        ("a + n", "a - n", "add_8(10), adding(1)(3)", (2, 2)),
        ("lambda: 9", "lambda: 19", "by_name['nine'](), by_name['ten']()", (19, 10)),
        ("return 6", "return True", "Kind.fixed() is True", True),
    ],
)
def test_functions_do_what_the_other_source_says(
    loaded: ModuleType, old: str, new: str, asked: str, expected: object
) -> None:
    """Whatever holds them: methods, what a decorator wraps, nested ones that are made already or later, those of a table."""
    _swap(loaded, old, new)
    assert eval(asked, vars(loaded)) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [("size = 4", "size = 5"), ("plain(a)", "plain(a=2)"), ("one + 11", "one + 12"), ("(8)", "(9)")],
)
def test_what_is_executed_once_is_refused(loaded: ModuleType, old: str, new: str) -> None:
    with pytest.raises(CannotSwap):
        _swap(loaded, old, new)


def test_what_is_not_loaded_is_read_by_who_loads_it(tmp_path: Path) -> None:
    LoadedFunctions(tmp_path).swap(tmp_path / "other.py", "LIMIT = 1", "LIMIT = 2")
    assert "other" not in sys.modules
