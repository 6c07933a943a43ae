"""Replaces the code of functions that are loaded already by that of another source."""

import gc
import sys
from collections.abc import Iterator, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType

_Key = tuple[str, str, int, bytes]


class CannotSwap(Exception):
    """The change has an effect outside of functions: on what a module or a class executes once."""


class LoadedFunctions:
    """The functions below a directory that this process has loaded.

    They are looked up once: the garbage collection goes through all objects for it.
    """

    def __init__(self, root: Path) -> None:
        self._of: dict[_Key, list[FunctionType]] = {}
        gc.unfreeze()  # what is frozen is not listed
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(f"{root}/"):
                self._of.setdefault(_key(one.__code__), []).append(one)
        gc.freeze()

    def swap(self, file: Path, old: str, new: str) -> None:
        """Have the functions of a file do what the new source says.

        Raises:
            CannotSwap: what differs is a default, a constant of a module, the body of a class or a variable that a nested function shares.
        """
        if not any(getattr(module, "__file__", None) == str(file) for module in list(sys.modules.values())):
            return  # whoever imports it reads the file
        codes = [compile(source, str(file), "exec", dont_inherit=True) for source in (old, new)]
        for before, after, is_outermost in list(_changes(*codes, is_outermost=False)):
            functions = self._of.get(_key(before), [])
            if is_outermost and not functions:
                raise CannotSwap  # such as a comprehension of a module
            for function in functions:
                try:
                    function.__code__ = after
                except ValueError:
                    raise CannotSwap from None


def _key(code: CodeType) -> _Key:
    """What tells the code of a function from all other: also two lambdas of one line, by their columns."""
    return code.co_filename, code.co_qualname, code.co_firstlineno, code.co_linetable


def _changes(
    old: CodeType, new: CodeType, *, is_outermost: bool
) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """The functions that differ: as they were, as they are, and whether a module or a class defines them."""
    is_function = bool(old.co_flags & CO_OPTIMIZED)
    inner = zip(_inner(old), _inner(new), strict=False)
    nested = [change for pair in inner for change in _changes(*pair, is_outermost=not is_function)]
    if _own(old) != _own(new):
        if not is_function:
            raise CannotSwap
        yield old, new, is_outermost
    elif nested and is_function:
        yield old, new, is_outermost
    yield from nested


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> Mapping[str, object]:
    """What a code does, without its lines and without the functions inside of it."""
    names = [name for name in dir(code) if name.startswith("co_") and not callable(getattr(code, name))]
    left_out = {"co_consts", "co_linetable", "co_lnotab", "co_firstlineno", "co_filename"}
    own = {name: getattr(code, name) for name in names if name not in left_out}
    # True is 1, and 0.0 is -0.0, but for how they are written; a set is written in any order.
    own["constants"] = [
        None if isinstance(one, CodeType) else one if isinstance(one, frozenset) else repr(one)
        for one in code.co_consts
    ]
    return own
