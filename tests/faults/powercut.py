"""Nights of a daemon whose power is cut in many places; each time the next daemon must make good what the disk has left.

A night is lived once by a real daemon, on a machine whose disk is a model (see powercut_machine): it draws one power cut
for each kind of place. What the disk holds after one of them is put where the state was, and a daemon is started on it.
Now and then its power goes as well before it is done.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

import apsw
import msgspec
import uvloop

from memd.runtime import logs
from memd.store import write_ahead_log
from memd_client import AsyncClient, RequestFailed
from tests.daemon.inprocess import running
from tests.fakes import HashingProvider
from tests.faults.directory import carry_out, is_note, on_disk
from tests.faults.life import TIMEOUT_S, Home
from tests.faults.powercut_machine import Cut, Machine, restore
from tests.faults.powercut_nights import Deed, Night, Outside, Rebuilt, Said, Start, draw_night, say
from tests.faults.process import Ended, Process
from tests.faults.verdict import Diverged, differing, left_behind, unsound
from tests.store.golden.read import WORKSPACE, stores, unpack
from tests.wait import until_async

Deeds = tuple[tuple[Deed, ...], ...]

CUTS_A_NIGHT = 4
_AT_THE_END = "at the end"
_OURS = "rename", "unlink"  # places that are not SQLite's
_TWICE = 0.2  # of the cuts are followed by another one before all is well
_PAGE = 4096
_DAMAGED: frozenset[Start] = frozenset({"no header", "bad page", "no cache"})
_SPOILED = (
    "chunks",
    "keywords_data",
    "turns",
    "chunks_by_hash",
)  # missed at once, when it is written, or by who looks
# Small chunks, so that small notes have several of them; a transcript is read as soon as it has grown.
_SETTINGS = """
chunking = {{ tokens = 40, overlap = 10 }}
sync = {{ watch_debounce_ms = 20, watch_max_wait_ms = 60 }}
sources = ["memory", "sessions"]
sessions = {{ paths = ["{transcripts}"], delta_bytes = 0 }}
"""
_EVERY_S = 10.0  # between two lines that tell how far it is

# What a daemon says of a store in which it has found damage, or which it could not use.
_TROUBLE = (
    "store.set_aside",
    "store.lost",
    "sync.index_damaged",
    "cache.lost",
    "agent.left_out",
    "daemon.failed",
)


class Tally(msgspec.Struct):
    """What happened."""

    nights: int = 0
    cuts: int = 0
    losing: int = 0  # of the cuts: those in which something was lost or torn
    twice: int = 0  # of the cuts: those that were followed by another one at once
    damaged: int = 0  # of the cuts: those after which a daemon found damage that nobody had done
    embedded_again: int = 0  # texts, after all cuts
    slowest_s: float = 0.0  # until all was well
    took_s: float = 0.0
    starts: dict[str, int] = {}  # nights by how they begin
    kinds: dict[str, int] = {}  # cuts by their place


class Told(msgspec.Struct, frozen=True):
    """What a process tells of its life."""

    cuts: list[Cut]
    embedded: int  # texts
    took_s: float  # from its start until all was indexed


def run_powercuts(
    n: int, seed: int, tell: Callable[[str], None], *, ignores_syncs: bool = False, start: Start | None = None
) -> Tally:
    """Cut the power so often.

    Args:
        n: Cuts.
        seed: Of all that is left to chance.
        tell: Told now and then how far it is.
        ignores_syncs: The disk only says that it syncs. Damage is no error then, and the first one is the end.
        start: How each night begins; None: in any way.

    Raises:
        Diverged: after a cut all was not made good.
    """
    tally = Tally()
    rng = Random(seed)
    began = said = time.monotonic()
    memory = Path("/dev/shm")  # the machine is a model: nothing here has to outlive the real one
    home = Home(Path(tempfile.mkdtemp(prefix="memd-power-", dir=memory if memory.is_dir() else None)))
    nights = _Nights(home, rng, tally, ignores_syncs=ignores_syncs)
    try:
        while tally.cuts < n and not tally.damaged:
            nights.live(n - tally.cuts, start)
            if time.monotonic() - said > _EVERY_S:
                said = time.monotonic()
                tell(summary(tally))
    except (Diverged, AssertionError) as difference:
        raise Diverged(
            f"power cuts of seed {seed}, {difference}\nEverything is in {home.directory}."
        ) from difference
    tally.took_s = round(time.monotonic() - began, 1)
    tell(summary(tally))
    for kind, cuts in sorted(tally.kinds.items()):
        tell(f"    {cuts:5} {kind}")
    shutil.rmtree(home.directory)
    return tally


def summary(tally: Tally) -> str:
    """In a line."""
    return (
        f"power cuts: {tally.cuts} in {tally.nights} nights, {tally.losing} of them lost something, {tally.twice} came"
        f" twice in a row, {tally.damaged} did damage, {tally.embedded_again} texts embedded again, at most"
        f" {tally.slowest_s:.1f} s until all was well"
    )


class _Nights:
    """One night after the other, in a workspace that changes."""

    def __init__(self, home: Home, rng: Random, tally: Tally, *, ignores_syncs: bool) -> None:
        self._home = home
        self._rng = rng
        self._tally = tally
        self._ignores_syncs = ignores_syncs
        self._turns: dict[str, int] = {}
        home.workspace.mkdir()

    def live(self, most: int, start: Start | None) -> None:
        """A night, and the mornings after its power cuts.

        Raises:
            Diverged: after one of them all was not made good.
        """
        night = draw_night(self._rng, on_disk(self._home.workspace), self._turns, start)
        try:
            self._live(night, most)
        except (Diverged, AssertionError) as difference:
            raise Diverged(f"night {self._tally.nights}:\n{_shown(night)}\n{difference}") from difference

    def _live(self, night: Night, most: int) -> None:
        home, tally = self._home, self._tally
        tally.nights += 1
        tally.starts[night.start] = tally.starts.get(night.start, 0) + 1
        begin(home, night.start, night.seed)
        certain = _cached(home) if night.start != "no cache" else frozenset()
        for one in night.before:
            do(one, home)
        told = self._on_machine(night.during, night.seed, night.checkpoint_pages)
        deeds: list[Deed] = [*night.before, *chain.from_iterable(night.during)]
        for deed in deeds:
            if isinstance(deed, Said):
                self._turns[deed.session] = deed.turn
        self._make_fresh()
        self._rng.shuffle(told.cuts)
        told.cuts.sort(key=self._times_seen)
        for cut in told.cuts[: min(CUTS_A_NIGHT, most)]:
            if tally.damaged:
                return
            self._morning(night, cut, frozenset() if self._ignores_syncs else certain)

    def _times_seen(self, cut: Cut) -> float:
        """The fewer the sooner, so that rare ones come at all; twice as soon for what is memd's own doing."""
        return self._tally.kinds.get(cut.kind, 0) / (1 + cut.kind.startswith(_OURS)) - cut.kind.startswith(
            _OURS
        )

    def _make_fresh(self) -> None:
        """Have an index that knows nothing of the night."""
        shutil.rmtree(self._home.state)
        self._run(partial(_plainly, self._home, wait_for_cache=False))
        shutil.copyfile(self._home.index("main"), _fresh_index(self._home))

    def _morning(self, night: Night, cut: Cut, certain: frozenset[bytes]) -> None:
        home, tally = self._home, self._tally
        tally.cuts += 1
        tally.kinds[cut.kind] = tally.kinds.get(cut.kind, 0) + 1
        tally.losing += any(not path.endswith(("-shm", ".lock")) for path in cut.left.harm)
        sources = _sources(home)
        home.log.unlink(missing_ok=True)
        cuts = [cut]
        self._put_back(cut)
        try:
            if self._rng.random() < _TWICE:
                tally.twice += 1
                again = self._on_machine((), self._rng.randrange(1 << 32), night.checkpoint_pages)
                cuts.append(self._rng.choice(again.cuts))
                self._put_back(cuts[-1])
            # Whoever is ended again before it has filled the cache leaves the rest of that to the next rebuild.
            fills = len(cuts) == 1 and not self._ignores_syncs
            told = self._run(partial(_plainly, home, wait_for_cache=fills))
            wrong = self._wrong(night, certain)
            if fills and (missing := _missing_in_cache(home)):
                wrong.append(f"{missing} vectors are in the index, and not in the cache")
        except (AssertionError, apsw.Error) as failure:
            wrong = [str(failure)]
        else:
            if _sources(home) != sources:
                wrong.append("a source is not what it was")
            if [one.kind for one in cuts] == [_AT_THE_END] and told.embedded and not self._ignores_syncs:
                wrong.append(f"{told.embedded} texts were embedded again, and all had been closed in order")
            tally.embedded_again += told.embedded
            tally.slowest_s = max(tally.slowest_s, told.took_s)
        if self._ignores_syncs:
            tally.damaged += bool(wrong) or any(word in _printed(home) for word in _TROUBLE)
            shutil.rmtree(home.state, ignore_errors=True)
            self._run(partial(_plainly, home, wait_for_cache=False))  # to go on with
        elif wrong:
            places = [
                f"after {one.kind} number {one.number}, {one.style}, lost: {one.left.harm}" for one in cuts
            ]
            printed = _printed(home)
            self._put_back(cuts[-1])
            raise Diverged(
                "\n".join(
                    [*places, *wrong[:20], "It printed what follows. The state is as it began.", printed]
                )
            )

    def _put_back(self, cut: Cut) -> None:
        shutil.rmtree(self._home.state, ignore_errors=True)
        restore(cut.left, self._home.state)

    def _wrong(self, night: Night, certain: frozenset[bytes]) -> list[str]:
        """All that is not as it should be, in words."""
        home = self._home
        notes = {path for path in on_disk(home.workspace) if is_note(path)}
        wrong = differing(home.index("main"), _fresh_index(home), notes, HashingProvider().embed)
        wrong += unsound(home.state / "embeddings.sqlite")
        kept = _kept_after(night.start)
        expected = ["agents/main.sqlite", "embeddings.sqlite", "memd.lock"]
        expected += [file.relative_to(home.state).as_posix() for file in home.state.rglob(kept)]
        wrong += left_behind(home.state, expected)
        if lost := certain - _cached(home):
            wrong.append(f"{len(lost)} vectors are lost that were cached before the night")
        if night.start not in _DAMAGED:
            wrong += [f"a daemon said {word}" for word in _TROUBLE if word in _printed(home)]
        return wrong

    def _on_machine(self, during: Deeds, seed: int, pages: int) -> Told:
        work = partial(
            _on_machine,
            self._home,
            during,
            seed=seed,
            pages=pages,
            ignores_syncs=self._ignores_syncs,
        )
        return self._run(work)

    def _run(self, work: Callable[[], int]) -> Told:
        """Let a process live to its end."""
        self._home.socket.unlink(missing_ok=True)
        process = Process(work, self._home.log, self._home.marker)
        try:
            end = process.wait()
        finally:
            process.discard()
        if end != Ended(0):
            raise Diverged(f"a process ended with {end}:\n{_printed(self._home)}")
        return msgspec.msgpack.decode(_told(self._home).read_bytes(), type=Told)


# --- before the night


def begin(home: Home, start: Start, seed: int) -> None:
    """Have a state directory to begin with."""
    for kept in home.state.rglob("*.sqlite.*-*"):  # of another night; somebody has looked at it
        kept.unlink()
    match start:
        case "nothing":
            shutil.rmtree(home.state, ignore_errors=True)
        case "older schema":
            shutil.rmtree(home.state, ignore_errors=True)
            unpack(stores()[0], home.state)
            shutil.copytree(WORKSPACE, home.workspace, dirs_exist_ok=True)
        case "no header" if home.index("main").exists():
            _spoil(home.index("main"), 0, 100)
        case "bad page" if home.index("main").exists():
            _spoil(home.index("main"), _root_of(home.index("main"), _SPOILED[seed % len(_SPOILED)]), _PAGE)
            # Nobody has closed it: it is looked through at the start.
            home.index("main").with_name("main.sqlite-wal").write_bytes(b"?")
        case "no cache" if (home.state / "embeddings.sqlite").exists():
            _spoil(home.state / "embeddings.sqlite", 0, 100)
        case _:
            pass


def _spoil(file: Path, offset: int, size: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(Random(offset).randbytes(size))


def _root_of(file: Path, table: str) -> int:
    """Where the first page of a table is."""
    connection = apsw.Connection(str(file))
    try:
        number: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
        return (number - 1) * _PAGE
    finally:
        connection.close()


def do(deed: Outside, home: Home) -> None:
    """Let something happen."""
    if isinstance(deed, Said):
        say(deed, home.directory / "transcripts")
    else:
        carry_out(deed, home.workspace)


# --- what processes do


def _plainly(home: Home, during: Deeds = (), *, wait_for_cache: bool) -> int:
    """Be the daemon until all is indexed, after each of some groups of deeds, and end in order."""
    logs.configure("info", sys.stderr, terminal=False, color=False)
    embedder = HashingProvider()
    began = time.monotonic()
    took_s = uvloop.run(_live(home, embedder, during, wait_for_cache=wait_for_cache)) - began
    told = Told([], sum(map(len, embedder.requests)), took_s)
    _told(home).write_bytes(msgspec.msgpack.encode(told))
    return 0


def _on_machine(home: Home, during: Deeds, *, seed: int, pages: int, ignores_syncs: bool) -> int:
    """Likewise, and tell what the disk would hold if the power went."""
    # Of this process alone: a small workspace never makes as many as there are.
    write_ahead_log.CHECKPOINT_PAGES = pages
    machine = Machine(home.state, seed, ignores_syncs=ignores_syncs)
    with machine.watching():
        status = _plainly(home, during, wait_for_cache=False)
    machine.lose_power(_AT_THE_END)
    told = msgspec.msgpack.decode(_told(home).read_bytes(), type=Told)
    _told(home).write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(told, cuts=machine.cuts())))
    return status


async def _live(home: Home, embedder: HashingProvider, during: Deeds, *, wait_for_cache: bool) -> float:
    """When all was indexed for the first time."""
    settings = _SETTINGS.format(transcripts=home.directory / "transcripts")
    async with running(home.directory, embedder, settings=settings) as memd:
        await _be_complete(memd)
        if wait_for_cache:
            # It is filled behind the scenes.
            await until_async(lambda: not _missing_in_cache(home), TIMEOUT_S)
        ready = time.monotonic()
        for deeds in during:
            for deed in deeds:
                if isinstance(deed, Rebuilt):
                    await memd.reindex()
                else:
                    do(deed, home)
            await _be_complete(memd)
    return ready


async def _be_complete(memd: AsyncClient) -> None:
    await _sync(memd)
    while any(agent.rebuild for agent in (await memd.status()).agents.values()):
        pass  # asking is what gives the others their turn
    await _sync(memd)  # what changed while an index was swapped is in the new one only now


async def _sync(memd: AsyncClient) -> None:
    began = time.monotonic()
    while True:
        try:
            report = await memd.sync()
        except RequestFailed:  # the index is damaged, and another one is on its way
            if time.monotonic() - began > TIMEOUT_S:
                raise
        else:
            assert report.vectors == "complete", report
            return


# --- what must be


def _told(home: Home) -> Path:
    return home.directory / "told"


def _printed(home: Home) -> str:
    return home.log.read_text("utf-8", "replace") if home.log.exists() else ""


def _sources(home: Home) -> dict[str, bytes]:
    transcripts = home.directory / "transcripts"
    return on_disk(home.workspace) | {f"/{path}": data for path, data in on_disk(transcripts).items()}


def _fresh_index(home: Home) -> Path:
    """An index that knows nothing of the night."""
    return home.directory / "fresh.sqlite"


def _kept_after(start: Start) -> str:
    """The names of files that are kept for a person."""
    if start == "older schema":
        return "*.before-schema-*[0-9]"
    return "*.damaged-*" if start in _DAMAGED else "nothing"


def _cached(home: Home) -> frozenset[bytes]:
    """The texts whose vectors are cached."""
    file = home.state / "embeddings.sqlite"
    if not file.exists():
        return frozenset()
    connection = apsw.Connection(str(file))
    try:
        return frozenset(text_hash for (text_hash,) in connection.execute("SELECT hash FROM cache"))
    finally:
        connection.close()


def _missing_in_cache(home: Home) -> int:
    """How many vectors the index has, and the cache has not."""
    connection = apsw.Connection(str(home.index("main")))
    try:
        indexed = {
            text_hash for (text_hash,) in connection.execute("SELECT hash FROM chunks WHERE vector = 1")
        }
    finally:
        connection.close()
    return len(indexed - _cached(home))


def _shown(night: Night) -> str:
    lines = [f"    it begins with {night.start}, and a checkpoint every {night.checkpoint_pages} pages"]
    lines += [f"    {deed}" for deed in night.before]
    for deeds in night.during:
        lines += ["    a daemon has all of it indexed", *(f"        {deed}" for deed in deeds)]
    return "\n".join(lines)
