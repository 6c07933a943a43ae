"""What each worker compiles before it imports tests."""

import sys
from pathlib import Path

import pytest

from tests.bytecode import bytecode_of, compile_share, sources

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of three modules that can be compiled, one that cannot, and one of tests."""
    texts = {
        "memd/part/a.py": "A = 1\n",
        "client/memd_client/b.py": "B = 2\n",
        "tests/helper.py": "C = 3\n",
        "tests/broken.py": "def (\n",
        "tests/test_it.py": "def test_it():\n    assert [1] == [2]\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_every_file_is_compiled_by_one_worker(project: Path) -> None:
    """And none a second time; what cannot be compiled is left to its import, and tests are left to pytest."""
    shares = [compile_share(number, 3, project) for number in range(3)]
    assert sorted(shares) == [1, 1, 2]
    without = [file.name for file in project.rglob("*.py") if not bytecode_of(file).exists()]
    assert sorted(without) == ["broken.py", "test_it.py"]
    assert sum(compile_share(number, 3, project) for number in range(3)) == 1


def test_where_no_bytecode_is_kept_none_is_made(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python was told."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compile_share(0, 1, project) == 0
    assert not any(bytecode_of(file).exists() for file in sources(project))


def test_all_that_tests_import_is_among_it() -> None:
    """Modules of memd, of the client, and helpers of tests."""
    names = {str(file.relative_to(ROOT)) for file in sources()}
    assert {"memd/__main__.py", "client/memd_client/codec.py", "tests/order.py"} < names
    assert "tests/conftest.py" not in names
