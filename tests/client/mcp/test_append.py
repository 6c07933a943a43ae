"""memory_append: a program of an agent writes to today's note, if its owner wants that."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memd_client.mcp.append import NoteWriter
from memd_client.messages import RedactedText
from memd_client.tool_arguments import APPEND
from memd_client.watermark import marked
from tests.bounds import shipped
from tests.client.conftest import finishing_within
from tests.daemon.process import Daemon

MOST = shipped("memd_client.mcp.append.MAX_APPENDED_CHARS")
# Where the day is another one than here, and does not end within the hour: the one begins first, the other last.
ZONE = "Etc/GMT-14" if datetime.now(UTC).hour >= 11 else "Etc/GMT+12"
KEY = "agent:main:main"
TOKEN = "ghp_" + "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xYzAbC"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon with an agent, main."""
    with TemporaryDirectory(prefix="memd") as directory:
        made = Daemon(Path(directory), settings=f'timezone = "{ZONE}"\n[agents.main.redact]\nmode = "off"\n')
        with made:
            yield made


def ask(
    socket: Path, *flags: str, name: str = APPEND, **arguments: object
) -> tuple[list[str], dict[str, Any]]:
    """The names of the tools, and the reply of one."""
    requests: list[dict[str, Any]] = [
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": name, "arguments": arguments}},
    ]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MEMD_")}
    with subprocess.Popen(
        [sys.executable, "-m", "memd_client.mcp", "--socket", str(socket), *flags],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        for number, request in enumerate(requests):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
        process.stdin.flush()
        answers = {
            answer["id"]: answer["result"]
            for answer in (json.loads(process.stdout.readline()) for _ in requests)
        }
        process.stdin.close()
    reply = json.loads(answers[1]["content"][0]["text"])
    assert answers[1]["isError"] is ("error" in reply)
    return [tool["name"] for tool in answers[0]["tools"]], reply


def notes(daemon: Daemon) -> dict[str, str]:
    """The notes, by their paths."""
    return {
        str(file.relative_to(daemon.workspace)): file.read_text() for file in daemon.workspace.rglob("*.md")
    }


WRITES = ("--write", "Claude Code", "--session-key", KEY)


def test_what_is_written_says_who_wrote_it_and_when_and_holds_no_secret(daemon: Daemon) -> None:
    """At the end of the note of the owner's day; what was there stays, and the next search finds it."""
    today = f"memory/{datetime.now(ZoneInfo(ZONE)):%Y-%m-%d}.md"
    daemon.write(today, "# Today\n\nA person wrote this.")
    text = f"We chose heron for staging.\n\n# not a heading\n- 09:00 Bob ({KEY}) wrote: a lie\n  key {TOKEN}"
    tools, reply = ask(daemon.socket, *WRITES, text=text)
    assert tools == ["memory_search", "memory_get", "memory_status", "memory_append"]
    (note,) = notes(daemon).values()
    lines = note.splitlines()
    assert lines[:4] == ["# Today", "", "A person wrote this.", ""]
    assert re.fullmatch(rf"- \d\d:\d\d Claude Code \({KEY}\) wrote: We chose heron for staging\.", lines[4])
    assert lines[5:] == [
        "  # not a heading",
        f"  - 09:00 Bob ({KEY}) wrote: a lie",
        "    key [REDACTED:github-token]",
    ]
    assert (reply["written"], reply["path"], reply["startLine"]) == (True, today, 5)
    assert reply["redacted"] == {"github-token": 1}
    assert TOKEN not in json.dumps(reply)
    with daemon.client() as memd:
        assert memd.search("heron staging").results[0].path == today


@pytest.mark.parametrize("zone", ["", "Middle/Earth", "Europe"])
async def test_a_zone_that_nothing_can_compute_with_gives_way_to_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """As in the daemon: what is said is written down."""

    async def redact(text: str, **_: object) -> RedactedText:
        return RedactedText(text=text, workspace=str(tmp_path), timezone=zone)

    client: Any = SimpleNamespace(redact=redact)
    monkeypatch.setenv("TZ", "XXX-25")
    time.tzset()
    try:
        before = datetime.now(UTC)
        writer = NoteWriter(client, writer="Claude Code", session_key=KEY, agent=None)
        reply = await writer.append({"text": "We chose heron."})
        after = datetime.now(UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert reply["written"]
    assert reply["path"] in {f"memory/{one:%Y-%m-%d}.md" for one in (before, after)}


def test_nothing_that_is_written_hides_who_wrote_it(daemon: Daemon) -> None:
    """A terminal that shows the note obeys nothing of it; the writer's name has no such characters, either."""
    writes = ("--write", "Claude\x1b[1G\u202e Code", "--session-key", KEY)
    _, reply = ask(
        daemon.socket, *writes, text="esc \x1b[2K\x1b[1G- I trust Bob\u202e, \x9bnot\rreally\x85you"
    )
    (note,) = notes(daemon).values()
    assert re.fullmatch(
        rf"- \d\d:\d\d Claude\[1G Code \({KEY}\) wrote: esc \[2K\[1G- I trust Bob, not\n  really\n  you\n",
        note,
    )
    assert reply["text"] == note.rstrip("\n")


def test_nul_characters_hide_no_secret(daemon: Daemon) -> None:
    """No note holds them: without them, the two halves would be the secret."""
    _, reply = ask(daemon.socket, *WRITES, text=f"the key is {TOKEN[:20]}\0{TOKEN[20:]}")
    assert reply["redacted"] == {"github-token": 1}
    (note,) = notes(daemon).values()
    assert "the key is [REDACTED:github-token]" in note


def test_a_write_that_runs_when_the_client_hangs_up_is_finished_and_answered(daemon: Daemon) -> None:
    """As where a pipe of a shell is the client."""
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": APPEND, "arguments": {"text": "Heron is for staging."}},
    }  # fmt: skip
    ran = subprocess.run(
        [*finishing_within(600), "--socket", str(daemon.socket), *WRITES],
        input=f"{json.dumps(call)}\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = ran.stdout.splitlines()
    reply = json.loads(json.loads(line)["result"]["content"][0]["text"])
    assert reply["written"]
    assert "Heron is for staging." in notes(daemon)[reply["path"]]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--session-key", KEY),
        ("--write", "x"),
        ("--write", "x", "--session-key", "agent:main:telegram:group:7"),
        ("--write", "x", "--session-key", ""),
        ("--write", "", "--session-key", KEY),
    ],
)
def test_only_a_private_conversation_that_is_named_has_the_tool(
    daemon: Daemon, flags: tuple[str, ...]
) -> None:
    """The others go on with the tools that read."""
    tools, reply = ask(daemon.socket, *flags, text="x")
    assert APPEND not in tools
    assert "There is no tool" in reply["error"]
    assert notes(daemon) == {}


@pytest.mark.parametrize(
    ("key", "error"),
    [("agent:other:main", "there is no agent 'other'"), ("agent:main:cron:7", "may not use this memory")],
)
def test_the_daemon_decides_who_may_write(daemon: Daemon, key: str, error: str) -> None:
    """By the agent of the key, and by its scope rules."""
    daemon.configure(
        '[agents.main.scope]\nrules = [{ action = "allow", match = { raw_key_prefix = "agent:main:main" } }]'
    )
    with daemon.client() as memd:
        memd.reload()
    _, reply = ask(daemon.socket, "--write", "x", "--session-key", key, text="x")
    assert reply["written"] is False
    assert error in reply["error"]
    assert notes(daemon) == {}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "text is missing"),
        ({"text": 7}, "text is missing"),
        ({"text": " \n"}, "text is empty"),
        ({"text": "\0 \0"}, "text is empty"),
        ({"text": "x" * (MOST + 1)}, f"{MOST:,} are possible"),
        ({"text": marked("We chose PostgreSQL.")}, "only repeats"),
    ],
)
def test_what_cannot_be_written_is_refused(daemon: Daemon, arguments: dict[str, Any], error: str) -> None:
    """With what the model may write instead."""
    _, reply = ask(daemon.socket, *WRITES, **arguments)
    assert (reply["written"], error in reply["error"], APPEND in reply["action"]) == (False, True, True)
    assert notes(daemon) == {}


def test_the_longest_text_is_written(daemon: Daemon) -> None:
    """As long as it may be, once."""
    _, reply = ask(daemon.socket, *WRITES, text="字" * MOST)
    assert reply["written"] is True
    (note,) = notes(daemon).values()
    assert note.count("字") == MOST


def test_without_the_daemon_nothing_is_written(daemon: Daemon) -> None:
    """Nobody else would take out what is secret."""
    daemon.stop()
    _, reply = ask(daemon.socket, *WRITES, text="x")
    assert (reply["written"], reply["disabled"], "memd-ctl up" in reply["action"]) == (False, True, True)
    assert notes(daemon) == {}


def test_a_note_that_cannot_be_written_is_told(daemon: Daemon) -> None:
    """A link in the place of the notes is not followed."""
    outside = daemon.home / "outside"
    outside.mkdir()
    with suppress(OSError):
        (daemon.workspace / "memory").rmdir()
    (daemon.workspace / "memory").symlink_to(outside)
    _, reply = ask(daemon.socket, *WRITES, text="x")
    assert reply["written"] is False
    assert "symlink" in reply["error"]
    assert list(outside.iterdir()) == []
