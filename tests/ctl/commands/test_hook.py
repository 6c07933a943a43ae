"""memd-ctl hook, as the programs of agents call it."""

import calendar
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memd.ctl.commands.hook import _date, _now
from memd.ctl.integrations.hooks import HOOK_CLIENTS
from memd_client.messages import Found, Get, Note, Request, Search, Sync, SyncReport, Warm
from memd_client.watermark import unmarked
from tests.bounds import shipped
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run
from tests.ctl.hooked import SILENT, TIMEOUT_S, brought, hook
from tests.daemon.process import Daemon
from tests.modules import existing

EVENTS = HOOK_CLIENTS["claude"].events
RUNTIME_EVENTS = tuple(EVENTS.values())


def day(days: int, zone: str | None = None) -> str:
    """A date from today on, in a time zone."""
    command = ["date", "-d", f"{days} days", "+%F"]
    ran = subprocess.run(
        command, capture_output=True, check=True, text=True, env=os.environ | ({"TZ": zone} if zone else {})
    )
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Some notes, those of today and yesterday among them."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home))
        daemon.write("MEMORY.md", "# Choices\n\n    - the PostgreSQL database for billing\n")
        daemon.write(f"memory/{day(0)}.md", "# Today\n\n- mended the retries\n")
        daemon.write(f"memory/{day(-1)}.md", "# Yesterday\n\n- broke the retries\n")
        for number in range(12):
            daemon.write(f"memory/long{number}.md", f"# Kangaroo {number}\n\nkangaroo {number} {'é' * 500}\n")
        with daemon.start(), daemon.client() as client:
            client.sync()
            yield daemon


def test_a_message_gets_what_memory_has_for_it(daemon: Daemon) -> None:
    """In a marked block, under the name that Claude Code gives the event."""
    ran = hook(
        "user-prompt",
        daemon.socket,
        {
            "prompt": "PostgreSQL database for billing?",
            "session_id": "s",
            "hook_event_name": "UserPromptSubmit",
        },
    )
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out).keys() == {"hookSpecificOutput"}
    assert json.loads(ran.out)["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "MEMORY.md#L" in ran.context
    assert "\n    - the PostgreSQL database for billing\n" in ran.context
    assert unmarked(ran.context) == ""
    assert unmarked(ran.context) == ""


def test_what_is_brought_is_bounded(daemon: Daemon) -> None:
    """Two thousand characters, with whole hits."""
    context = brought("user-prompt", daemon.socket, {"prompt": "kangaroo"})
    assert 1_000 < len(context) <= 2_000
    assert context.count("é") % 500 == 0


def test_a_session_begins_with_the_notes_of_two_days(daemon: Daemon) -> None:
    """The newer one first."""
    daemon.write(f"memory/{day(0)}.md", "# Today\n\n- mended the retries\n")
    daemon.write(f"memory/{day(-1)}.md", "# Yesterday\n\n- broke the retries\n")
    notes = ("- mended the retries", "- broke the retries")
    context = brought("session-start", daemon.socket, {"session_id": "s1", "source": "startup"}, *notes)
    assert context.index(notes[0]) < context.index(notes[1])
    assert f"memory/{day(0)}.md:" in context


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Pacific/Kiritimati"])
def test_days_are_those_of_the_agents_time_zone(
    run: Run, address: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """It gives the notes their names; at any moment, one of the two zones has another day than the machine."""
    monkeypatch.setattr("memd.ctl.commands.hook._TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr("memd.ctl.commands.hook._WARM_S", TIMEOUT_S)
    today, yesterday, days = list[Request](), list[Request](), {day(0, zone)}
    with serving(
        address,
        answering(SyncReport(timezone=zone)),
        answering(Note(path="today", missing=True), heard=today),
        answering(Note(path="yesterday", missing=True), heard=yesterday),
    ):
        run("hook", "session-start")
    days.add(day(0, zone))  # midnight may have come meanwhile
    assert today[0] in [Get(path=f"memory/{name}.md") for name in days]
    assert yesterday[0] in [Get(path=f"memory/{date.fromisoformat(name) - timedelta(1)}.md") for name in days]


@pytest.mark.parametrize(
    ("lines", "width"), [(150, 20), (500, 10), (2_000, 0), (100, 3_000)], ids=["150", "500", "2000", "wide"]
)
def test_of_a_long_day_a_session_gets_the_end(lines: int, width: int) -> None:
    """However long it is: what was written last is what goes on."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home))
        daemon.write(f"memory/{day(0)}.md", "".join(f"- {'x' * width} {n}\n" for n in range(1, lines + 1)))
        with daemon:
            context = brought("session-start", daemon.socket, {"session_id": "s"}, f" {lines}\n")
    assert "\n[earlier lines left out]\n" in context
    assert unmarked(context) == ""
    assert context.splitlines()[-2].endswith(f" {lines}")


def test_of_a_long_note_so_many_lines_are_asked_for(
    run: Run, address: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last ones, after a first piece that tells how long it is."""
    monkeypatch.setattr("memd.ctl.commands.hook._TIMEOUT_S", TIMEOUT_S)
    path, heard = f"memory/{day(0)}.md", list[Request]()
    beginning = Note(path=path, text="first", end_line=1, next_line=2, total_lines=1000)
    end = Note(path=path, text="last", start_line=1000, end_line=1000)
    with serving(
        address,
        answering(SyncReport()),
        answering(beginning, end, heard=heard),
        answering(Note(path=f"memory/{day(-1)}.md", missing=True)),
    ):
        code, out, _ = run("hook", "session-start")
    lines = shipped("memd.ctl.commands.hook._END_LINES")
    assert heard == [Get(path=path), Get(path=path, start_line=1000 - lines + 1)]
    assert (code, "last" in out, "first" in out) == (0, True, False)


def test_of_a_long_note_with_long_lines_so_many_pieces_are_asked_for(
    run: Run, address: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they do not reach the end of the note, its last line alone."""
    monkeypatch.setattr("memd.ctl.commands.hook._TIMEOUT_S", TIMEOUT_S)
    path, heard = f"memory/{day(0)}.md", list[Request]()
    pieces = shipped("memd.ctl.commands.hook._PIECES")
    first = 1000 - shipped("memd.ctl.commands.hook._END_LINES") + 1
    beginning, *read = (
        Note(
            path=path,
            text=f"line {line}",
            start_line=line,
            end_line=line,
            next_line=line + 1,
            total_lines=1000,
        )
        for line in (1, *range(first, first + pieces))
    )
    end = Note(path=path, text="last", start_line=1000, end_line=1000)
    with serving(
        address,
        answering(SyncReport()),
        answering(beginning, *read, end, heard=heard),
        answering(Note(path=f"memory/{day(-1)}.md", missing=True)),
    ):
        code, out, _ = run("hook", "session-start")
    lines = [request.start_line for request in heard if isinstance(request, Get)]
    assert lines == [1, *range(first, first + pieces), 1000]
    assert (code, "last" in out, f"line {first}" in out) == (0, True, False)


def test_a_session_begins_with_what_was_written_just_before(daemon: Daemon) -> None:
    """The note is as it is on the disk."""
    path = f"memory/{day(0)}.md"
    daemon.write(path, "# Today\n\n- mended the retries\n- and wrote this line\n")
    assert brought("session-start", daemon.socket, {"session_id": "s2"}, "- and wrote this line")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_today_is_that_of_the_time_zone(daemon: Daemon, zone: str) -> None:
    """Twenty-five hours lie between them."""
    daemon.write(f"memory/{day(0, zone)}.md", f"- today in {zone}\n")
    wanted = f"- today in {zone}"
    context = brought("session-start", daemon.socket, {"session_id": zone}, wanted, environ={"TZ": zone})
    assert context.index(wanted) < 200


@pytest.mark.parametrize(
    ("moment", "today", "yesterday"),
    [
        ((2026, 3, 29, 22, 30, 0), "2026-03-30", "2026-03-29"),  # a day of 23 hours is over
        ((2026, 10, 25, 23, 30, 0), "2026-10-26", "2026-10-25"),  # one of 25
        ((2025, 12, 31, 23, 30, 0), "2026-01-01", "2025-12-31"),
    ],
)
def test_yesterday_is_the_day_before(
    monkeypatch: pytest.MonkeyPatch, moment: tuple[int, ...], today: str, yesterday: str
) -> None:
    """However many hours it had."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = time.localtime(calendar.timegm((*moment, 0, 0, 0)))
        assert (_date(now, 0), _date(now, -1)) == (today, yesterday)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("zone", ["XXX-25", "XXX25"])
def test_a_zone_that_nothing_can_compute_with_gives_way_to_utc(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """As in the daemon: the system would tell another day."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        days = {f"{datetime.now(UTC):%Y-%m-%d}"}
        told = _date(_now(""), 0)
        days.add(f"{datetime.now(UTC):%Y-%m-%d}")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert told in days


def test_a_bound_session_gets_what_it_may_see(daemon: Daemon) -> None:
    """By a flag, or by the environment; without either it is the owner's."""
    told = {"prompt": "PostgreSQL database for billing?", "session_id": "s"}
    group = "agent:main:telegram:group:7"
    assert hook("user-prompt", daemon.socket, told, "--session-key", group) == SILENT
    assert hook("user-prompt", daemon.socket, told, environ={"MEMD_SESSION_KEY": group}) == SILENT
    assert brought("user-prompt", daemon.socket, told, argv=["--session-key", "agent:main:main"])
    assert hook("user-prompt", daemon.socket, told, environ={"MEMD_AGENT": "nobody"}) == SILENT


@pytest.mark.parametrize("event", ["user-prompt", "session-start"])
def test_a_key_that_was_never_filled_is_not_the_owner(daemon: Daemon, event: str) -> None:
    """As `--session-key "$KEY"` has it where KEY is empty: nothing is told, and the program is not disturbed."""
    told = {"prompt": "PostgreSQL database for billing?", "session_id": "s"}
    assert brought(event, daemon.socket, told)
    bound = hook(event, daemon.socket, told, "--session-key", "")
    assert (bound.code, bound.out) == (0, "")
    assert "--session-key: must not be empty" in bound.err
    assert hook(event, daemon.socket, told, environ={"MEMD_SESSION_KEY": ""}) == SILENT


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        ((), {"source": "memory", "min_score": 0.45}),
        (("--sessions", "--min-score", "0.2"), {"source": None, "min_score": 0.2}),
    ],
)
def test_what_nobody_asked_for_must_be_close(
    address: Path, argv: tuple[str, ...], asked: dict[str, Any]
) -> None:
    """No weak hit, closer than what a search may find, and from notes alone, unless the command says otherwise."""
    heard: list[Request] = []
    with serving(address, answering(Found(), heard=heard)):
        assert hook("user-prompt", address, {"prompt": "which one?"}, *argv) == SILENT
    hits = shipped("memd.ctl.commands.hook._HITS")
    assert heard == [Search(query="which one?", max_results=hits, strict=True, **asked)]


@pytest.mark.parametrize("event", ["pre-compact", "session-end"])
@pytest.mark.parametrize("told", [{"trigger": "auto"}, b"", b"nonsense"])
def test_an_end_asks_for_a_sync_and_waits_for_nothing(address: Path, event: str, told: object) -> None:
    """Whatever it was told; it says nothing."""
    heard: list[Request] = []
    with serving(address, answering(SyncReport(), heard=heard)):
        assert hook(event, address, told, "--agent", "work") == SILENT
    assert heard == [Sync(agent="work", wait=False, vectors=False, patience_ms=heard[0].patience_ms)]  # type: ignore[union-attr]


def test_a_session_is_warmed_by_its_own_name(address: Path) -> None:
    """A key that is the owner's; whatever a session is called, it is part of no other."""
    heard: list[Request] = []

    def warmed(peer: Peer) -> None:
        peer.greet()
        heard.append(peer.answer_next(SyncReport()))
        peer.wait_for_end()

    with serving(address, warmed):
        assert hook("session-start", address, {"session_id": "a:group:b 1-2"}) == SILENT
    assert heard == [Warm(session_key="explicit:agroupb1-2")]


@pytest.mark.parametrize("event", RUNTIME_EVENTS)
@pytest.mark.parametrize(
    "told",
    [
        {"prompt": "PostgreSQL database for billing?"},
        {"prompt": 5, "session_id": []},
        [1],
        b"",
        b"nonsense",
        b"\xff\xfe",
        b'{"prompt": "' + b"x" * (10 << 20),
    ],
)
def test_without_a_daemon_a_hook_says_nothing(address: Path, event: str, told: object) -> None:
    """Neither on stdout nor on stderr, whatever it was told."""
    assert hook(event, address, told) == SILENT


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"prompt": ""},
        {"prompt": "ok"},
        {"prompt": "/compact"},
        {"prompt": None},
        {"prompt": ["PostgreSQL"]},
        {"prompt": "nothing in memory speaks of zeppelins"},
        b"nonsense",
        b'{"prompt": "half of it',
    ],
)
def test_a_message_that_asks_for_nothing_gets_nothing(daemon: Daemon, told: object) -> None:
    """No empty block."""
    assert hook("user-prompt", daemon.socket, told) == SILENT


def test_a_huge_message_is_answered(daemon: Daemon) -> None:
    """By its beginning and its end."""
    told = {"prompt": f"PostgreSQL database for billing? {'lorem ' * 500_000}"}
    assert hook("user-prompt", daemon.socket, told).code == 0
    # One that a busy machine, too, has read within the second that a hook has.
    told = {"prompt": f"{'=' * 1_000_000} PostgreSQL database for billing?"}
    assert brought("user-prompt", daemon.socket, told, "MEMORY.md")


@pytest.mark.rows(1)
@pytest.mark.parametrize("event", ["user-prompt", "session-start"])
def test_a_daemon_that_hangs_is_not_waited_for(event: str) -> None:
    """Longer than the hook has, be it that several questions are asked."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home, Daemon(Path(home)) as daemon:
        began = time.monotonic()
        assert hook(event, Path(home) / "nobody", {"prompt": "which database did we pick?"}) == SILENT
        without_s = time.monotonic() - began
        daemon.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert hook(event, daemon.socket, {"prompt": "which database did we pick?"}) == SILENT
        # It has 1 s to wait in; a busy machine takes longer for both.
        assert time.monotonic() - began < 2 + 4 * without_s
        daemon.process.send_signal(signal.SIGCONT)


def test_an_input_that_does_not_end_is_not_waited_for(daemon: Daemon) -> None:
    """A program may forget to close it."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "memd.ctl", "hook", "user-prompt", "--socket", str(daemon.socket)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"prompt"')
        process.stdin.flush()
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""


@pytest.mark.rows(7)  # of one event each
@pytest.mark.parametrize(
    "redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full >/dev/full", "| true"]
)
@pytest.mark.parametrize("event", ["user-prompt", "session-start"])
def test_closed_streams_are_no_trouble(daemon: Daemon, event: str, redirection: str) -> None:
    """Nor full ones: nothing is said of it, and the daemon is not told what was meant for the program."""
    daemon.log.write_text("", encoding="utf-8")
    script = f'"$0" -P -m memd.ctl hook {event} --socket "$1" {redirection}'
    ran = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", script, sys.executable, str(daemon.socket)],
        input=b'{"prompt": "PostgreSQL database for billing?"}',
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
        cwd="/",
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "protocol" not in daemon.printed()


@pytest.mark.parametrize("event", ["user-prompt", "pre-compact"])
def test_as_json_a_hook_prints_one_document(daemon: Daemon, event: str) -> None:
    """As every command does; what it would have told the program is its data."""
    told = hook(event, daemon.socket, {"prompt": "PostgreSQL database for billing?"}, "--json")
    document = json.loads(told.out)
    assert (told.code, document["ok"]) == (0, True)
    if event == "pre-compact":
        assert document["data"] is None
    else:
        assert unmarked(document["data"]["hookSpecificOutput"]["additionalContext"]) == ""


@pytest.mark.parametrize(
    "argv", [["hook", "stop"], ["hook"], ["--agent", "x", "hook", "user-prompt", "--frob"]]
)
def test_a_mistake_on_the_command_line_is_no_veto(argv: list[str]) -> None:
    """Claude Code takes status 2 for one; the person who looks finds the reason on stderr."""
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "memd.ctl", *argv],
        capture_output=True,
        text=True,
        check=False,
        input="{}",
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.startswith("memd-ctl: ")


def test_a_hook_loads_little(daemon: Daemon) -> None:
    """It runs before each message: what it does not need is not imported."""
    program = (
        "import sys\n"
        "from memd.ctl.__main__ import main\n"
        "status = main()\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(status)"
    )
    for event in RUNTIME_EVENTS:
        ran = subprocess.run(
            [sys.executable, "-P", "-c", program, "hook", event, "--socket", str(daemon.socket)],
            input='{"prompt": "PostgreSQL database for billing?"}',
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("PostgreSQL" in ran.stdout) == (event == "user-prompt")
        loaded = set(ran.stderr.split())
        assert "memd_client.blocking" in loaded
        assert not loaded & {*existing(
            "asyncio", "apsw", "httpx", "logging", "mcp", "memd.config.settings", "numpy", "platformdirs", "rich", "stamina",
            "structlog", "subprocess", "tomlkit", "tomllib", "memd.ctl.integrations.clients", "memd.ctl.daemon_process",
        )}  # fmt: skip


# --- install


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of Claude Code, which are not there yet."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return home / ".claude" / "settings.json"


def test_what_was_installed_brings_memory(run: Run, settings: Path, daemon: Daemon) -> None:
    """The command is run by a shell that knows nothing of memd; a second time it is there already."""
    code, out, _ = run("hook", "install", "--client", "claude", "--socket", str(daemon.socket))
    assert code == 0
    assert "~/.claude/settings.json" in out
    before = settings.read_bytes()
    hooks = json.loads(before)["hooks"]
    assert set(hooks) == set(EVENTS)
    # The last flag counts: the fixture names a socket, too.
    command = shlex.split(hooks["UserPromptSubmit"][0]["hooks"][0]["command"])
    command[command.index("--socket") + 1] = str(daemon.socket)
    ran = subprocess.run(
        ["/bin/sh", "-c", shlex.join(command)],
        input='{"prompt": "PostgreSQL database for billing?"}',
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": ""},
        cwd="/",
    )
    assert "PostgreSQL" in ran.stdout
    assert run("hook", "install", "--client", "claude", "--socket", str(daemon.socket)).out.endswith(
        "needed no change.\n"
    )
    assert settings.read_bytes() == before


def test_hooks_go_as_they_came(run: Run, settings: Path) -> None:
    """What else is in the settings stays byte by byte."""
    settings.parent.mkdir()
    text = '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n'
    settings.write_text(text, encoding="utf-8")
    run(
        "hook",
        "install",
        "--client",
        "claude",
        "--session-key",
        "agent:main:main",
        "--sessions",
        "--min-score",
        "0.5",
    )
    hooks = json.loads(settings.read_text(encoding="utf-8"))["hooks"]
    commands = {event: hooks[event][0]["hooks"][0]["command"] for event in EVENTS}
    assert all("--session-key agent:main:main" in command for command in commands.values())
    assert [event for event, command in commands.items() if "--sessions --min-score 0.5" in command] == [
        "UserPromptSubmit"
    ]
    assert run("hook", "uninstall", "--client", "claude").code == 0
    assert settings.read_text(encoding="utf-8") == text


def test_printed_hooks_change_nothing(run: Run, settings: Path) -> None:
    """They could be pasted."""
    code, out, err = run("hook", "install", "--client", "claude", "--print")
    assert code == 0
    assert set(json.loads(out)["hooks"]) == set(EVENTS)
    assert "~/.claude/settings.json" in err
    assert not settings.exists()


def test_settings_with_comments_are_left_alone(run: Run, settings: Path) -> None:
    """With the hooks to paste, and a status that says so: this is no hook."""
    settings.parent.mkdir()
    settings.write_text("{ /* mine */ }", encoding="utf-8")
    code, _, err = run("hook", "install", "--client", "claude")
    assert code == 1
    assert "UserPromptSubmit" in err
    assert settings.read_text(encoding="utf-8") == "{ /* mine */ }"
