"""The workspace of the demo (an engineer's memory in two languages), the questions about it, and a temporary daemon."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import resources
from pathlib import Path
from types import FrameType

import msgspec

from memd.ctl.daemon_process import await_answer, command_for, end, start, stop
from memd.ctl.invocation import Places
from memd.ctl.output.terminal import exit_on_signal
from memd_client import paths


class DemoQuestion(msgspec.Struct, frozen=True):
    """A question about the notes of the demo."""

    about: str  # what it shows
    text: str
    answer: str | None  # a part of the line that answers it; None: no line does


QUESTIONS = (
    DemoQuestion("The same in other words", "What caused the blackout at home?", "loose neutral"),
    DemoQuestion("An exact id", "INC-2417", "INC-2417"),
    DemoQuestion("Chinese on a Chinese note", "小满对哪种食物过敏？", "花生"),
    DemoQuestion(
        "English on a Chinese note", "When does my father take his blood pressure pills?", "降压药每天早饭后"
    ),
    DemoQuestion("Nothing there", "What did the dentist say about my tooth?", None),
)

EDIT = "- Standup is at 9:40 from Monday on, so that the Berlin office can join.\n"
EDIT_QUESTION = DemoQuestion("An edit", "What time is the standup?", "9:40")

GROUP_KEY = "agent:main:telegram:group:neighbours"
GROUP_QUESTION = QUESTIONS[2]


_DAILY = "day-"  # day-2.md is the note of the day before yesterday


def notes(today: date) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file of the workspace; daily notes are of the last days."""
    for file in sorted(
        resources.files("memd.ctl").joinpath("demo_notes").iterdir(), key=lambda file: file.name
    ):
        text = file.read_text(encoding="utf-8")
        stem, _, _ = file.name.partition(".")
        if stem.startswith(_DAILY):
            day = today - timedelta(days=int(stem.removeprefix(_DAILY)))
            yield daily_note_path(day), text.replace("{date}", day.isoformat())
        else:
            yield file.name, text


def daily_note_path(day: date) -> str:
    """Return the path of a daily note."""
    return f"memory/{day.isoformat()}.md"


def write_notes(directory: Path, today: date) -> int:
    """Write all notes; return their number."""
    number = 0
    for number, (path, text) in enumerate(notes(today), 1):  # noqa: B007  the last number is how many there are
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return number


_ANSWERS_S = 60.0
_STOPS_S = 5.0
# Groups may search, so that the demo can show what they see.
_CONFIG = """\
[agents.main]
workspace = "workspace"
provider = "local"
scope = { default = "allow" }
"""

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class DemoDirectory(msgspec.Struct, frozen=True):
    """The paths in the temporary directory."""

    workspace: Path
    places: Places


@contextmanager
def demo_directory(home: Path, *, keep: bool) -> Iterator[DemoDirectory]:
    """Create a temporary directory with a configuration and an empty workspace, and remove it at the end; with `keep`, only its state."""
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
                # After an interrupt right at the start, no `temporary_daemon` knows of the process.
                stop(places.lock, _STOPS_S)
                shutil.rmtree(places.state if keep else directory, ignore_errors=True)


@contextmanager
def temporary_daemon(places: Places, environ: Mapping[str, str]) -> Iterator[None]:
    """Run a daemon that answers, and end it afterwards, also after an error.

    Raises:
        Failed: it does not start.
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
    """Let signals that would kill this process at once end it with its cleanup instead."""
    with _handling(exit_on_signal, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore signals during the cleanup, so that a second Ctrl-C leaves nothing behind."""
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
