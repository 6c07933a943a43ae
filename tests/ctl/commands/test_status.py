"""memd-ctl status."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd import VERSION
from memd.ctl.commands.status import text
from memd.ctl.output.terminal import ansi, uncoloured
from memd_client.messages import (
    BackendFallback,
    BatchStatus,
    Embedding,
    Health,
    Memory,
    Pass,
    PassedOver,
    Progress,
    QmdStatus,
    Request,
    Searches,
    SentToProvider,
    Sessions,
    Slowest,
    Status,
    StatusReport,
    VectorHealth,
    Vectors,
)
from tests.bounds import shipped
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Run
from tests.ctl.pages import check_page

_NOW = 1_000_012.0
_ANN = Path("/home/ann")
_FAILED = Pass(at=_NOW, took_s=2.0, failed="the disk is full")


def _text(report: StatusReport) -> str:
    return text(report, _NOW, _ANN, uncoloured)


def test_a_daemon_of_another_version_is_told() -> None:
    """What was installed anew runs only after a restart."""
    lines = _text(msgspec.structs.replace(status(agent()), version="0.0.9")).splitlines()
    assert lines[0].startswith("memd 0.0.9")
    assert f"memd-ctl {VERSION}" in lines[1]
    assert "memd-ctl service restart" in lines[1]


@pytest.mark.parametrize(
    ("memory", "lines"),
    [
        (Memory(daemon_mb=98.4), ["  memory    98 MB"]),
        (Memory(daemon_mb=98.4, worker_mb=60.2), ["  memory    98 MB, and 60 MB of what embeds"]),
        (Memory(daemon_mb=98.4, limit_mb=2000), ["  memory    98 MB; the limit is 2,000 MB"]),
        (
            Memory(daemon_mb=98.4, limit_mb=64, trouble="too much"),
            ["  memory    too much"],
        ),
    ],
)
def test_what_memory_it_holds_is_told(memory: Memory, lines: list[str]) -> None:
    """With the limit, and why that is not kept; vectors on disk are no trouble."""
    shown = _text(status(agent(vectors=Vectors(done=9, on_disk=True)), memory=memory))
    assert [line for line in shown.splitlines() if line.startswith("  memory ")] == lines
    assert "vector ok" in shown


def test_a_page_shows_each_agent_at_a_glance() -> None:
    """One that is well in a few lines; of one in trouble each part with its reason; of one on qmd what that does."""
    ill = agent(
        vectors=Vectors(done=1200, waiting=630, eta_s=157.0),
        dirty=3,
        skipped={"not UTF-8": 1, "larger than 16 MB": 2},
        vector=VectorHealth(ok=False, reason="sqlite-vec is missing"),
        watcher=Health(ok=False),
        provider_health=Health(ok=False, reason="timed out\nthree times"),
        last_pass=Pass(at=_NOW, took_s=2.0, failed="the disk is full"),
        rebuild="the chunking changed",
        extra_paths=["/home/ann/docs", "/home/ann/notes", "/srv/wiki"],  # the second is the workspace itself
        sources=["memory", "sessions"],
        backend="qmd",
    )
    qmd = QmdStatus(
        command="/usr/bin/qmd",
        version="2.8.3",
        collections=["memory-root-main", "memory-dir-main"],
        files=214,
        exported=3,
        last_update=_NOW - 12,
        last_embed=_NOW - 3600,
        update_failure="it is locked",
        warnings=["collection /srv: there is no such directory"],
    )
    rest = Vectors(done=0, note="they rest while qmd answers")
    answering_ = agent(backend="qmd", provider="qmd", model="qmd", vectors=rest, qmd=qmd)
    check_page("status", _text(status(agent(), ill, answering_)))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "nothing: the index is up to date"),
        ({"dirty": 2}, "2 changes to look into"),
        ({"last_pass": None}, "not known: nothing was looked at yet"),
        ({"last_pass": _FAILED}, "not known: the last pass failed"),
        ({"watcher": Health(ok=False, reason="no watches")}, "no other change is known: see watcher"),
    ],
)
def test_an_index_is_called_up_to_date_only_where_that_is_known(changes: dict[str, Any], line: str) -> None:
    """Not before the first pass, after one that failed, or while files cannot be looked at."""
    lines = _text(status(agent(**changes))).splitlines()
    assert f"  dirty     {line}" in lines


def test_what_was_sent_to_a_provider_is_told() -> None:
    """It is what one pays for."""
    sent = [SentToProvider(provider="openai", model="small", texts=1_200, tokens=345_678)]
    lines = _text(msgspec.structs.replace(status(agent()), sent=sent)).splitlines()
    assert "  sent      openai small: 1,200 texts, about 345,678 tokens" in lines
    assert "sent" not in _text(status(agent()))


def test_how_long_searches_took_is_told() -> None:
    """The middle of the last ones, and where the time of the slowest went."""
    parts = {
        "question's vector": 1800.0,
        "ranking": 60.0,
        "keywords + question's vector": 30.0,
        "vectors": 10.0,
    }
    assert len(parts) == shipped("memd.ctl.commands.status._PARTS") + 1
    slowest = Slowest(at=_NOW - 180, took_ms=1900.0, parts=parts)
    asked = agent(searches=Searches(count=100, median_ms=6.4, slowest=slowest))
    assert _text(status(asked)).endswith(
        "\n  searches  the last 100: half within 6 ms; the slowest 1.9 s, 3 min ago"
        " (question's vector 1.8 s, ranking 60 ms, keywords + question's vector 30 ms)"
    )
    quick = agent(searches=Searches(count=1, median_ms=6.4, slowest=Slowest(at=_NOW, took_ms=6.4)))
    assert _text(status(quick)).endswith("\n  searches  one: 6 ms, just now")


def test_an_agent_that_cannot_run_tells_why_and_claims_nothing_else() -> None:
    """What nobody has looked at is not said to work."""
    left_out = agent(store_bytes=0, last_pass=None, store=Health(ok=False, reason="a newer memd wrote it"))
    told = _text(status(left_out)).split("\n\n")[1].splitlines()
    assert told[1:] == [
        "  index     not open: this agent answers nothing",
        "  store     degraded: a newer memd wrote it",
    ]


def test_who_answers_is_told() -> None:
    """The built-in backend in the place of another one, with the reason and the next attempt."""
    fallback = BackendFallback(
        from_="qmd", reason="it is not on the PATH", since=_NOW - 5, retry_at=_NOW + 55
    )
    assert _text(status(agent(backend_fallback=fallback))).endswith(
        "  backend   builtin, in the place of qmd: it is not on the PATH; the first search in 55 s tries it again"
    )
    due = BackendFallback(from_="qmd", reason="Install it.", since=_NOW - 90, retry_at=_NOW - 30)
    assert _text(status(agent(backend_fallback=due))).endswith(
        "in the place of qmd: Install it; the next search tries it again"
    )
    early = BackendFallback(from_="qmd", reason="qmd is not ready yet")
    assert _text(status(agent(backend_fallback=early))).endswith("in the place of qmd: qmd is not ready yet")
    new = agent(backend="qmd", qmd=QmdStatus(command="/q"))
    assert "  backend   qmd, mode search, 0 collections, not updated yet" in _text(status(new))
    assert "vectors   7 done; they rest" in _text(
        status(agent(vectors=Vectors(done=7, note="they rest while qmd answers")))
    )


def test_providers_that_were_passed_over_are_told_in_one_sentence() -> None:
    """Each with its reason, which is a sentence of its own elsewhere."""
    over = [PassedOver(provider=name, reason=f"{name}: there is no key.") for name in ("openai", "voyage")]
    told = _text(status(agent(passed_over=over)))
    assert "  not taken openai: there is no key; voyage: there is no key\n" in told


def test_transcripts_are_told_in_a_line_or_two() -> None:
    """How many there are, what waits, what was taken out by kind: the most first, and nothing where nothing is."""
    many = Sessions(files=1, turns=12_345, waiting=2, lines_skipped={"too_long": 1, "broken": 3})
    told = agent(sources=["memory", "sessions"], sessions=many, redacted={"github-token": 1, "password": 12})
    assert _text(status(told)).endswith(
        "  sources   memory, sessions\n"
        "  sessions  1 transcript, 12,345 turns; 2 still growing, indexed once quiet;"
        " lines skipped: 3 broken, 1 too long\n"
        "  redacted  13 secrets: 12 password, 1 github-token"
    )
    assert _text(status(agent(sources=["memory", "sessions"], sessions=Sessions()))).endswith(
        "  sessions  0 transcripts, 0 turns"
    )


def test_what_is_good_to_know_of_the_watcher_is_told_without_alarm() -> None:
    """A network mount is no trouble, and is named all the same."""
    reason = "~/notes is on nas:/notes (nfs4): what others change there is looked for every few seconds"
    shown = _text(status(agent(watcher=Health(ok=True, reason=reason))))
    assert "watcher ok" in shown
    assert shown.endswith(f"\n  watcher   {reason}")


def test_a_configuration_that_was_refused_is_loud() -> None:
    """It is easily overlooked: the old one works."""
    report = status(config=None, config_error="config.toml:3: no\nconfig.toml:4: nor this")
    assert "  config    built-in defaults\n" in _text(report)
    assert _text(report).endswith(
        "The configuration is wrong; the one before is in force:\n  config.toml:3: no\n  config.toml:4: nor this"
    )
    assert "\x1b[31m  config.toml:3: no" in text(report, _NOW, _ANN, ansi)


def test_what_the_daemon_fails_at_is_told_of_the_part_that_fails() -> None:
    """The cache is well while the daemon cannot listen."""
    told = _text(status(daemon_health=Health(ok=False, reason="keeping the socket failed: OSError")))
    assert told.endswith("\n  daemon    degraded: keeping the socket failed: OSError")
    assert "cache" not in told


def test_a_thesaurus_that_cannot_be_read_is_told() -> None:
    """Once for all agents, with what helps."""
    told = _text(status(synonyms=Health(ok=False, reason="the thesaurus cannot be read; install memd anew")))
    assert told.endswith("\n  synonyms  degraded: the thesaurus cannot be read; install memd anew")


def test_an_agent_that_just_began_has_no_past() -> None:
    """And one without a provider no vectors."""
    told = _text(
        status(
            agent(last_pass=None, vectors=Vectors(), files=0, chunks=0, store_bytes=512),
            agent(provider="none", model="", vectors=Vectors()),
            agent(vectors=Vectors(waiting=3)),
        )
    )
    first, second, third = told.split("\n\n")[1:]
    assert "  index     0 files, 0 chunks, 512 bytes\n  vectors   none\n" in first
    assert "  last pass none yet\n" in first
    assert second.startswith("other1  ~/notes\n")
    assert "  vectors   none: search is by keywords alone\n  provider  none\n" in second
    assert "  vectors   0 of 3 done, 3 waiting\n" in third


def test_vectors_of_an_earlier_provider_are_not_called_done() -> None:
    """No search uses them, and what was written since has none."""
    told = _text(status(agent(provider="none", model="", chunks=13, vectors=Vectors(done=12))))
    assert "  vectors   none: search is by keywords alone, and 12 of an earlier provider are kept\n" in told


def test_the_daemon_is_asked_for_one_agent_or_all(run: Run, address: Path) -> None:
    """JSON gives what it said, with every field."""
    heard: list[Request] = []
    with serving(address, answering(status(agent()), heard=heard)):
        code, out, err = run("status", "--agent", "main", "--json")
    assert (code, err, heard) == (0, "", [Status(agent="main")])
    data = json.loads(out)["data"]
    assert (data["pid"], data["config_error"]) == (4711, None)
    assert data["agents"]["main"]["vectors"] == {
        "done": 1830,
        "waiting": 0,
        "eta_s": None,
        "note": None,
        "resident_mb": 0.0,
        "on_disk": False,
    }
    assert data["agents"]["main"]["provider_health"] == {"ok": True, "reason": None}
    with serving(address, answering(status(agent()))):
        assert run("status").out.startswith(f"memd {VERSION}  running for 3 h 12 min, pid 4711\n")


def test_a_daemon_that_does_not_run_is_told_in_a_sentence(run: Run, address: Path) -> None:
    """With how to start it."""
    code, out, err = run("status")
    assert (code, out) == (69, "")
    assert err == (
        f"memd-ctl: No memd daemon can be reached at {address}: there is no such socket.\n"
        "Start it with `memd run` or `memd-ctl up`; if it listens elsewhere, set MEMD_SOCKET to that path.\n"
    )


def test_a_pass_that_reads_says_how_far_it_is() -> None:
    """In files."""
    shown = text(status(agent(progress=Progress(done=120, total=3400))), 0.0, Path("/"), uncoloured)
    assert "  reading   120 of 3,400 files\n" in shown


@pytest.mark.parametrize("flags", [["--watch"], ["--watch", "--json"]])
def test_watching_needs_a_terminal(run: Run, address: Path, flags: list[str]) -> None:
    """Into a pipe or a file nothing can be drawn; it is refused before the daemon is asked."""
    code, out, err = run("status", *flags)
    assert code == 2
    assert "--watch" in out + err


def _read_until(descriptor: int, got: bytearray, wanted: bytes) -> None:
    while wanted not in got:
        got += os.read(descriptor, 4096)


@pytest.mark.rows(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watching_leaves_the_terminal_as_it_was(address: Path, number: int, code: int) -> None:
    """It draws what is new, says when the daemon is gone, and gives cursor, line ends and page back."""
    ours, theirs = os.openpty()
    first, second = status(agent()), status(agent(files=777))
    with serving(address, answering(first, first, second)):
        command = [sys.executable, "-m", "memd.ctl", "status", "--watch", "--socket", str(address)]
        watching = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"}
        )
        os.close(theirs)
        got = bytearray()
        with watching:
            _read_until(ours, got, b"777 files")
            watching.send_signal(number)
            with suppress(OSError):
                _read_until(ours, got, b"\x1b[?1049l")
            assert watching.wait(60) == code
    os.close(ours)
    assert got.startswith(b"\x1b[?1049h\x1b[?25l\x1b[?7l")
    assert b"214 files" in got
    assert got.endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
    assert b"Traceback" not in got


def test_how_embedding_stands_is_told() -> None:
    """What waits for the person, with the command; how batch jobs do, with the way to have them again."""
    waiting = Embedding(
        state="waiting_for_confirmation",
        reason="30,000 chunks; `memd-ctl embed confirm --agent main`",
        batch=BatchStatus(enabled=True, on=False, failures=2, reason="expired", at=_NOW - 60),
    )
    said = _text(status(agent(embedding=waiting)))
    assert (
        "  embedding waiting for your confirmation: 30,000 chunks; `memd-ctl embed confirm --agent main`"
        in said
    )
    assert "  batches   off after 2 failures, 1 min ago: expired;" in said
    assert "`memd-ctl embed batch on`" in said


def test_batches_that_nobody_configured_are_not_told() -> None:
    """As little as anything else that is well."""
    plain_one = Embedding(batch=BatchStatus())
    assert _text(status(agent(embedding=plain_one))) == _text(status(agent()))
