"""A class has a name of its own in all of memd and its client, so that a search for the name finds the class."""

import ast
from collections import defaultdict
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def test_class_names_are_unique() -> None:
    """Names that begin with an underscore are of one module alone, and may stand in several."""
    found = defaultdict(list)
    for file in (*(_ROOT / "memd").rglob("*.py"), *(_ROOT / "client").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(file.relative_to(_ROOT)))
    assert "WireMessage" in found
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
