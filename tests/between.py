"""Runs an action between two system calls at a chosen place, so that a race happens each time."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

LOOKS = ("open", "stat", "lstat", "fstat", "scandir", "readlink", "read")
"""The functions of os that look at a file system by name or by descriptor."""


class Calls:
    """Counts calls of functions of os, and runs an action before one of them."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.made = 0
        self._at = at
        self._act = act
        self._is_acting = False

    def come(self) -> None:
        """Count a call that is about to be made."""
        if self._is_acting:
            return
        if self.made == self._at:
            self._is_acting = True
            try:
                self._act()
            finally:
                self._is_acting = False
        self.made += 1


@contextmanager
def before_call(at: int, act: Callable[[], None], names: tuple[str, ...] = LOOKS) -> Iterator[Calls]:
    """Run an action before call number `at`, from 0, of any of these functions."""
    calls = Calls(at, act)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.come()
            return real(*args, **kwargs)

        return call

    with ExitStack() as patches:
        for name in names:
            patches.enter_context(patch.object(os, name, counted(getattr(os, name))))
        yield calls


def each_moment(do: Callable[[], object], set_up: Callable[[], None], act: Callable[[], None]) -> int:
    """Repeat some work, with the action before another one of its calls each time.

    Args:
        do: What is tried; raises where an outcome is wrong.
        set_up: Makes everything as it was before.
        act: What somebody else does.

    Returns:
        Before how many calls there was an act.
    """
    at = 0
    while True:
        set_up()
        with before_call(at, act) as calls:
            do()
        if calls.made <= at:
            return at
        at += 1
