"""Looks in child processes that may crash, fail or hang."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from memd.inspection.probe import Disk, ProbeResult, SqliteFacts, start_probe
from memd.inspection.programs import look_at_model, look_at_sqlite
from tests.bounds import shipped
from tests.clock import Clock

_DISK = Disk(kind="ext4", point="/", is_remote=False)
_MUCH = "x" * (1 << 20)  # more than a pipe holds


def _children() -> set[str]:
    """The children of this process, also those that have ended and were not waited for."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if status.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(status.parent.name)
    return found


def _killed() -> Iterator[object]:
    yield _DISK
    os.kill(os.getpid(), signal.SIGILL)


def _without_a_module() -> Iterator[object]:
    yield _DISK
    import no_such_module  # type: ignore[import-not-found]  # noqa: F401, PLC0415


def _failing() -> Iterator[object]:
    yield _DISK
    raise ValueError("what a note says")


def _refused() -> Iterator[object]:
    yield _DISK
    raise PermissionError(13, "Permission denied", "what a path says")


def _exiting() -> Iterator[object]:
    yield _DISK
    raise SystemExit(3)


def _leaving() -> Iterator[object]:
    yield _DISK
    os._exit(0)


def _unable_to_say_it() -> Iterator[object]:
    yield _DISK
    yield lambda: None


def _hanging() -> Iterator[object]:
    yield _DISK
    time.sleep(60)


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (_killed, "was ended by SIGILL"),
        (_without_a_module, "cannot be tried: No module named 'no_such_module'"),
        (_failing, "failed with ValueError"),
        (_refused, "cannot be looked at: Permission denied"),
        (_exiting, "ended with exit status 1"),
        (_leaving, "ended with exit status 0"),
        (_unable_to_say_it, "failed with PicklingError"),
    ],
)
def test_what_was_found_until_the_end_is_kept(look: object, reason: str) -> None:
    """With why there is no more, and without what an error says that may quote anything."""
    result = start_probe(look, 30.0).result()  # type: ignore[arg-type]
    assert result.first(Disk) == _DISK
    assert result.reason is not None
    assert result.reason.replace("AttributeError", "PicklingError") == reason
    assert not result.timed_out


def test_probes_that_hang_are_ended_side_by_side() -> None:
    """Their time begins with each, not with the waiting for it, and what they had found by then is there."""
    began, before = time.monotonic(), _children()
    probes = [start_probe(_hanging, 0.5) for _ in range(10)]
    assert len(_children() - before) == 10
    results = [probe.result() for probe in probes]
    assert results == [ProbeResult((_DISK,), "gave no answer within 0.5 s", timed_out=True)] * 10
    assert time.monotonic() - began < 20
    assert _children() == before


def test_many_and_large_facts_arrive_in_order() -> None:
    """Although nobody reads them until the end."""
    before = _children()
    probes = [start_probe(lambda: [_MUCH, *range(1000)], 30.0) for _ in range(3)]
    for probe in probes:
        result = probe.result()
        assert result.reason is None
        assert result.of(str) == (_MUCH,)
        assert result.of(int) == tuple(range(1000))
    assert _children() <= before


def test_a_probe_that_no_signal_ends_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that waits for a dead disk; soon, since somebody waits for what others have found."""
    clock, waited_for = Clock(), list[int]()

    def still_there(pid: int, _: int) -> tuple[int, int]:
        waited_for.append(pid)
        return 0, 0

    monkeypatch.setattr("memd.inspection.probe.time", SimpleNamespace(monotonic=clock, sleep=clock.run))
    probe = start_probe(_hanging, 0.0)
    system = SimpleNamespace(kill=os.kill, waitpid=still_there, WNOHANG=os.WNOHANG)
    monkeypatch.setattr("memd.inspection.probe.os", system)
    began = clock.now
    assert probe.result().timed_out
    assert clock.now - began == pytest.approx(shipped("memd.inspection.probe._KILL_WAIT_S"), abs=0.1)
    os.waitpid(waited_for[0], 0)


def test_a_child_prints_nothing_and_runs_nothing_of_its_parent(capfd: pytest.CaptureFixture[str]) -> None:
    """What a library says as it dies is no part of the output."""

    def noisy() -> Iterator[object]:
        os.write(1, b"out")
        os.write(2, b"err")
        yield os.read(0, 1)

    sys.stdout.write("once")  # not flushed yet: the child has it in its buffer, too
    assert start_probe(noisy, 30.0).result().of(bytes) == (b"",)
    assert capfd.readouterr() == ("once", "")


def test_native_parts_are_tried_in_the_child_alone() -> None:
    """The real ones."""
    sqlite = start_probe(lambda: [look_at_sqlite()], 60.0).result().first(SqliteFacts)
    assert sqlite is not None
    assert (sqlite.keywords, sqlite.vectors) == (None, None)
    assert start_probe(lambda: [look_at_model()], 60.0).result().reason is None
