"""A class has a name of its own in all of memd and its client, so that a search for the name finds the class."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)


@cache
def _sources() -> Mapping[Path, str]:
    """The modules of memd and its client."""
    files = (*(_ROOT / "memd").rglob("*.py"), *(_ROOT / "client").rglob("*.py"))
    return {file: file.read_text(encoding="utf-8") for file in files}


def test_class_names_are_unique() -> None:
    """Names that begin with an underscore are of one module alone, and may stand in several."""
    found = defaultdict(list)
    for file, source in _sources().items():
        for name in _CLASS.findall(source):
            if not name.startswith("_"):
                found[name].append(str(file.relative_to(_ROOT)))
    assert "WireMessage" in found
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def _raised(docstring: str) -> Iterator[str]:
    """The capitalised names before the colon, or the full stop, of each line of a section Raises."""
    _, _, section = docstring.partition("Raises:\n")
    for line in section.splitlines():
        if not line.strip():
            return
        if found := re.match(r" +((?:[A-Z][\w.]*(?:, | or )?)+)(?::|\.$|$)", line):
            yield from re.split(", | or ", found[1].rstrip("."))


def test_docstrings_name_errors_that_exist() -> None:
    """A section Raises names classes by their names of today."""
    known = {name for source in _sources().values() for name in _CLASS.findall(source)}
    known |= set(dir(builtins)) | {"Whatever"}
    named = [
        (f"{file.relative_to(_ROOT)}:{node.lineno}", name)
        for file, source in _sources().items()
        if "Raises:" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for name in _raised(ast.get_docstring(node, clean=False) or "")
    ]
    assert len(named) > 200
    unknown = [each for each in named if "." not in each[1] and each[1] not in known]
    assert unknown == []
