"""Looks that may crash or never end, each in a child process that is killed at its deadline."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn, TypeVar

import msgspec

_DIES_S = 0.5  # not even SIGKILL ends what waits for a dead disk: such a child is left behind

F = TypeVar("F")


class ProbeResult(msgspec.Struct, frozen=True):
    """What a probe found, and why it found no more."""

    facts: tuple[object, ...] = ()
    trouble: str | None = None  # the predicate of a sentence; None: the look came to its end
    timed_out: bool = False

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one type, in the order in which they were found."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))

    def first(self, kind: type[F]) -> F | None:
        """The first fact of a type; None where the probe found none."""
        return next(iter(self.of(kind)), None)


class _End(msgspec.Struct, frozen=True):
    """The last message of a child that has not crashed."""

    trouble: str | None


class Probe:
    """A look at something, in a child process that begins at once.

    The child is a fork: it needs no interpreter that can be started, and shares what is loaded already. Native libraries are
    to be loaded by the look itself, so that only the child crashes with them.
    """

    def __init__(self, look: Callable[[], Iterable[object]], timeout_s: float) -> None:
        """Fork the child; the calling process has no other threads.

        Args:
            look: Yields what it finds, a fact at a time, as values that pickle can carry. It runs in the child.
            timeout_s: Seconds from now until the child is killed.
        """
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._messages, sending = Pipe(duplex=False)
        self._pid = os.fork()
        if self._pid == 0:
            _run_child(look, sending)
        sending.close()

    def result(self) -> ProbeResult:
        """Wait until the look has ended or its time is over; to be called once."""
        facts: list[object] = []
        with self._messages as messages:
            while messages.poll(max(0.0, self._deadline - time.monotonic())):
                try:
                    message = messages.recv()
                except (EOFError, OSError):  # it ended without a last message, or within one
                    return ProbeResult(tuple(facts), _cause_of_death(self._pid))
                if isinstance(message, _End):
                    os.waitpid(self._pid, 0)
                    return ProbeResult(tuple(facts), message.trouble)
                facts.append(message)
        _kill(self._pid)
        return ProbeResult(tuple(facts), f"gave no answer within {self._timeout_s:g} s", timed_out=True)


def _run_child(look: Callable[[], Iterable[object]], sending: Connection) -> NoReturn:
    status = 1
    try:
        # What a library prints as it dies is no part of the parent's output.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sending.send(_End(_send_facts(look, sending)))
        status = 0
    finally:
        # Nothing of the parent is to be run or flushed twice.
        os._exit(status)


def _send_facts(look: Callable[[], Iterable[object]], sending: Connection) -> str | None:
    """What went wrong. The message of an error may quote anything, but for those of the system and of imports."""
    try:
        for fact in look():
            sending.send(fact)
    except OSError as error:
        return f"cannot be looked at: {error.strerror or type(error).__name__}"
    except ImportError as error:
        return f"cannot be tried: {error}"
    except Exception as error:  # noqa: BLE001  the parent reports it beside what was found
        return f"failed with {type(error).__name__}"
    return None


def _cause_of_death(pid: int) -> str:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _DIES_S
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
