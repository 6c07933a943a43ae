"""memd-ctl redact."""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from memd.ctl.arguments import parse
from memd.ctl.commands import redact
from tests.bounds import shipped
from tests.ctl.conftest import Run

_KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
_TEXT = (
    f"Notes\nuse {_KEY}\n\npassword=hunter2 and nothing else\n"
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    + "-----END PRIVATE KEY-----\nend\n"
)


@pytest.fixture
def file(home: Path) -> Path:
    """A text with three secrets."""
    file = home / "chat.jsonl"
    file.write_text(_TEXT, encoding="utf-8")
    return file


def test_the_lines_that_would_change_are_shown(run: Run, file: Path) -> None:
    """As they would be stored, with counts and without a value; no daemon is asked."""
    code, out, err = run("redact", str(file))
    assert code == 0
    assert out == (
        "2: use [REDACTED:github-token]\n"
        "4: password=[REDACTED:password] and nothing else\n"
        "5-9: [REDACTED:private-key]\n"
        "\n"
        "3 things would be taken out: github-token 1, password 1, private-key 1.\n"
    )
    assert 'redact.mode = "all"' in err
    assert file.read_text(encoding="utf-8") == _TEXT


def test_programs_get_the_same(run: Run, file: Path) -> None:
    """One document, which holds no value either."""
    code, out, _ = run("redact", str(file), "--json")
    data = json.loads(out)["data"]
    assert code == 0
    assert data["counts"] == {"github-token": 1, "password": 1, "private-key": 1}
    assert (data["total"], data["mode"], data["file"]) == (3, "sessions", str(file))
    assert data["lines"][2] == {"line": 5, "end_line": 9, "text": "[REDACTED:private-key]"}
    assert not any(value in out for value in (_KEY, "hunter2", "MIIEvQ"))


def test_nothing_to_take_out_is_said(run: Run, home: Path) -> None:
    """And is no failure."""
    (home / "a.md").write_text("忘记密码怎么办\n", encoding="utf-8")
    assert run("redact", str(home / "a.md"))[:2] == (0, "Nothing would be taken out.\n")


def test_stdin_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a pipe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("密码：qwerty\r\n".encode())))
    assert run("redact", "-").out.startswith("1: 密码：[REDACTED:password]\n")


def test_a_long_line_is_cut_to_what_matters(run: Run, home: Path) -> None:
    """A line of a transcript may have megabytes."""
    (home / "a.jsonl").write_text(f"{'word ' * 9999}password=hunter2 {'more ' * 9999}\n", encoding="utf-8")
    [first, *_] = run("redact", str(home / "a.jsonl")).out.splitlines()
    assert "[REDACTED:password]" in first
    assert len(first) < 300
    around = shipped("memd.ctl.commands.redact._AROUND")
    before, after = first.removeprefix("1: ").split("[REDACTED:password]")
    assert (before[0], len(before) - 1) == ("…", around)
    assert (after[-1], len("[REDACTED:password]" + after) - 1) == ("…", 2 * around)
    longest = shipped("memd.ctl.commands.redact._LONGEST")
    for size, is_cut in ((longest, False), (longest + 1, True)):
        line = "password=hunter2 ".ljust(size + len("hunter2") - len("[REDACTED:password]"), "x")
        (home / "a.jsonl").write_text(line, encoding="utf-8")
        [shown, *_] = run("redact", str(home / "a.jsonl")).out.splitlines()
        assert shown.endswith("…") is is_cut


def test_the_rules_of_the_agent_count(run: Run, home: Path, file: Path) -> None:
    """What it adds, and what it allows; the mode is told."""
    config = home / "my.toml"
    config.write_text(
        '[agents.ann]\nworkspace = "~/a"\nredact = { mode = "off", extra = [{ name = "word", pattern = "nothing (else)" }], allow = ["hunter2"] }\n'
        '[agents.bob]\nworkspace = "~/b"\nredact = { mode = "all" }\n',
        encoding="utf-8",
    )
    ann = run("redact", str(file), "--agent", "ann", "--config", str(config))
    assert "4: password=hunter2 and nothing [REDACTED:word]\n" in ann.out
    assert "redact.mode is off" in ann.err
    bob = run("redact", str(file), "--agent", "bob", "--config", str(config))
    assert "4: password=[REDACTED:password] and nothing else\n" in bob.out
    assert bob.err == ""
    for arguments, told in (((), "not said which agent"), (("--agent", "eve"), "no agent eve")):
        code, _, err = run("redact", str(file), "--config", str(config), *arguments)
        assert code == 2
        assert told in err
        assert "ann, bob" in err


def test_what_is_no_text_is_told(run: Run, home: Path) -> None:
    """A missing file, a directory, a file of bytes; each in a sentence."""
    (home / "x.bin").write_bytes(b"\x28\xb5\x2f\xfd\0\0")
    (home / "x.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\0\0 and more")
    for name, code, told in (
        ("none.md", 3, "~/none.md does not exist"),
        (".", 1, "is a directory"),
        ("x.bin", 1, "is no text"),
        ("x.jsonl.zst", 1, "x.jsonl.zst"),
    ):
        ran = run("redact", str(home / name))
        assert (ran.code, ran.out) == (code, "")
        assert told in ran.err


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_a_text_in_another_encoding_is_read_as_when_it_is_indexed(
    run: Run, home: Path, encoding: str
) -> None:
    """The secret is found, in its line."""
    (home / "x.md").write_bytes(f"# 我们的新机器\ntoken {_KEY}\n".encode(encoding))
    ran = run("redact", "--scan", str(home / "x.md"))
    assert (ran.code, ran.out.count("x.md:2: ")) == (4, 1)


def test_nul_bytes_in_a_text_are_taken_out(run: Run, home: Path) -> None:
    """As they are when it is indexed: a crash can leave them in a transcript."""
    (home / "a.jsonl").write_bytes(b'{"role": "user", "content": "\0pass\0word=hunter2"}\n\0\0')
    ran = run("redact", str(home / "a.jsonl"))
    assert ran.code == 0
    assert ran.out.startswith("1: password=[REDACTED:password]\n")


def test_bytes_that_are_no_utf8_are_read(run: Run, home: Path) -> None:
    """As they are when they are indexed."""
    (home / "a.md").write_bytes(b"caf\xe9 password=hunter2\n")
    assert run("redact", str(home / "a.md")).out.startswith(
        "1: caf\N{REPLACEMENT CHARACTER} password=[REDACTED:password]\n"
    )


def test_a_wrong_configuration_has_its_status(run: Run, home: Path, file: Path) -> None:
    """A pattern that cannot be used is told before anything is read."""
    config = home / "my.toml"
    config.write_text(
        '[agents.main]\nworkspace = "~"\nredact.extra = [{ name = "x", pattern = "(a+)+b" }]\n',
        encoding="utf-8",
    )
    code, out, err = run("redact", str(file), "--config", str(config))
    assert (code, out) == (78, "")
    assert "agents.main.redact.extra" in err


_SECRET = "密码是 qwerty12345"
_FORMATS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"role": "user", "content": _SECRET}],
    "claude-code": [
        {"type": "user", "uuid": "u1", "sessionId": "s", "timestamp": "2026-02-09T10:00:00Z", "cwd": "/w",
         "message": {"role": "user", "content": _SECRET}},
        {"type": "user", "uuid": "u2", "sessionId": "s", "timestamp": "2026-02-09T10:00:01Z", "cwd": "/w",
         "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": _SECRET}]}},
    ],
    "codex": [
        {"timestamp": "2026-02-09T10:00:00Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        {"timestamp": "2026-02-09T10:00:00Z", "type": "response_item",
         "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": _SECRET}]}},
        {"timestamp": "2026-02-09T10:00:00Z", "type": "response_item",
         "payload": {"type": "function_call_output", "call_id": "c", "output": _SECRET}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("is_escaped", [False, True])
@pytest.mark.parametrize("name", _FORMATS)
def test_of_a_transcript_it_is_shown_what_would_be_indexed(
    run: Run, home: Path, name: str, is_escaped: bool, is_packed: bool
) -> None:
    """What was said, as a reader of JSON has it, however it is written there; tools are no speech."""
    lines = [json.dumps(line, ensure_ascii=is_escaped) for line in _FORMATS[name]]
    data = "".join(f"{line}\n" for line in lines).encode()
    file = home / ("s.jsonl.zst" if is_packed else "s.jsonl")
    file.write_bytes(zstandard.ZstdCompressor().compress(data) if is_packed else data)
    ran = run("redact", str(file))
    assert ran.code == 0
    number = next(
        place
        for place, line in enumerate(_FORMATS[name], 1)
        if "payload" not in line or line["type"] == "response_item"
    )
    assert ran.out == f"{number}: 密码是 [REDACTED:password]\n\n1 thing would be taken out: password 1.\n"
    assert f"A transcript of {name}" in ran.err
    assert "qwerty" not in ran.out + ran.err
    data_of = json.loads(run("redact", str(file), "--json").out)["data"]
    assert (data_of["transcript"], data_of["counts"]) == (name, {"password": 1})


def test_a_turn_of_many_lines_shows_those_that_change(run: Run, home: Path) -> None:
    """Each under the line of the file that the turn is on; what stood there as a remark already is no find."""
    said = "hello\npassword=hunter2\nand [REDACTED:password] as before\nkey " + _KEY
    (home / "s.jsonl").write_text(json.dumps({"role": "user", "content": said}) + "\n", encoding="utf-8")
    assert run("redact", str(home / "s.jsonl")).out.splitlines()[:3] == [
        "1: password=[REDACTED:password]",
        "1: key [REDACTED:github-token]",
        "",
    ]


def test_each_secret_is_explained(run: Run, file: Path) -> None:
    """By its rule and a reason, without its value."""
    code, out, _ = run("redact", str(file), "--explain")
    assert code == 0
    assert out.endswith(
        "\n2: github-token: rule github-token, the form that GitHub gives its tokens\n"
        "4: password: rule password-assigned, the value of a key that says what it holds\n"
        "5: private-key: rule private-key, a block of a private key\n"
    )
    found = json.loads(run("redact", str(file), "--explain", "--json").out)["data"]["found"]
    assert [one["rule"] for one in found] == ["github-token", "password-assigned", "private-key"]
    assert not any(value in out for value in (_KEY, "hunter2", "MIIEvQ"))


def test_what_a_transcript_says_is_explained(run: Run, home: Path) -> None:
    """By the line of its turn."""
    lines = (
        {"type": "session", "version": 3, "id": "a", "timestamp": "2026-02-09T10:00:00Z", "cwd": "/"},
        {
            "type": "message",
            "id": "b",
            "parentId": None,
            "timestamp": "2026-02-09T10:00:01Z",
            "message": {"role": "user", "content": [{"type": "text", "text": f"take {_KEY}"}]},
        },
    )
    (home / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    data = json.loads(run("redact", str(home / "t.jsonl"), "--explain", "--json").out)["data"]
    assert data["transcript"] is not None
    assert [(one["line"], one["kind"]) for one in data["found"]] == [(2, "github-token")]


def test_a_workspace_is_scanned(run: Run, home: Path, file: Path) -> None:
    """Where secrets stand, how many of each kind; the exit status says whether there are any."""
    workspace = home / "work"
    (workspace / "memory").mkdir(parents=True)
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text(_TEXT, encoding="utf-8")
    (workspace / "MEMORY.md").write_text("nothing here\n", encoding="utf-8")
    (workspace / "x.bin").write_bytes(b"\x28\xb5\x2f\xfd\0\0")
    code, out, err = run("redact", "--scan", str(workspace))
    assert (code, out) == (0, "0 secrets in 0 files of 1.\n")
    assert "1 file left out" in err
    note = workspace / "memory" / "2026-02-09.md"
    note.write_text(f"# A day\n\nthe key is {_KEY}\n", encoding="utf-8")
    code, out, _ = run("redact", "--scan", str(workspace), str(file))
    assert code == 4
    assert out == (
        f"{note}:3: github-token\n{file}:2: github-token\n{file}:4: password\n{file}:5: private-key\n"
        "4 secrets in 2 files of 3: github-token 2, password 1, private-key 1.\n"
    )
    data = json.loads(run("redact", "--scan", str(workspace), "--json").out)["data"]
    assert data["counts"] == {"github-token": 1}
    assert data["files"][0]["file"] == str(note)
    assert _KEY not in out
    assert run("redact", "--scan", str(home / "none")).code == 3


@pytest.mark.parametrize("kind", ["device", "pipe", "socket"])
def test_what_may_never_end_is_not_scanned(run: Run, home: Path, kind: str) -> None:
    """A device goes on for ever, and a pipe that nobody writes to waits for ever; below a directory both are left out."""
    path = Path("/dev/zero")
    if kind == "pipe":
        path = home / "pipe"
        os.mkfifo(path)
    elif kind == "socket":
        path = home / "socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    code, _, err = run("redact", "--scan", str(path))
    assert code == 1
    assert "is no file and no directory" in err
    if kind == "device":
        code, _, err = run("redact", str(path))
        assert code == 1
        assert "is a device" in err
    else:
        (home / "nowhere").symlink_to(home / "none")
        code, out, err = run("redact", "--scan", str(home), "--json")
        assert (code, json.loads(out)["data"]["left_out"]) == (0, 1)
        assert "1 file left out: a pipe, a socket or a device." in run("redact", "--scan", str(home)).err


def test_a_pipe_that_no_program_writes_into_is_refused(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be waited for without end."""
    assert shipped("memd.ctl.commands.redact.WRITER_S") == redact.WRITER_S
    monkeypatch.setattr(redact, "WRITER_S", 0.2)
    path = home / "pipe"
    os.mkfifo(path)
    code, _, err = run("redact", str(path))
    assert code == 1
    assert "is a pipe, and no program writes into it" in err


@pytest.mark.parametrize("command", ["sleep 1; echo {}", "echo {}", "true"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_pipe_is_read_to_its_end(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, command: str, is_named: bool
) -> None:
    """One with a name and that of <(command), whether its program has written before it is read, afterwards or nothing."""
    monkeypatch.setattr(redact, "WRITER_S", 60.0)  # a busy machine starts a program late
    script = command.format(f"use {_KEY}")
    path = home / "pipe"
    if is_named:
        os.mkfifo(path)
        writer = subprocess.Popen(["sh", "-c", f"exec >{path}; {script}"])
        code, out, _ = run("redact", str(path))
    else:
        reading, writing = os.pipe()
        writer = subprocess.Popen(["sh", "-c", script], stdout=writing)
        os.close(writing)
        if "sleep" not in script:
            writer.wait(60)
        code, out, _ = run("redact", f"/dev/fd/{reading}")
        os.close(reading)
    assert writer.wait(60) == 0
    assert code == 0
    assert ("github-token" in out) == ("echo" in script)


def test_a_directory_that_cannot_be_read_is_named(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its secrets would seem to be none."""
    closed = home / "work" / "closed"
    closed.mkdir(parents=True)
    look = os.scandir

    def looking(path: Any) -> Any:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(closed))
        return look(path)

    monkeypatch.setattr(os, "scandir", looking)
    code, out, err = run("redact", "--scan", str(home / "work"))
    assert (code, out) == (0, "0 secrets in 0 files of 0.\n")
    assert "Nothing below ~/work/closed was looked at: it cannot be read.\n" in err
    data = json.loads(run("redact", "--scan", str(home / "work"), "--json").out)["data"]
    assert (data["read"], data["left_out"]) == (0, 1)


def test_the_help_says_with_which_status_a_scan_ends(run: Run, file: Path) -> None:
    """Of one that finds secrets."""
    code = run("redact", "--scan", str(file)).code
    printed = io.StringIO()
    with pytest.raises(SystemExit), contextlib.redirect_stdout(printed):
        parse(["redact", "--help"])
    assert f"exit status {code} if there are any" in " ".join(printed.getvalue().split())


@pytest.mark.parametrize("arguments", [(), ("a.md", "--scan", "b.md")])
def test_one_way_is_chosen(run: Run, arguments: tuple[str, ...]) -> None:
    """A file, or paths to scan."""
    code, _, err = run("redact", *arguments)
    assert code == 2
    assert "--scan" in err
