"""The bounds of memd, of time, size and number: what they are called, and what they are in this release.

    python -m tests.bounds    # writes them down anew, after one was changed on purpose

A bound is a number in capitals at the top of a module, whose name ends with what it counts (_S, _BYTES, _CHARS, ...) or has
a word for a limit (MOST, MAX, LONGEST, ...). Tests of the mechanism bring small ones of their own; so each shipped one is
written down in bounds.json, where a changed digit is seen.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec

import memd
import memd_client

FILE = Path(__file__).with_name("bounds.json")
_UNITS = "S|MS|NS|DAYS|BYTES|MB|CHARS|TOKENS|LINES|ROWS|PAGES|FILES|TERMS|LEVELS"
_LIMITS = "MAX|MOST|LONGEST|LARGEST|LEAST|FEWEST|LIMIT|KEPT|READERS|AT_ONCE|ATTEMPTS|TRIES|LOOKS|TOGETHER|UNSAVED|UNSTORED|REPLACED"
_ENDS_WITH_UNIT = re.compile(rf"_?[A-Z0-9_]*(?:^|_)(?:{_UNITS})")
_HAS_LIMIT = re.compile(rf"(?:^|.*_)(?:{_LIMITS})(?:_.*)?")


def is_bound(name: str, value: object) -> bool:
    """Whether a global of a module is a bound by its name and kind."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not name.isupper():
        return False
    return bool(_ENDS_WITH_UNIT.fullmatch(name) or _HAS_LIMIT.fullmatch(name))


def modules() -> Iterator[ModuleType]:
    """All of memd and its client, but what is run as a program."""
    for package in (memd, memd_client):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def bounds() -> dict[str, float]:
    """The bounds as the product has them, by module and name; each where it is assigned, not where it is imported."""
    found: dict[str, float] = {}
    for module in modules():
        source = Path(module.__file__ or "").read_text("utf-8")
        for name, value in vars(module).items():
            if is_bound(name, value) and re.search(
                rf"^(?:[A-Z0-9_, ]+, )?{name}\b[^=\n]*=", source, re.MULTILINE
            ):
                found[f"{module.__name__}.{name}"] = value
    return dict(sorted(found.items()))


def written() -> dict[str, float]:
    """The bounds as they are written down."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, int | float])


if __name__ == "__main__":
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(bounds()), indent=1) + b"\n")
