"""A workspace that changes at random, step by step, and a model of what it must hold then."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec

Files = Mapping[str, bytes]  # by path below the workspace

_DIRECTORIES = ("memory", "memory", "memory/a", "memory/a/b", "memory/日記", "memory/d.md", "memory/.hidden")
_NAMES = (
    *(f"{number}.md" for number in range(6)),
    "2026-02-09.md",
    "数据库.md",
    "Zürich notes.MD",
    ".draft.md",
    "list.txt",
)
_CURATED = ("MEMORY.md", "USER.md")
_FEWEST = 4  # notes: an emptied directory could as well be one that is not mounted, and loses nothing
_WORDS = (
    *("lighthouse", "harbour", "ledger", "migration", "kettle", "violin", "orchard", "compass"),
    *(
        "数据库",
        "迁移",
        "灯塔",
        "港口",
        "メモ",
        "naïve",
        "Zürich",
        "café",
        "re\u0301sume\u0301",
        "🙂",
        "a_b.c",
    ),
)
_AWKWARD = (
    b"",
    b"\n \n\t\n",
    b"\xef\xbb\xbf# marked\r\nlines of\r\nanother system\r\n",
    b"\xff\xfe#\x00 \x00u\x00t\x00f\x001\x006\x00",
    b"not \xff\xfe\xc3 text\x00\x00\n## still a heading\n",
    "字".encode() * 2000,
    b"word " * 1500,
    b"```\n# no heading\n" + b"code\n" * 40,
)


class Step(msgspec.Struct, frozen=True, tag=str.lower):
    """Base of what can happen to a workspace."""

    path: str


class Write(Step, frozen=True):
    """The file holds another text now, written into it as it is."""

    seed: int  # of the text


class Replace(Step, frozen=True):
    """Another file takes its place in one move, as editors save."""

    seed: int


class Append(Step, frozen=True):
    """More is written at its end."""

    seed: int


class Insert(Step, frozen=True):
    """More stands at its beginning, and every line below moves."""

    seed: int


class Truncate(Step, frozen=True):
    """It ends earlier, perhaps within a character."""

    size: int  # bytes, at most


class Touch(Step, frozen=True):
    """Only its time changes."""

    ago_s: float


class Move(Step, frozen=True):
    """A file, or a directory with all that is in it, has another name; a file in its place is gone."""

    to: str


class Remove(Step, frozen=True):
    """A file, or a directory with all that is in it, is gone."""


Change = Write | Replace | Append | Insert | Truncate | Touch | Move | Remove


def is_note(path: str) -> bool:
    """Whether a file of that path is memory."""
    return path in _CURATED or (
        path.startswith("memory/")
        and path.lower().endswith(".md")
        and not any(part.startswith(".") for part in path.split("/"))
    )


def text(seed: int) -> bytes:
    """A note, now and then an odd one."""
    rng = Random(seed)
    return (
        rng.choice(_AWKWARD)
        if rng.random() < 0.1
        else b"".join(_section(rng) for _ in range(rng.randrange(1, 6)))
    )


def section(seed: int) -> bytes:
    """A heading with a paragraph."""
    return _section(Random(seed))


def _section(rng: Random) -> bytes:
    words = " ".join(rng.choices(_WORDS, k=rng.randrange(3, 60)))
    return f"{'#' * rng.randrange(1, 5)} {rng.choice(_WORDS)} {rng.randrange(100)}\n\n{words}.\n\n".encode()


def draw(rng: Random, files: Files) -> Change:
    """A change that can happen to a workspace that holds these files."""
    notes = sorted(path for path in files if is_note(path))
    seed = rng.randrange(1 << 32)
    if len(notes) < _FEWEST or rng.random() < 0.15:
        return Write(_somewhere(rng), seed)
    path = rng.choice(sorted(files))
    match rng.randrange(10):
        case 0 | 1:
            return Append(path, seed)
        case 2:
            return Insert(path, seed)
        case 3:
            return Write(path, seed)
        case 4:
            return Replace(path, seed)
        case 5:
            return Truncate(path, rng.randrange(len(files[path]) + 1))
        case 6:
            return Touch(path, rng.choice((0.0, 3600.0, 1e9)))
        case 7:
            return Move(path, _somewhere(rng))
        case 8:
            directory = _inner_directory(rng, files)
            return (
                Move(path, _somewhere(rng)) if directory is None else Move(directory, f"memory/moved-{seed}")
            )
        case _:
            directory = _inner_directory(rng, files) if rng.random() < 0.2 else None
            gone = Remove(path if directory is None else directory)
            return gone if sum(map(is_note, after(files, gone))) >= _FEWEST else Append(path, seed)


def _somewhere(rng: Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(_CURATED)
    return f"{rng.choice(_DIRECTORIES)}/{rng.choice(_NAMES)}"


def _inner_directory(rng: Random, files: Files) -> str | None:
    found = sorted({path.rpartition("/")[0] for path in files if path.count("/") > 1})
    return rng.choice(found) if found else None


def after(files: Files, change: Change) -> dict[str, bytes]:
    """What a workspace holds after a change."""
    path, held = change.path, files.get(change.path, b"")
    match change:
        case Write() | Replace():
            return {**files, path: text(change.seed)}
        case Append():
            return {**files, path: held + section(change.seed)}
        case Insert():
            return {**files, path: section(change.seed) + held}
        case Truncate():
            return {**files, path: held[: change.size]}
        case Touch():
            return dict(files)
        case Move():
            moved = {_moved(one, path, change.to): held for one, held in files.items() if _is_at(one, path)}
            return {one: held for one, held in files.items() if not _is_at(one, path)} | moved
        case Remove():
            return {one: held for one, held in files.items() if not _is_at(one, path)}


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _moved(path: str, place: str, to: str) -> str:
    return to + path[len(place) :]


def carry_out(change: Change, workspace: Path) -> None:
    """Let a change happen on the disk."""
    file = workspace / change.path
    file.parent.mkdir(parents=True, exist_ok=True)
    match change:
        case Write():
            file.write_bytes(text(change.seed))
        case Replace():
            fresh = file.with_name(f".{file.name}.tmp")
            fresh.write_bytes(text(change.seed))
            fresh.replace(file)
        case Append():
            with file.open("ab") as stream:
                stream.write(section(change.seed))
        case Insert():
            file.write_bytes(section(change.seed) + file.read_bytes())
        case Truncate():
            os.truncate(file, change.size)
        case Touch():
            then = time.time() - change.ago_s
            os.utime(file, (then, then))
        case Move():
            to = workspace / change.to
            to.parent.mkdir(parents=True, exist_ok=True)
            file.replace(to)
        case Remove() if file.is_dir():
            shutil.rmtree(file)
        case Remove():
            file.unlink()


def on_disk(workspace: Path) -> dict[str, bytes]:
    """What a workspace holds."""
    return {
        file.relative_to(workspace).as_posix(): file.read_bytes()
        for file in workspace.rglob("*")
        if file.is_file()
    }
