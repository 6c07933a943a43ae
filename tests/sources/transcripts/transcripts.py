"""A directory of transcripts, and a reader that keeps what a store would keep."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile, Kind, Stamp, Turn
from memd.sources.redactor_interface import TurnRedactor
from memd.sources.transcripts.database_reader import read_entry
from memd.sources.transcripts.read_position import ReadProgress, decoded, encoded
from memd.sources.transcripts.reader import (
    GrownTranscript,
    Reading,
    UnchangedTranscript,
    WholeTranscript,
    read_transcript,
)
from memd.text.memory_paths import Root, SessionPaths
from memd.text.transcript_files import Layout

LATER_NS = 4_000_000_000_000_000_000


def said(text: str, role: str = "user", end: bytes = b"\n") -> bytes:
    """A line of the plain format."""
    return msgspec.json.encode({"role": role, "content": text}) + end


class Hidden(msgspec.Struct, frozen=True):
    """A text without its secrets."""

    text: str
    counts: Mapping[str, int]


class Hider:
    """Takes one word out of every text."""

    def __init__(self, word: str) -> None:
        self._word = word

    def redact(self, text: str, asked: str = "") -> Hidden:
        """The text without the word; what was asked before changes nothing."""
        del asked
        n = text.count(self._word)
        return Hidden(text.replace(self._word, "[REDACTED:word]"), {"word": n} if n else {})


class Follower:
    """Reads one transcript again and again, as a daemon does: progress goes through bytes in between."""

    def __init__(
        self,
        file: Path,
        *,
        layout: Layout = "plain",
        redactor: TurnRedactor | None = None,
        subagents: bool = False,
    ) -> None:
        """Of a file in the directory of its root, or where Gemini CLI has it."""
        self.file = file
        self.roots: tuple[Root, ...] = (
            SessionPaths(file.parents[2] if layout == "gemini" else file.parent, "here", layout),
        )
        self.redactor = redactor
        self.subagents = subagents
        self.kept: bytes | None = None
        self.turns: list[Turn] = []
        self.last: Reading | None = None

    @property
    def found(self) -> FoundFile:
        """The file as a scan gives it."""
        name = f"sessions/here/{self.file.name.removesuffix('.zst').partition('.json')[0]}.jsonl"
        return FoundFile(name, str(self.file), Kind.SESSION, Stamp(0, 0, 0))

    @property
    def progress(self) -> ReadProgress:
        """As the store has it."""
        assert self.kept is not None
        progress = decoded(self.kept)
        assert progress is not None
        return progress

    @property
    def texts(self) -> list[str]:
        """What was said, as far as it is known."""
        return [turn.text for turn in self.turns]

    def read(self) -> str:
        """Read what is new; which kind of reading it was."""
        reading = read_transcript(
            self.found,
            self.roots,
            None if self.kept is None else decoded(self.kept),
            redactor=self.redactor,
            subagents=self.subagents,
            now_ns=LATER_NS,
        )
        match reading:
            case GrownTranscript():
                assert reading.turns_from <= len(self.turns)
                self.turns[reading.turns_from :] = reading.turns
            case WholeTranscript():
                self.turns = list(reading.turns)
            case UnchangedTranscript():
                pass
        assert reading.progress.turns == len(self.turns)
        self.kept = encoded(reading.progress)
        self.last = reading
        return type(reading).__name__


class EntryFollower:
    """Reads one session again and again, as a daemon does: progress goes through bytes in between."""

    def __init__(
        self,
        base: Path,
        entry: str,
        *,
        file: str = "main/agent/openclaw-agent.sqlite",
        layout: Layout = "openclaw",
        redactor: TurnRedactor | None = None,
        subagents: bool = False,
    ) -> None:
        self.roots: tuple[Root, ...] = (SessionPaths(base, layout, layout),)
        self.found = FoundFile(
            f"sessions/{layout}/{entry}.jsonl", str(base / file), Kind.SESSION, Stamp(0, 0, 0), entry
        )
        self.redactor = redactor
        self.subagents = subagents
        self.kept: bytes | None = None
        self.turns: list[Turn] = []
        self.stamp = Stamp(0, 0, 0)

    @property
    def progress(self) -> ReadProgress | None:
        return None if self.kept is None else decoded(self.kept)

    @property
    def texts(self) -> list[str]:
        return [turn.text for turn in self.turns]

    def read(self) -> str:
        """Read what is new; which kind of reading it was."""
        reading = read_entry(
            self.found, self.roots, self.progress, redactor=self.redactor, subagents=self.subagents
        )
        match reading:
            case GrownTranscript():
                assert reading.turns_from <= len(self.turns)
                self.turns[reading.turns_from :] = reading.turns
            case WholeTranscript():
                self.turns = list(reading.turns)
            case UnchangedTranscript():
                pass
        assert reading.progress.turns == len(self.turns)
        self.kept, self.stamp = encoded(reading.progress), reading.stamp
        return type(reading).__name__


def append(file: Path, *pieces: bytes) -> None:
    """Write to the end of a file."""
    with file.open("ab") as stream:
        stream.write(b"".join(pieces))


def replace(file: Path, content: bytes) -> None:
    """Put another file in its place, as a temporary one that is renamed."""
    other = file.with_name(f"{file.name}.new")
    other.write_bytes(content)
    os.replace(other, file)  # noqa: PTH105 - the name is what programs call


def noise(size: int) -> bytes:
    """Bytes that cannot be compressed, without any end of a line, always the same."""
    pieces = [hashlib.sha256(b"%d" % n).hexdigest().encode() for n in range(size // 64 + 1)]
    return b"".join(pieces)[:size]
