"""Whatever lies among transcripts or becomes of them, the daemon lives on, counts it, and finds everything else."""

import asyncio
import contextlib

# Python looks for these when they are needed, where the other user may not look.
import encodings.utf_8_sig  # noqa: F401
import html
import importlib.readers  # noqa: F401
import json
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import zstandard

from memd_client import AsyncClient, Client
from memd_client.watermark import marked, marked_reply
from tests.daemon.agentday import MORNING, Session, as_told, found_at, read_all, settled_in
from tests.daemon.chats import NEVER, QUICK, status, waiting
from tests.daemon.fresh import becomes_fresh
from tests.daemon.inprocess import running
from tests.daemon.process import Daemon
from tests.fakes.homes import ClaudeCode, Codex, Gemini, OpenClaw
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until

TIMEOUT_S = 30.0
AT_ONCE = "delta_bytes = 0"


def chats_of(daemon: Daemon, sessions: str = NEVER) -> Path:
    """A directory of transcripts that a daemon is about, before it is started."""
    chats = daemon.home / "chats"
    chats.mkdir()
    daemon.configure(settings(daemon.home, sessions))
    return chats


def settings(home: Path, sessions: str = NEVER) -> str:
    """TOML of an agent with transcripts."""
    return (
        f'sources = ["memory", "sessions"]\nprovider = "none"\n{QUICK}\n'
        f'sessions = {{ paths = ["{home}/chats"], {sessions} }}'
    )


def line(text: str, role: str = "user", **more: object) -> bytes:
    """What somebody said, as a transcript has it that no agent wrote."""
    return json.dumps({"role": role, "content": text, **more}, ensure_ascii=False).encode() + b"\n"


def failures(daemon: Daemon, client: Client) -> list[str]:
    """What went wrong inside."""
    last = status(client).last_pass
    told = [] if last is None or last.failed is None else [last.failed]
    return told + [
        row for row in daemon.printed().splitlines() if '"level": "error"' in row or "Traceback" in row
    ]


def lay_out_bytes(chats: Path) -> dict[str, str]:
    """Transcripts of awkward bytes; a word of what is said in each, and the name of the file."""
    deep = b"[" * 30_000
    long = b'{"role": "user", "content": "' + b"x" * 30_000_000 + b'"}\n'
    contents = {
        "longline": line("before the longline1x") + long + line("after the longline2x"),
        "longend": line("before the longend1x") + long[:-2],
        "nul": line("the nul1x").replace(b"the ", b"the\0 ") + b"\0" * 5000 + b"\n" + line("and nul2x"),
        "nulend": line("the nulend1x") + b"\0" * 9000,
        "halves": line("the halves1x").replace(b"the", b"\\ud83d the \xff\xfe") + line("and halves2x"),
        "crlf": b"\xef\xbb\xbf" + (line("the crlf1x") + b"\n" + line("the crlf2x")).replace(b"\n", b"\r\n"),
        "deep": deep + b"\n" + line("behind the deep1x") + b'{"role": "user", "content": ' + deep + b"\n",
        "shapes": b'{"role": ["user"]}\n[]\n"text"\n3\nnull\n{"role": "user", "content": {"a": 1}}\n'
        + line("among the shapes1x"),
        "times": b"".join(
            line(f"times{number}x", timestamp=at)
            for number, at in enumerate((9e9, 1, -5, 1e300, "2026-03-02T10:00:00Z", "2020-13-45", None, 2e12))
        ),
        "escapes": line('"\\u0000" \x1b[31m\r\n\u2028 the escapes1x\ufffe'),
        "unended": line("the unended1x")[:-1],
    }
    for name, content in contents.items():
        (chats / f"{name}.jsonl").write_bytes(content)
    packed = zstandard.compress(line("the packed1x") + line("the packed2x"))
    (chats / "packed.jsonl.zst").write_bytes(packed + zstandard.compress(line("the frame1x")))
    (chats / "cut.jsonl.zst").write_bytes(
        zstandard.compress(
            b"".join(line(f"cut{number}x {Random(number).random()}") for number in range(9000))
        )[:-900]
    )
    words = [f"{name}1x" for name in (*contents, "packed", "frame", "cut")]
    words += [f"{name}2x" for name in ("longline", "nul", "halves", "crlf", "packed")]
    words += [f"times{number}x" for number in (0, 2, 3, 4, 5, 6, 7)]
    return {word: "packed" if word == "frame1x" else word[:-2] for word in words if word != "longend2x"}


def lay_out_kinds(chats: Path, bound: socket.socket) -> dict[str, int]:
    """What has the name of a transcript and is none; how often each is to be counted, and as what."""
    (chats / "elsewhere").mkdir()
    outside = chats.parent / "outside.jsonl"
    outside.write_bytes(line("the outsider1x"))
    os.mkfifo(chats / "fifo.jsonl")
    os.mkfifo(chats / "fifo.jsonl.zst")
    bound.bind(str(chats / "socket.jsonl"))
    (chats / "link.jsonl").symlink_to(outside)
    (chats / "loop.jsonl").symlink_to("loop.jsonl")
    (chats / "dangling.jsonl.zst").symlink_to("nowhere.jsonl.zst")
    (chats / "linked").symlink_to(chats / "elsewhere")
    (chats / "directory.jsonl").mkdir()
    (chats / "directory.jsonl" / "inside.jsonl").write_bytes(line("the inside1x"))
    (chats / "empty.jsonl").touch()
    (chats / "blank.jsonl").write_bytes(b"\n" * 300)
    (chats / "hollow.jsonl.zst").touch()
    (chats / "binary.jsonl").write_bytes(Random(1).randbytes(200_000))
    (chats / "text.jsonl").write_bytes(b"no JSON at all\n" * 200)
    (chats / "unknown.jsonl").write_bytes(b'{"level": "info", "message": "a log of something"}\n' * 200)
    (chats / "broken.jsonl.zst").write_bytes(Random(2).randbytes(20_000))
    flipped = bytearray(zstandard.compress(line("the flipped1x") * 2000))
    flipped[2] ^= 0xFF
    (chats / "flipped.jsonl.zst").write_bytes(flipped)
    (chats / "bomb.jsonl.zst").write_bytes(zstandard.compress(b" " * 1_000_000) * 80)
    for name in (
        "a.jsonl.lock",
        ".hidden.jsonl",
        "b.jsonl.tmp-1",
        "c.jsonl.deleted.2026-03-02T10-00-00.000Z",
    ):
        (chats / name).write_bytes(line("the leftover1x"))
    return {
        "not a regular file": 3,
        "symlink": 4,
        "too large": 1,
        "unreadable": 2,
        "transcript in no known format": 3,
    }


def test_awkward_files_are_counted_and_stop_nothing(daemon: Daemon) -> None:
    """Long lines, NUL, broken UTF-8, depth, odd shapes; FIFOs, sockets, links, directories, damage, unknown formats."""
    chats = chats_of(daemon)
    words = lay_out_bytes(chats)
    with socket.socket(socket.AF_UNIX) as bound:
        skipped = lay_out_kinds(chats, bound)
        with daemon.start().client(timeout=60) as client:
            client.sync()
            for word, name in words.items():
                assert found_at(client, word) == {f"sessions/chats/{name}.jsonl"}, word
            assert found_at(client, "inside1x") == {"sessions/chats/directory.jsonl/inside.jsonl"}
            for word in ("outsider1x", "leftover1x", "flipped1x"):
                assert not found_at(client, word)
            told = status(client)
            assert told.skipped == skipped
            assert told.sessions is not None
            assert told.sessions.lines_skipped["too_long"] == 2
            assert told.sessions.lines_skipped["broken"] >= 2
            assert told.sessions.lines_skipped["unknown"] >= 2
            for name in ("fifo", "socket", "link", "binary", "nowhere"):
                assert not client.get(f"sessions/chats/{name}.jsonl").text
            # What is put right is found.
            for name in ("fifo", "link", "loop", "socket"):
                (chats / f"{name}.jsonl").unlink()
            (chats / "fifo.jsonl.zst").unlink()
            for name in ("fifo", "link", "empty", "binary", "text", "blank", "loop"):
                (chats / f"{name}.jsonl").write_bytes(line(f"mended{name}x"))
            for name in ("broken", "flipped"):
                (chats / f"{name}.jsonl.zst").write_bytes(zstandard.compress(line(f"mended{name}x")))
            client.sync()
            for name in ("fifo", "link", "empty", "binary", "text", "blank", "loop", "broken", "flipped"):
                assert found_at(client, f"mended{name}x") == {f"sessions/chats/{name}.jsonl"}
            becomes_fresh(daemon, client, settings(daemon.home))
            assert failures(daemon, client) == []


PIECES: dict[str, Callable[[Path], Session]] = {
    "openclaw": lambda home: OpenClaw(home).session(at=MORNING),
    "claude-code": lambda home: ClaudeCode(home).session(at=MORNING),
    "codex": lambda home: Codex(home).session(at=MORNING),
    "gemini": lambda home: Gemini(home).session(at=MORNING),
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("agent", PIECES)
def test_a_transcript_that_comes_in_pieces_is_read_as_if_it_had_come_at_once(
    daemon: Daemon, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a piece ends, in a line or in a character: nothing is lost, doubled or broken."""
    settled_in(daemon.home, monkeypatch)
    session = PIECES[agent](daemon.home)
    for number in range(4):
        session.user(f"温室的备用钥匙在哪里？🔑 piece{number}x", MORNING + 60 * number)
        session.tool("Read", {"path": "钥匙.md"}, "蓝色水壶", MORNING + 60 * number)
        session.assistant("在蓝色水壶后面 🪴", at=MORNING + 60 * number)
    content = session.path.read_bytes()
    rng = Random(agent)
    inside = [at for at, byte in enumerate(content) if byte & 0xC0 == 0x80]  # a character goes on
    cuts = sorted({*rng.sample(range(len(content)), 12), *rng.sample(inside, 12)})
    session.path.write_bytes(b"")
    presets = (
        f'sources = ["sessions"]\nprovider = "none"\n{QUICK}\nsessions = {{ presets = ["{agent}"], {NEVER} }}'
    )
    daemon.configure(presets)
    with daemon.start().client() as client:
        for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
            with session.path.open("ab") as stream:
                stream.write(content[begin:end])
            client.sync()
        [name] = found_at(client, "piece0x")
        assert read_all(client, name) == as_told(session.turns)
        told = status(client).sessions
        assert told is not None
        assert (told.turns, told.lines_skipped) == (len(session.turns), {})
        becomes_fresh(daemon, client, presets)


@contextmanager
def meanwhile(work: Callable[[int], None]) -> Iterator[None]:
    """Have something done again and again, as fast as it goes."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        turn = 0
        try:
            while not stop.is_set():
                work(turn)
                turn += 1
        except BaseException as error:  # noqa: BLE001 - it is raised where the test can see it
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", [3, 12])
def test_transcripts_that_are_compressed_deleted_and_rewritten_while_they_are_read(
    daemon: Daemon, rounds: int
) -> None:
    """What is there the whole time under one name or the other is found at any moment; the rest as it is in the end."""
    chats = chats_of(daemon, AT_ONCE)
    plain, packed = chats / "packed.jsonl", chats / "packed.jsonl.zst"
    content = b"".join(line(f"the packed{number}x. " + "so it was said. " * 60) for number in range(300))
    plain.write_bytes(content)
    steady = chats / "steady.jsonl"

    def put(file: Path, data: bytes) -> None:
        part = file.with_name(f".{file.name}.part")
        part.write_bytes(data)
        part.rename(file)

    def churn(turn: int) -> None:
        if turn % 2:
            put(plain, content)
            packed.unlink()
        else:
            put(packed, zstandard.compress(content))
            plain.unlink()
        doomed = chats / f"doomed{turn % 5}.jsonl"
        doomed.write_bytes(content[: 100_000 + turn])
        with doomed.open("ab") as stream:
            stream.truncate(1000 * (turn % 7))
        (chats / f"doomed{(turn + 2) % 5}.jsonl").unlink(missing_ok=True)
        time.sleep(0.005)

    with daemon.start().client(timeout=60) as client:
        client.sync()
        with meanwhile(churn):
            for number in range(rounds):
                with steady.open("ab") as stream:
                    stream.write(line(f"the steady{number}x"))
                client.sync()
                assert found_at(client, f"steady{number}x") == {"sessions/chats/steady.jsonl"}
                assert "sessions/chats/packed.jsonl" in found_at(client, "packed299x")
                last = status(client).last_pass
                assert last is not None
                assert last.failed is None
        becomes_fresh(daemon, client, settings(daemon.home, AT_ONCE))
        assert failures(daemon, client) == []


def test_clocks_that_go_backwards_hide_nothing(daemon: Daemon) -> None:
    """Files from the future and the past, set back after they grew; turns keep the order in which they were said."""
    chats = chats_of(daemon)
    names = ("future", "past", "epoch", "steady")

    def dated(name: str, at: float) -> None:
        os.utime(chats / f"{name}.jsonl", (at, at))

    now = time.time()
    for name in names:
        (chats / f"{name}.jsonl").write_bytes(
            line(f"first {name}1x", timestamp="2026-03-02T10:00:00Z")
            + line(f"then {name}2x", timestamp="2019-01-01T00:00:00Z")
        )
    for name, at in zip(names, (now + 1e6, now - 1e6, 0, now), strict=True):
        dated(name, at)
    with daemon.start().client() as client:
        client.sync()
        for name in names:
            told = client.get(f"sessions/chats/{name}.jsonl").text
            assert told.index(f"{name}1x") < told.index(f"{name}2x")
        # The time of quiet is a day, and nobody asks: what comes from another time is not waited for.
        for name, at in (("future", now + 2e6), ("past", now - 2e6), ("epoch", 0), ("steady", now)):
            with (chats / f"{name}.jsonl").open("ab") as stream:
                stream.write(line(f"later {name}3x"))
            dated(name, at)
        for name in ("future", "past", "epoch"):
            until(lambda name=name: found_at(client, f"{name}3x"), TIMEOUT_S)  # type: ignore[misc]
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        assert not found_at(client, "steady3x")
    # Nobody sees a file grow whose time is set back to what it was.
    daemon.stop()
    for name in names:
        before = (chats / f"{name}.jsonl").stat()
        with (chats / f"{name}.jsonl").open("ab") as stream:
            stream.write(line(f"unseen {name}4x"))
        dated(name, before.st_mtime)
    with daemon.start().client() as client:
        client.sync()
        for name in names:
            assert found_at(client, f"{name}4x") == {f"sessions/chats/{name}.jsonl"}
        becomes_fresh(daemon, client, settings(daemon.home))


def test_the_same_directory_twice_is_one(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a preset, by its path, by a symlink to it, and by one transcript of it: each session is there once."""
    settled_in(daemon.home, monkeypatch)
    session = ClaudeCode(daemon.home).session(at=MORNING)
    session.user("the lonely1x", MORNING)
    projects = daemon.home / ".claude" / "projects"
    (daemon.home / "link").symlink_to(projects)
    paths = ", ".join(
        f'"{path}"' for path in (projects, daemon.home / "link", session.path, session.path.parent)
    )
    twice = (
        f'sources = ["sessions"]\nprovider = "none"\n{QUICK}\n'
        f'sessions = {{ presets = ["claude-code"], paths = [{paths}], {AT_ONCE} }}'
    )
    daemon.configure(twice)
    with daemon.start().client() as client:
        client.sync()
        [name] = found_at(client, "lonely1x")
        session.user("and lonely2x", MORNING + 60)
        until(lambda: found_at(client, "lonely2x"), TIMEOUT_S)
        assert found_at(client, "lonely2x") == {name}
        assert status(client).files == 1
        becomes_fresh(daemon, client, twice)


@pytest.mark.rows(1)
@pytest.mark.parametrize("agent", PIECES)
def test_what_memd_recalled_is_not_remembered_again(
    daemon: Daemon, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither marked in what the user says, however a client wraps it, nor as the result of a tool, time after time."""
    settled_in(daemon.home, monkeypatch)
    session = PIECES[agent](daemon.home)
    daemon.write("memory/a.md", "The lighthouse keeper is called beacon1x.\n")
    daemon.configure(
        f'sources = ["memory", "sessions"]\nprovider = "none"\n{QUICK}\n'
        f'sessions = {{ presets = ["{agent}"], {NEVER} }}'
    )
    with daemon.start().client() as client:
        for number in range(3):
            client.sync()
            hits = client.search("who is the lighthouse keeper?", max_results=50, min_score=0).results
            block = marked("\n\n".join(f"{hit.path}:{hit.start_line}\n{hit.snippet}" for hit in hits))
            results = json.dumps([{"path": hit.path, "snippet": hit.snippet} for hit in hits])
            session.user(f"{block}\n\nwho keeps it, question{number}x?", MORNING + 60 * number)
            session.tool("memory_search", {"query": "lighthouse"}, results, MORNING + 60 * number)
            wrapped = f"<hook_context>{html.escape(block)}</hook_context>"
            reply = json.dumps(marked_reply({"results": [{"snippet": hit.snippet} for hit in hits]}))
            session.user(f"go on, further{number}x\n\n{wrapped}\n\n{reply}", MORNING + 60 * number)
            session.assistant(f"I know, answer{number}x.", at=MORNING + 60 * number)
        client.sync()
        assert found_at(client, "beacon1x") == {"memory/a.md"}
        assert found_at(client, "lighthouse") == {"memory/a.md"}
        for number in range(3):
            for word in ("question", "further", "answer"):
                [name] = found_at(client, f"{word}{number}x")
                assert name.startswith(f"sessions/{agent}/")
        # Who speaks of it himself has said so.
        session.assistant("The keeper, as I remember, is beacon1x.", at=MORNING + 600)
        session.user("What does <memd-recall> mean, besides mark1x?", MORNING + 660)
        # And a mark that somebody made up, or that was cut off, hides nothing.
        planted = block.replace("beacon1x", "planted1x")
        session.user(f"{planted}\n\n{block.splitlines()[0]}\nafter1x", MORNING + 720)
        client.sync()
        assert found_at(client, "beacon1x") == {"memory/a.md", name}
        assert found_at(client, "mark1x") == {name}
        assert found_at(client, "planted1x") == found_at(client, "after1x") == {name}


async def _closes_and_opens(home: Path) -> dict[str, object]:
    told: dict[str, object] = {}
    chats = home / "chats"
    for name in ("open", "shut", "later", "dir/a", "new/b"):
        file = chats / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(line(f"quokka of {name}"))
    for path in (chats / "shut.jsonl", chats / "new"):
        path.chmod(0)
    async with running(home, settings=settings(home)) as client:
        told["at first"] = await _skipped(client), await _found(client, "quokka")
        # What was indexed stays findable while it is closed, as it was.
        (chats / "dir").chmod(0)
        with (chats / "later.jsonl").open("ab") as stream:
            stream.write(line("wombat in the meantime"))
        (chats / "later.jsonl").chmod(0)
        told["closed"] = await _skipped(client), await _found(client, "quokka")
        told["of closed"] = await _found(client, "wombat")
        for name in ("shut.jsonl", "new", "dir", "later.jsonl"):
            (chats / name).chmod(0o755)
        told["opened"] = (
            await _skipped(client),
            await _found(client, "quokka"),
            await _found(client, "wombat"),
        )
    return told


async def _found(client: AsyncClient, word: str) -> list[str]:
    hits = (await client.search(word, max_results=50, min_score=0)).results
    return sorted({hit.path.removeprefix("sessions/chats/") for hit in hits if word in hit.snippet})


async def _skipped(client: AsyncClient) -> dict[str, int]:
    await client.sync()
    return (await client.status()).agents["main"].skipped


def closes_and_opens(home: str) -> dict[str, object]:
    """What the other user sees."""
    with contextlib.redirect_stdout(sys.stderr):  # the log goes where the answer goes
        return asyncio.run(_closes_and_opens(Path(home)))


def test_closed_transcripts_and_directories() -> None:
    """They are counted, what was indexed of them stays, others are indexed, and all is found once they are open."""
    with shared_directory() as home:
        told = as_other_user(__name__, closes_and_opens.__name__, str(home))
    assert told == {
        "at first": [{"unreadable": 2}, ["dir/a.jsonl", "later.jsonl", "open.jsonl"]],
        "closed": [{"unreadable": 4}, ["dir/a.jsonl", "later.jsonl", "open.jsonl"]],
        "of closed": [],
        "opened": [
            {},
            ["dir/a.jsonl", "later.jsonl", "new/b.jsonl", "open.jsonl", "shut.jsonl"],
            ["later.jsonl"],
        ],
    }


def test_a_directory_that_goes_and_comes_back(daemon: Daemon) -> None:
    """While it is away its transcripts are kept, for a disk may be away; one that is emptied by hand is empty."""
    chats = chats_of(daemon, AT_ONCE)
    for number in range(3):
        (chats / f"{number}.jsonl").write_bytes(line(f"the walrus{number}x"))
    with daemon.start().client() as client:
        client.sync()
        aside = chats.rename(daemon.home / "aside")
        client.sync()
        assert found_at(client, "walrus1x") == {"sessions/chats/1.jsonl"}
        aside.rename(chats)
        (chats / "2.jsonl").write_bytes(line("the heron2x"))
        client.sync()
        assert found_at(client, "walrus1x") == {"sessions/chats/1.jsonl"}
        assert not found_at(client, "walrus2x")
        assert found_at(client, "heron2x") == {"sessions/chats/2.jsonl"}
        shutil.rmtree(chats / "1.jsonl", ignore_errors=True)
        (chats / "1.jsonl").unlink()
        client.sync()
        assert not found_at(client, "walrus1x")
        assert failures(daemon, client) == []
