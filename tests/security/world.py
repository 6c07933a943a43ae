"""Two trees that differ in one word: what memd may read, and what lies outside under the same names."""

import hashlib
import os
from pathlib import Path

import zstandard

from tests.fakes.homes import (
    ClaudeCode,
    ClaudeCodeSession,
    Codex,
    CodexSession,
    Gemini,
    GeminiSession,
    OpenClaw,
    OpenClawSession,
)

Session = ClaudeCodeSession | CodexSession | GeminiSession | OpenClawSession

INSIDE, OUTSIDE = "heron", "porcupine"
OUTSIDE_STEM = b"porcupin"  # what any index of words would have of it
AT = 1_772_442_000.0  # 2 March 2026
TODAY = "2026-03-02"

_WORKSPACE = ("MEMORY.md", "USER.md", "memory/race.md", "memory/café.md", "memory/sub/deep/x.md")
_AGENT = ("MEMORY.md", "USER.md", "AGENTS.md", "SOUL.md", f"memory/{TODAY}.md")


class World:
    """The trees in a scratch directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.inside = home / "in"
        self.outside = home / "out"

    def furnish(self) -> None:
        """Write both."""
        for name in (
            *(f"workspace/{name}" for name in _WORKSPACE),
            *(f"agent/{name}" for name in _AGENT),
            "extra/a.md",
            "extra/sub/b.md",
            "one/one.md",
        ):
            _write(self.inside / name, f"# Of {name}\n\nThe vault opens with the word {INSIDE}.\n".encode())
        codex, openclaw = Codex(self.inside), OpenClaw(self.inside)
        claude = ClaudeCode(self.inside).session(at=AT)
        live, packed, archived = (codex.session(f"/home/li/{n}", at=AT + n) for n in range(3))
        kept, reset = (openclaw.session(f"agent:main:{name}", at=AT) for name in ("main", "x"))
        gemini = Gemini(self.inside).session(at=AT)
        sessions: list[Session] = [claude, live, packed, archived, kept, reset, gemini]
        for number, session in enumerate(sessions):
            session.user(f"What does vault {number} open with?", AT)
            session.assistant(f"Vault {number} opens with the word {INSIDE}.", at=AT)
        packed.compress()
        archived.archive()
        reset.reset(AT)
        for file in _files(self.inside):
            _write(self.outside / file.relative_to(self.inside), _of_outside(file))

    def files(self) -> list[str]:
        """The files of a tree, below it."""
        return [str(file.relative_to(self.inside)) for file in _files(self.inside)]

    def directories(self) -> list[str]:
        """The directories of a tree, below it; those that a root lies in or is, and those below."""
        return sorted(str(path.relative_to(self.inside)) for path in self.inside.rglob("*") if path.is_dir())

    def outside_digest(self) -> str:
        """Of every name and byte outside."""
        digest = hashlib.sha256()
        for file in _files(self.outside):
            digest.update(os.fsencode(file) + b"\0" + file.read_bytes() + b"\0")
        return digest.hexdigest()


def _files(base: Path) -> list[Path]:
    return sorted(path for path in base.rglob("*") if not path.is_dir())


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _of_outside(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".zst":
        return zstandard.compress(_exchanged(zstandard.decompress(data)))
    return _exchanged(data)


def _exchanged(data: bytes) -> bytes:
    return data.replace(INSIDE.encode(), OUTSIDE.encode())
