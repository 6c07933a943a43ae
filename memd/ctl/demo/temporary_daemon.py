"""A daemon of one's own for a minute, in a directory that is gone afterwards."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from memd.ctl.call import Places
from memd.ctl.daemon.process import await_answer, command_for, end, start, stop
from memd_client import paths

_ANSWERS_S = 60.0
_STOPS_S = 5.0
# A group may ask, for that is shown as well.
_CONFIG = """\
[agents.main]
workspace = "workspace"
provider = "local"
scope = { default = "allow" }
"""

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class DemoDirectory(msgspec.Struct, frozen=True):
    """What stands in the directory."""

    workspace: Path
    places: Places


@contextmanager
def scratch(home: Path, *, keep: bool) -> Iterator[DemoDirectory]:
    """A directory with a configuration and an empty workspace; afterwards it is removed, the workspace unless it is kept."""
    with _ending_on_signals():
        directory = _make_directory()
        places = Places(home, directory / "config.toml", directory / "state", directory / "memd.sock")
        try:
            workspace = directory / "workspace"
            workspace.mkdir()
            (directory / "config.toml").write_text(_CONFIG, encoding="utf-8")
            yield DemoDirectory(workspace, places)
        finally:
            with _undisturbed():
                # Interrupted in the moment in which it was started, a daemon is nobody's child to end.
                stop(places.lock, _STOPS_S)
                shutil.rmtree(places.state if keep else directory, ignore_errors=True)


@contextmanager
def daemon(places: Places, environ: Mapping[str, str]) -> Iterator[None]:
    """A daemon that answers; it is gone afterwards, whatever happens.

    Raises:
        Failed: it does not come up.
    """
    started = start(command_for(places), places.log, environ)
    try:
        await_answer(started, places, _ANSWERS_S)
        yield
    finally:
        with _undisturbed():
            end(started.process)


def _make_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="memd-demo-"))
    try:
        paths.checked_socket(directory / "memd.sock", sys.platform)
    except paths.SocketPathTooLong:
        directory.rmdir()
        return Path(tempfile.mkdtemp(prefix="memd-demo-", dir="/tmp"))
    return directory


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """A signal that would end this process at once ends it through the ways out of the code instead."""
    with _handling(_leave, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Impatience must not leave half of it behind: what cleans up takes a moment."""
    with _handling(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _handling(handler: _Handler, *signals: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
