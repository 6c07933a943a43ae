"""What can happen to the files of a trial, as data: drawn from what is on the disk, and carried out on it."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import IO, Literal

import msgspec

from tests.faults import directory
from tests.faults.differential.places import NOISE, ROOTS, SINGLE, Places
from tests.faults.differential.sessions import Sessions
from tests.faults.differential.truth import TOKEN, token

_SENTENCES = (
    "The word of the day is {}.\n",
    "- agreed with Osvaldo: {} comes first, the rest can wait\n",
    "数据库迁移的代号是 {}，由老周负责。\n",
    "```\nretry({})\n```\n",
)
_BEYOND = 9_400_000_000.0  # 2267: more nanoseconds than 64 bits have


class Step(msgspec.Struct, frozen=True, tag=True):
    """Base of what can happen; a path is relative to the sources."""


class Write(Step, frozen=True):
    """The file is opened, emptied and written, or made."""

    path: str
    token: int


class Append(Step, frozen=True):
    """More is written at its end."""

    path: str
    token: int


class Insert(Step, frozen=True):
    """More stands at its beginning."""

    path: str
    token: int


class Overwrite(Step, frozen=True):
    """Another token is written over the one that is there, so that the size stays; the time is set back where it says so."""

    path: str
    token: int
    set_back: bool


class Replace(Step, frozen=True):
    """Another file takes its place in one move; with the size and the time of the old one where it says so."""

    path: str
    token: int
    alike: bool


class Truncate(Step, frozen=True):
    path: str
    size: int  # bytes, at most


class Touch(Step, frozen=True):
    path: str
    at: float  # Unix time


class Chmod(Step, frozen=True):
    path: str
    mode: int


class Rename(Step, frozen=True):
    """A file or a directory has another name; a file in its place is gone."""

    path: str
    to: str


class Swap(Step, frozen=True):
    """Two files have changed names."""

    path: str
    other: str


class Delete(Step, frozen=True):
    """A file, or a directory with all that is in it, is gone."""

    path: str


class Anew(Step, frozen=True):
    """A directory is moved away, or removed, and an empty one of its name is made."""

    path: str
    to: str | None  # None: it is removed


class Link(Step, frozen=True):
    """A file has another name, too."""

    path: str
    to: str


class Draft(Step, frozen=True):
    """A file is made under another name, or under none, and linked to its own while its writer goes on."""

    path: str
    token: int
    unnamed: bool  # O_TMPFILE


class GoOn(Step, frozen=True):
    """The writer of the oldest such file writes on, and closes it where it says so."""

    token: int
    close: bool


class Symlink(Step, frozen=True):
    """A symlink takes the place of whatever file is there."""

    path: str
    to: str


class Burst(Step, frozen=True):
    """Many files are made in a directory, which may be new."""

    path: str
    token: int  # of the first
    count: int


class Away(Step, frozen=True):
    """A root is renamed to a place outside."""

    root: str


class Back(Step, frozen=True):
    """It is there again, whatever was made in its place meanwhile being gone."""

    root: str


class Talk(Step, frozen=True):
    """Something happens to some transcript."""

    seed: int


class Down(Step, frozen=True):
    """The daemon ends."""

    kill: bool


class Up(Step, frozen=True):
    """Another daemon begins."""


class Reload(Step, frozen=True):
    """SIGHUP, with another configuration or the same."""

    form: Literal["usual", "coarse", "few"]


class Reindex(Step, frozen=True):
    """The index is built anew."""


class Sync(Step, frozen=True):
    """Everything is indexed; then it is compared with what a fresh daemon has, where it says so."""

    force: bool
    compare: bool


Change = (
    Write
    | Append
    | Insert
    | Overwrite
    | Replace
    | Truncate
    | Touch
    | Chmod
    | Rename
    | Swap
    | Delete
    | Anew
    | Link
    | Draft
    | GoOn
    | Symlink
    | Burst
    | Away
    | Back
    | Talk
)
Event = Down | Up | Reload | Reindex | Sync


class Act(msgspec.Struct, frozen=True):
    """One step of a trial."""

    what: Change | Event
    judged: bool = True  # False: the next one follows at once
    rest_ms: float = 0.0  # before it


class _Held(msgspec.Struct):
    """A file that is open under a name that is gone."""

    stream: IO[bytes]
    file: Path
    is_told: bool  # what is written to it is an event: a daemon saw it come, and knows where it is


class Files:
    """The files of a trial, and the descriptors that are held open on them."""

    def __init__(self, places: Places, seed: int) -> None:
        self.places = places
        self.sessions = Sessions(places, seed)
        self._held: list[_Held] = []
        # Files that were written to in a way of which Linux tells nobody, by device and inode.
        self.untold: set[tuple[int, int]] = set()
        # Files that got a name where nobody watches: until all is looked at, what is written under it is untold.
        self._strayed: set[tuple[int, int]] = set()
        self.is_watched = False  # a daemon runs

    def carry_out(self, change: Change) -> bool:
        """Let it happen; False where it cannot, since what it is about is not there."""
        try:
            if isinstance(change, Write | Append | Insert | Overwrite | Truncate):
                self._note_untold(self._at(change.path))
            self._carry_out(change)
            if isinstance(change, Link) and _is_unwatched(change.to):
                status = self._at(change.to).stat()
                self._strayed.add((status.st_dev, status.st_ino))
        except OSError:
            return False
        finally:
            # A daemon follows a configured path that is a symlink to where it leads when it starts, and no later.
            if (single := self._at(SINGLE)).is_symlink():
                single.unlink()
        return True

    def close(self) -> None:
        """Let go of what is held open."""
        for held in self._held:
            held.stream.close()

    def all_is_seen(self) -> None:
        """A daemon has looked at everything."""
        self.untold.clear()
        self._strayed.clear()

    def _note_untold(self, file: Path) -> None:
        if _is_unwatched(file.relative_to(self.places.sources).as_posix()) and file.exists():
            status = file.stat()
            if (identity := (status.st_dev, status.st_ino)) in self._strayed:
                self.untold.add(identity)

    def lose_sight(self) -> None:
        """The daemon ends, or another begins: it has not seen how the files that are open came about."""
        for held in self._held:
            held.is_told = False

    def _close_for_others(self, path: str) -> None:
        """Another writer opens a file and closes it: a daemon that has not seen the file before takes it for complete."""
        file = self._at(path)
        for held in self._held:
            if file.exists() and os.path.samestat(file.stat(), os.fstat(held.stream.fileno())):
                held.is_told = False

    def _at(self, path: str) -> Path:
        return self.places.sources / path

    def _carry_out(self, change: Change) -> None:  # noqa: C901, PLR0915 - a line or two each
        if isinstance(change, Write | Append | Insert | Overwrite):
            self._close_for_others(change.path)
        match change:
            case Write():
                self._made(change.path).write_bytes(text(change.token))
            case Append():
                with self._at(change.path).open("r+b") as file:
                    file.seek(0, os.SEEK_END)
                    file.write(text(change.token))
            case Insert():
                file_at = self._at(change.path)
                file_at.write_bytes(text(change.token) + file_at.read_bytes())
            case Overwrite():
                self._overwrite(change)
            case Replace():
                self._replace(change)
            case Truncate():
                os.truncate(self._at(change.path), change.size)
            case Touch():
                os.utime(self._at(change.path), (change.at, change.at), follow_symlinks=False)
            case Chmod():
                self._at(change.path).chmod(change.mode)
            case Rename():
                self._at(change.path).rename(self._made(change.to))
            case Swap():
                self._swap(change)
            case Delete():
                self._delete(self._at(change.path))
            case Anew():
                here = self._at(change.path)
                if change.to is None:
                    shutil.rmtree(here)
                else:
                    here.rename(self._made(change.to))
                here.mkdir()
            case Link():
                self._made(change.to).hardlink_to(self._at(change.path))
            case Draft():
                self._draft(change)
            case GoOn():
                self._go_on(change)
            case Symlink():
                part = self._made(change.path).with_name(".link.part")
                part.symlink_to(self._at(change.to))
                try:
                    part.replace(self._at(change.path))
                except OSError:
                    part.unlink()
                    raise
            case Burst():
                for number in range(change.count):
                    file_at = self._made(f"{change.path}/burst-{number}.md")
                    file_at.write_bytes(text(change.token + number))
            case Away():
                self._at(change.root).rename(self._at(f"outside/{change.root}"))
            case Back():
                away = self._at(f"outside/{change.root}")
                away.stat()
                if self._at(change.root).exists():
                    shutil.rmtree(self._at(change.root))
                away.rename(self._at(change.root))
            case Talk():
                self.sessions.happen(change.seed)

    def _made(self, path: str) -> Path:
        """A path below directories that are there; a root that is away is not made by this."""
        file = self._at(path)
        root = self._at(path.split("/", 1)[0])
        root.stat()
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _overwrite(self, change: Overwrite) -> None:
        file = self._at(change.path)
        before = file.stat()
        other = _with_other_token(file.read_bytes(), change.token)
        with file.open("r+b") as stream:
            stream.write(other)
        if change.set_back:
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _replace(self, change: Replace) -> None:
        file = self._at(change.path)
        part = self._made(change.path).with_name(f".{file.name}.part")
        if not change.alike:
            part.write_bytes(text(change.token))
        else:
            before = file.stat()
            part.write_bytes(_with_other_token(file.read_bytes(), change.token))
            os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))
        try:
            part.replace(file)
        except OSError:
            part.unlink()
            raise

    def _swap(self, change: Swap) -> None:
        one, other = self._at(change.path), self._at(change.other)
        aside = one.with_name(".swap.part")
        other.stat()
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    @staticmethod
    def _delete(place: Path) -> None:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def _draft(self, change: Draft) -> None:
        is_told = self.is_watched and self._at(change.path).parent.is_dir()
        file = self._made(change.path)
        if file.exists():
            file.unlink()
        if change.unnamed:
            above = os.open(file.parent, os.O_RDONLY)
            stream = open(  # noqa: SIM115, PTH123 - it stays open
                os.open(file.parent, os.O_TMPFILE | os.O_RDWR, 0o600), "r+b", buffering=0
            )
            self._held.append(_Held(stream, file, is_told))
            stream.write(text(change.token))
            # Only with a directory does Python follow the symlink of /proc.
            os.link(f"/proc/self/fd/{stream.fileno()}", file, src_dir_fd=above, follow_symlinks=True)
            os.close(above)
        else:
            draft = file.with_name(f"{file.name}.draft")
            stream = draft.open("w+b", buffering=0)
            self._held.append(_Held(stream, file, is_told))
            stream.write(text(change.token))
            file.hardlink_to(draft)
            draft.unlink()

    def _go_on(self, change: GoOn) -> None:
        if not self._held:
            raise FileNotFoundError
        held = self._held[0]
        status = os.fstat(held.stream.fileno())
        is_there = held.file.exists() and held.file.stat().st_ino == status.st_ino
        if not (held.is_told and is_there):
            self.untold.add((status.st_dev, status.st_ino))
        held.stream.seek(0, os.SEEK_END)
        held.stream.write(text(change.token))
        if change.close:
            self._held.pop(0).stream.close()

    @property
    def holds(self) -> bool:
        """Whether a file is held open."""
        return bool(self._held)


def _is_unwatched(path: str) -> bool:
    """Whether no daemon has a watch on the directory of a file."""
    parts = path.split("/")[:-1]
    return parts[0] == "outside" or any(part.startswith(".") or part == "node_modules" for part in parts)


def text(number: int) -> bytes:
    """What is written with a token: the same for the same number."""
    rng = Random(number)
    sentence = rng.choice(_SENTENCES).format(token(number)).encode()
    if rng.random() < 0.5:
        return sentence
    if rng.random() < 0.1:
        return directory.text(number) + b"\n\n" + sentence
    filler = directory.section(number)
    return filler + sentence if rng.random() < 0.5 else sentence + b"\n" + filler


def _with_other_token(held: bytes, number: int) -> bytes:
    """The same bytes with another token of the same length in the place of the last.

    Raises:
        FileNotFoundError: there is none.
    """
    found = [*TOKEN.finditer(held.decode("latin-1"))]
    if not found:
        raise FileNotFoundError
    start, end = found[-1].span()
    return held[:start] + token(number).encode() + held[end:]


# --- drawing

_DIRECTORIES = (
    *("workspace/memory",) * 4,
    *("workspace/memory/a", "workspace/memory/a/b", "workspace/memory/日記", "workspace/memory/.hidden"),
    *("extra",) * 2,
    *("extra/x", "extra/x/y/z", "extra/node_modules"),
    "outside",
)
_ODD_DIRECTORIES = (
    "workspace/memory/Caf\u00e9",
    "workspace/memory/Cafe\u0301",
    "extra/Caf\u00e9",
    "extra/Cafe\u0301",
)
_NAMES = (*(f"{number}.md" for number in range(8)), "2026-02-09.md", "数据库.md", "LOUD.MD")
_ODD_NAMES = ("Z\u00fcrich.md", "Zu\u0308rich.md", "draft.tmp", "list.txt", ".hidden.md", "a\nb.md")
_DEEP = "workspace/memory/" + "/".join(f"d{number}" for number in range(20))


class Drawer:
    """Draws acts from what is on the disk, so that the same seed draws the same ones."""

    def __init__(self, rng: Random, files: Files) -> None:
        self._rng = rng
        self._files = files
        self._places = files.places
        self._tokens = 0
        self._is_down = False
        self._form: Literal["usual", "coarse", "few"] = "usual"

    def draw(self) -> Act:
        """The next act; to be carried out before another is drawn."""
        rng = self._rng
        rest = rng.choice((0.0, 0.0, 0.0, 0.0, 5.0, 25.0, 70.0)) * rng.random()
        return Act(self._what(), judged=rng.random() < 0.75, rest_ms=round(rest, 1))

    def _what(self) -> Change | Event:
        rng = self._rng
        chance = rng.random()
        if self._is_down:
            if chance < 0.2:
                self._is_down = False
                return Up()
        elif chance < 0.02:
            self._is_down = True
            return Down(kill=rng.random() < 0.5)
        elif chance < 0.06:
            return Sync(force=rng.random() < 0.2, compare=rng.random() < 0.5)
        elif chance < 0.068:
            self._form = rng.choice(("usual", "usual", "coarse", "few"))
            return Reload(self._form)
        elif chance < 0.072:
            return Reindex()
        if self._places.setting.sessions and rng.random() < 0.15:
            return Talk(rng.randrange(1 << 32))
        return self.draw_change()

    def draw_change(self) -> Change:
        """A change of notes."""
        rng = self._rng
        files = self._listed()
        if len(files) < 8 or rng.random() < 0.15:
            return Write(self._somewhere(), self._token())
        path = rng.choice(files)
        draws = (
            (8, lambda: Write(path, self._token())),
            (8, lambda: Append(path, self._token())),
            (3, lambda: Insert(path, self._token())),
            (8, lambda: Overwrite(path, self._token(), set_back=rng.random() < 0.5)),
            (8, lambda: Replace(path, self._token(), alike=rng.random() < 0.4)),
            (2, lambda: Truncate(path, rng.randrange(200))),
            (3, lambda: Touch(path, rng.choice((0.0, 1e9, 1.7e9, _BEYOND)))),
            (1, lambda: Chmod(path, rng.choice((0o600, 0o644, 0o400)))),
            (9, lambda: Rename(path, self._somewhere())),
            (3, lambda: Swap(path, rng.choice(files))),
            (5, lambda: Delete(path)),
            (6, self._of_directories),
            (5, lambda: Link(path, self._somewhere())),
            (3, lambda: Draft(self._somewhere(), self._token(), unnamed=rng.random() < 0.5)),
            (2, lambda: Symlink(path if rng.random() < 0.3 else self._somewhere(), rng.choice(files))),
            (2, self._burst),
            (1, lambda: Write(f"{_DEEP}/{rng.choice(_NAMES)}", self._token())),
            (1, self._of_roots),
        )
        away = [root for root in ROOTS if not self._places.root(root).is_dir()]
        if away and rng.random() < 0.15:
            return Back(rng.choice(away))
        if self._files.holds and rng.random() < 0.3:
            return GoOn(self._token(), close=rng.random() < 0.5)
        [drawn] = rng.choices([draw for _, draw in draws], [weight for weight, _ in draws])
        return drawn()

    def _of_directories(self) -> Change:
        rng = self._rng
        inner = self._directories()
        kind = rng.random()
        # The directory itself that notes lie in, more often than one of many below.
        place = "workspace/memory" if not inner or rng.random() < 0.3 else rng.choice(inner)
        aside = f"outside/old-{rng.randrange(1000)}"
        if kind < 0.3:
            return Rename(place, f"{rng.choice(_DIRECTORIES)}/moved-{rng.randrange(1000)}")
        if kind < 0.5:
            return Anew(place, aside if rng.random() < 0.7 else None)
        if kind < 0.65:
            return Delete(place)
        if kind < 0.8:
            return Rename(place, aside)
        outer = sorted(
            f"outside/{entry.name}"
            for entry in (self._places.sources / "outside").iterdir()
            if entry.is_dir()
        )
        names = [each for each in outer if each.removeprefix("outside/") not in ROOTS]
        return Rename(
            rng.choice(names) if names else place, f"{rng.choice(_DIRECTORIES)}/back-{rng.randrange(1000)}"
        )

    def _of_roots(self) -> Change:
        root = self._rng.choice(ROOTS)
        return Away(root) if self._rng.random() < 0.7 else Anew(root, f"outside/{root}")

    def _burst(self) -> Change:
        count = self._rng.choice((5, 20, 60))
        first = self._token()
        self._tokens += count
        place = self._rng.choice(
            (f"workspace/memory/many-{first}", "workspace/memory", "extra", f"extra/many-{first}")
        )
        return Burst(place, first, count)

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    def _somewhere(self) -> str:
        rng = self._rng
        chance = rng.random()
        if chance < 0.07:
            return rng.choice(("workspace/MEMORY.md", "workspace/USER.md", SINGLE))
        directories = _ODD_DIRECTORIES if rng.random() < 0.06 else _DIRECTORIES
        names = _ODD_NAMES if rng.random() < 0.12 else _NAMES
        return f"{rng.choice(directories)}/{rng.choice(names)}"

    def _listed(self) -> list[str]:
        return sorted(_relative(self._places.sources, files=True))

    def _directories(self) -> list[str]:
        return sorted(
            path
            for path in _relative(self._places.sources, files=False)
            if path.startswith(("workspace/memory/", "extra/"))
        )


def _relative(sources: Path, *, files: bool) -> Iterator[str]:
    """The files, or the directories, below the sources but for transcripts; those that burst out, a few of them."""
    for root in (*ROOTS, "single", "outside"):
        for above, inner, names in os.walk(sources / root):
            inner.sort()
            some = sorted(name for name in names if not name.startswith(NOISE)) if files else inner
            many = [name for name in some if name.startswith("burst-")]
            for name in [*(name for name in some if name not in many), *many[:3]]:
                with contextlib.suppress(ValueError):
                    yield Path(above, name).relative_to(sources).as_posix()
