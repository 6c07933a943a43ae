"""What each worker compiles before it imports tests."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from tests.bytecode import bytecode_of, compile_share, sources

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of four modules that can be compiled, and one that cannot."""
    texts = {
        "memd/part/a.py": "A = 1\n",
        "client/memd_client/b.py": "B = 2\n",
        "tests/test_rewritten.py": "def test_it():\n    assert [1] == [2]\n",
        "tests/helper.py": "C = 3\n",
        "tests/test_broken.py": "def (\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_every_file_is_compiled_by_one_worker(project: Path, pytestconfig: pytest.Config) -> None:
    """And none a second time; what cannot be compiled is left to its import."""
    shares = [compile_share(pytestconfig, number, 3, project) for number in range(3)]
    assert sorted(shares) == [1, 2, 2]
    without = [file.name for file in sources(project) if not bytecode_of(file).exists()]
    assert without == ["test_broken.py"]
    assert sum(compile_share(pytestconfig, number, 3, project) for number in range(3)) == 1


def test_the_asserts_of_tests_are_rewritten(
    project: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are what pytest would have compiled, and takes without doing so again."""
    compile_share(pytestconfig, 0, 1, project)
    made = bytecode_of(project / "tests" / "test_rewritten.py")
    written = made.stat().st_mtime_ns
    monkeypatch.syspath_prepend(project / "tests")
    module = importlib.import_module("test_rewritten")
    monkeypatch.delitem(sys.modules, "test_rewritten")
    with pytest.raises(AssertionError, match="At index 0 diff: 1 != 2"):
        module.test_it()
    assert made.stat().st_mtime_ns == written


def test_a_file_that_is_no_test_is_compiled_as_python_does_it(
    project: Path, pytestconfig: pytest.Config
) -> None:
    """Where Python looks for it."""
    compile_share(pytestconfig, 0, 1, project)
    for name in ("memd/part/a.py", "tests/helper.py"):
        assert Path(importlib.util.cache_from_source(str(project / name))).exists()


def test_where_no_bytecode_is_kept_none_is_made(
    project: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Python was told."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compile_share(pytestconfig, 0, 1, project) == 0
    assert not any(bytecode_of(file).exists() for file in sources(project))


def test_all_that_tests_import_is_among_it() -> None:
    """Modules of memd, of the client, and of tests."""
    names = {str(file.relative_to(ROOT)) for file in sources()}
    assert {"memd/__main__.py", "client/memd_client/codec.py", "tests/conftest.py", "tests/order.py"} < names
