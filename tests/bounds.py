"""The bounds of memd (limits of time, size and number): their names, and their values in this release.

    python -m tests.bounds    # writes them down anew, after one was changed on purpose

A bound is a number in capitals at the top of a module, whose name ends with what it counts (_S, _BYTES, _CHARS, ...) or has
a word for a limit (MOST, MAX, LONGEST, ...), or the default of a struct's field with such a name. One whose name does not say so
is a bound where it has a row in bounds.json, which is added by hand; every other number in capitals stands in no_bounds.txt with
the reason why it bounds nothing. Tests of the mechanism bring small ones of their own; so each
shipped one is written down in bounds.json, where a changed digit is seen, and is named by a test that goes to it (``shipped``), or
stands in bounds_unexercised.txt with the reason why none does.
"""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import msgspec

import memd
import memd_client

FILE = Path(__file__).with_name("bounds.json")
UNEXERCISED = Path(__file__).with_name("bounds_unexercised.txt")
NO_BOUNDS = Path(__file__).with_name("no_bounds.txt")
_UNITS = "S|MS|NS|DAYS|BYTES|MB|CHARS|TOKENS|LINES|ROWS|PAGES|FILES|TERMS|LEVELS"
_LIMITS = "MAX|MOST|LONGEST|LARGEST|LEAST|FEWEST|LIMIT|KEPT|READERS|AT_ONCE|ATTEMPTS|TRIES|LOOKS|TOGETHER|UNSAVED|UNSTORED|REPLACED|CANDIDATES|OUTCOMES|SEARCHES|DEATHS|EXPLAINED|IN_FLIGHT|AT_WORK|WARM_KEYS|RELOADS|DEEPEST|REQUEST_TEXTS|CONCURRENCY"
_ENDS_WITH_UNIT = re.compile(rf"_?[A-Z0-9_]*(?:^|_)(?:{_UNITS})")
_HAS_LIMIT = re.compile(rf"(?:^|.*_)(?:{_LIMITS})(?:_.*)?")


def is_bound(name: str, value: object) -> bool:
    """Return whether a global of a module is a bound, by its name and type."""
    return _is_constant(name, value) and bool(_ENDS_WITH_UNIT.fullmatch(name) or _HAS_LIMIT.fullmatch(name))


def _is_constant(name: str, value: object) -> bool:
    return name.isupper() and isinstance(value, int | float) and not isinstance(value, bool)


def modules() -> Iterator[ModuleType]:
    """Return all modules of memd and its client, except programs."""
    for package in (memd, memd_client):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def bounds() -> dict[str, float]:
    """Return the bounds in the code by module and name, each in the module that assigns it."""
    by_hand = written().keys()
    found: dict[str, float] = {}
    for module in modules():
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                found |= {
                    f"{module.__name__}.{kind.__name__}.{field}": value
                    for field, value in _defaults(kind)
                    if value and is_bound(field.upper(), value)  # 0 is where something begins, or no limit
                }
        source = Path(module.__file__ or "").read_text("utf-8")
        for name, value in vars(module).items():
            full_name = f"{module.__name__}.{name}"
            is_meant = full_name in by_hand and _is_constant(name, value)
            if (is_meant or is_bound(name, value)) and re.search(
                rf"^(?:[A-Z0-9_, ]+, )?{name}\b[^=\n]*=", source, re.MULTILINE
            ):
                found[full_name] = value
    return dict(sorted(found.items()))


def numbers() -> frozenset[str]:
    """Return the constants to which a module or a class assigns a number or arithmetic on numbers, with module and class."""
    found = set[str]()
    for package in (memd, memd_client):
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            module = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
            found.update(f"{module}.{name}" for name in _numbers_in(ast.parse(file.read_text("utf-8")).body))
    return frozenset(found)


def _numbers_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Return the names of constants with numbers in a module or a class, those of its classes included."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=kind):
                yield from (f"{kind}.{name}" for name in _numbers_in(statement.body))
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from (
                    name.id for name, value in zip(names, values, strict=True) if _is_named(name, value)
                )
            case ast.Assign(targets=[name], value=value) | ast.AnnAssign(target=name, value=value):
                if value is not None and _is_named(name, value):
                    yield name.id
            case _:
                pass


def _is_named(name: ast.expr, value: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(name, ast.Name) and name.id.isupper() and _is_number(value)


def _is_number(value: ast.expr) -> bool:
    """Return whether an expression is a number, or computed from numbers and constants of its module."""
    match value:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Name(id=name):
            return name.isupper()
        case _:
            return False


def _defaults(kind: type) -> Iterator[tuple[str, Any]]:
    """Return the fields of a struct with default values."""
    if issubclass(kind, msgspec.Struct) and (values := kind.__struct_defaults__):
        yield from zip(kind.__struct_fields__[-len(values) :], values, strict=True)


def written() -> dict[str, float]:
    """Return the bounds that tests/bounds.json lists."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, int | float])


def shipped(name: str) -> Any:
    """Return the value of a bound in this release, for a test that reaches and exceeds it.

    Args:
        name: With its module, and its struct if it is a default, written out where this is called: so it is known which test
            exercises it.
    """
    place, _, bound = name.rpartition(".")
    owner = pkgutil.resolve_name(place)
    value = dict(_defaults(owner))[bound] if isinstance(owner, type) else getattr(owner, bound)
    assert is_bound(bound.upper(), value) or name in written(), name
    return value


def exercised() -> Mapping[str, frozenset[str]]:
    """Return by bound the test files that name it: in shipped("..."), or in an import."""
    known, found = bounds(), defaultdict[str, set[str]](set)
    constants = {name.rpartition(".")[2] for name in known}
    tests = Path(__file__).parent
    for file in tests.rglob("test_*.py"):
        text = file.read_text("utf-8")
        if "shipped(" not in text and constants.isdisjoint(re.findall(r"\b[A-Z_][A-Z0-9_]+\b", text)):
            continue  # most have none: to parse them all takes three seconds
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level == 0
            for alias in node.names
        }
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) if name in imported:
                    meant = imported[name]
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module in imported:
                    meant = f"{imported[module]}.{name}"
                case ast.Call(func=ast.Name(id="shipped"), args=[ast.Constant(value=str(name))]):
                    meant = name
                case _:
                    continue
            if meant in known:
                found[meant].add(file.relative_to(tests).as_posix())
    return {name: frozenset(files) for name, files in found.items()}


def unexercised() -> Mapping[str, str]:
    """Return by bound why no test reaches it: in the file, a line with the reason precedes the indented bounds."""
    found, reason = {}, ""
    for line in UNEXERCISED.read_text("utf-8").splitlines():
        if line.startswith("    "):
            found[line.strip()] = reason
        elif line:
            reason = line
    return found


def no_bounds() -> Mapping[str, str]:
    """Return by name, as in ``numbers``, why a constant bounds nothing."""
    lines = NO_BOUNDS.read_text("utf-8").splitlines()
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}


if __name__ == "__main__":
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(bounds()), indent=1) + b"\n")
    tested = exercised()
    kept = [line for line in UNEXERCISED.read_text("utf-8").splitlines() if line.strip() not in tested]
    UNEXERCISED.write_text("\n".join(kept) + "\n", "utf-8")
