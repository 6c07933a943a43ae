import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import EQUIVALENT, equivalents, noticing
from tests.mutants.copies import ROOT
from tests.mutants.faults import code_of, faults


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = (a <= b)"}),
        ("x = a == b == c", set()),
        ("x = a is None and not b", {"x = (a is not None) and not b", "x = (a is None or not b)", "x = a is None and (b)"}),
        ("x: int | None = 5 + y", {"x: int | None = 6 + y", "x: int | None = (5 - y)"}),
        ("x = min(a, b)", {"x = (max(a, b))"}),
        ("x = a if b else c", {"x = (c if b else a)"}),
        ("x = True, .5, 'text', f'{3}'", {"x = False, .5, 'text', f'{3}'", "x = True, 1.0, 'text', f'{3}'"}),
        ("if a:\n  sync()", {"if (not (a)):\n  sync()", "if a:\n  pass"}),
        ("if TYPE_CHECKING:\n  n = 1", set()),
        ("raise AssertionError('never')", set()),
        ("for a in b:\n  continue", {"for a in b:\n  pass"}),
        ("while True:\n  n += m", {"while False:\n  n += m", "while True:\n  pass"}),
        ("def f(n: 'A' = 0) -> 3:\n  '''Text.'''\n  raise B", {
            "def f(n: 'A' = 1) -> 3:\n  '''Text.'''\n  raise B",
            "def f(n: 'A' = 0) -> 3:\n  '''Text.'''\n  pass",
        }),
        ("self._log.info('x', n=1)\nawait self.close()", {"self._log.info('x', n=1)\npass"}),
        ("s = 'é' ; x = 1", {"s = 'é' ; x = 2"}),
        ("zip(a, b, strict=True)", {"pass"}),
    ],
)  # fmt: skip
def test_the_faults_of_a_source(source: str, expected: set[str]) -> None:
    """Order, choice, numbers, steps that are left out; nothing of annotations, texts and logs."""
    assert {fault.applied(source) for fault in faults(source)} == expected


def test_every_fault_of_the_product_is_a_program() -> None:
    """A source that does not parse would be noticed by anything."""
    file = ROOT / "memd" / "chunk" / "context.py"
    source = file.read_text("utf-8")
    found = faults(source)
    assert len(found) > 50
    for fault in found:
        ast.parse(fault.applied(source))
        before, after = fault.shown(source)
        assert before != after


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("memd/chunk/split.py", ["tests/chunk", "tests/golden"]),
        ("memd/sources/transcripts/codex.py", ["tests/sources", "tests/golden"]),
        ("memd/index_service.py", ["tests/test_index_service.py"]),
        ("client/memd_client/context/flush.py", ["tests/client", "tests/golden"]),
        ("memd/daemon.py", ["tests/daemon/test_daemon.py"]),
    ],
)
def test_tests_of_the_same_package_are_to_notice(tmp_path: Path, file: str, expected: list[str]) -> None:
    """And what holds for all packages; of a file in no package, those named for it."""
    for test in ("chunk/test_split", "golden/test_golden", "test_index_service", "daemon/test_daemon"):
        made = tmp_path / "tests" / f"{test}.py"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    assert noticing(file, tmp_path) == expected


def test_what_is_no_fault_is_said_of_lines_that_are_there() -> None:
    """With a reason; a line that has changed since may have become a fault."""
    for (file, old, _), reason in equivalents(EQUIVALENT.read_text("utf-8")).items():
        assert old in [code_of(line) for line in (ROOT / file).read_text("utf-8").splitlines()], (file, old)
        assert reason
