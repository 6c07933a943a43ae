"""memd-ctl status."""

import json
from pathlib import Path

from memd.ctl.commands.status import text
from memd.ctl.paint import ansi, plain
from memd_client.messages import Health, Pass, Request, Status, StatusReport, Vectors
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Run

_NOW = 1_000_012.0
_ANN = Path("/home/ann")


def _text(report: StatusReport) -> str:
    return text(report, _NOW, _ANN, plain)


def test_a_healthy_daemon_reads_at_a_glance() -> None:
    """Nothing is told of what is not there."""
    assert _text(status(agent())) == (
        "memd 0.1.0  running for 3 h 12 min, pid 4711\n"
        "  socket    /run/user/1000/memd/memd.sock\n"
        "  config    ~/.config/memd/config.toml\n"
        "\n"
        "main  ~/notes\n"
        "  index     214 files, 1,830 chunks, 12.4 MB\n"
        "  vectors   all 1,830 done\n"
        "  provider  local e5\n"
        "  dirty     nothing: the index is up to date\n"
        "  last pass 12 s ago, took 0.42 s\n"
        "  health    keyword ok, vector ok, watcher ok, provider ok"
    )


def test_an_agent_in_trouble_tells_all_of_it() -> None:
    """Each part that is degraded, with the reason in one line."""
    ill = agent(
        vectors=Vectors(done=1200, waiting=630, eta_s=157.0),
        dirty=3,
        skipped={"not UTF-8": 1, "larger than 16 MB": 2},
        vector=Health(ok=False, reason="sqlite-vec is missing"),
        watcher=Health(ok=False),
        provider_health=Health(ok=False, reason="timed out\nthree times"),
        last_pass=Pass(at=_NOW, took_s=2.0, failed="the disk is full"),
        rebuild="the chunking changed",
        extra_paths=["/home/ann/docs", "/srv/wiki"],
        sources=["memory", "sessions"],
        backend="qmd",
    )
    assert _text(status(ill)).split("\n\n")[1] == (
        "main  ~/notes\n"
        "  index     214 files, 1,830 chunks, 12.4 MB\n"
        "  vectors   1,200 of 1,830 done, 630 waiting, about 3 minutes to go\n"
        "  provider  local e5\n"
        "  dirty     3 changes to look into\n"
        "  last pass just now, took 2 s\n"
        "  health    keyword ok, vector DEGRADED, watcher DEGRADED, provider DEGRADED\n"
        "  also      ~/docs, /srv/wiki\n"
        "  sources   memory, sessions\n"
        "  backend   qmd\n"
        "  skipped   2 files: larger than 16 MB, 1 file: not UTF-8\n"
        "  vector    degraded: sqlite-vec is missing\n"
        "  watcher   degraded: no reason given\n"
        "  provider  degraded: timed out; three times\n"
        "  last pass failed: the disk is full\n"
        "  rebuild   under way: the chunking changed; the old index answers meanwhile"
    )


def test_a_configuration_that_was_refused_is_loud() -> None:
    """It is easily overlooked: the old one works."""
    report = status(config=None, config_error="config.toml:3: no\nconfig.toml:4: nor this")
    assert "  config    built-in defaults\n" in _text(report)
    assert _text(report).endswith(
        "The configuration is wrong; the one before is in force:\n  config.toml:3: no\n  config.toml:4: nor this"
    )
    assert "\x1b[31m  config.toml:3: no" in text(report, _NOW, _ANN, ansi)


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


def test_the_daemon_is_asked_for_one_agent_or_all(run: Run, address: Path) -> None:
    """JSON gives what it said, with every field."""
    heard: list[Request] = []
    with serving(address, answering(status(agent()), heard=heard)):
        code, out, err = run("status", "--agent", "main", "--json")
    assert (code, err, heard) == (0, "", [Status(agent="main")])
    data = json.loads(out)["data"]
    assert (data["pid"], data["config_error"]) == (4711, None)
    assert data["agents"]["main"]["vectors"] == {"done": 1830, "waiting": 0, "eta_s": None}
    assert data["agents"]["main"]["provider_health"] == {"ok": True, "reason": None}
    with serving(address, answering(status(agent()))):
        assert run("status").out.startswith("memd 0.1.0  running for 3 h 12 min, pid 4711\n")


def test_a_daemon_that_does_not_run_is_told_in_a_sentence(run: Run, address: Path) -> None:
    """With how to start it."""
    code, out, err = run("status")
    assert (code, out) == (69, "")
    assert err == (
        f"memd-ctl: No memd daemon can be reached at {address}: there is no such socket.\n"
        "Start it with `memd run` or `memd-ctl up`; if it listens elsewhere, set MEMD_SOCKET to that path.\n"
    )
