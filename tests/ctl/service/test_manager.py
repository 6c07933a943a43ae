"""Orders are given, and what comes of them is told."""

import os
from pathlib import Path

import pytest

from memd.ctl.failures import Failed
from memd.ctl.service.manager import NoManager, journal_lines, query_manager, run, run_commands
from memd.ctl.service.supervisor import ManagerCommand
from memd.ctl.service.systemd import of_user
from tests.bounds import shipped


def _program(directory: Path, name: str, script: str) -> dict[str, str]:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (directory / name).chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def test_orders_end_at_the_first_that_is_refused(tmp_path: Path) -> None:
    """Unless it may fail; the message quotes the words of the manager, without what a terminal would obey."""
    environ = _program(
        tmp_path,
        "tool",
        f'echo "$@" >> {tmp_path}/heard; test "$1" = ok || {{ printf "no\\033[1m\\nway\\n" >&2; exit 3; }}',
    )
    run_commands(
        [
            ManagerCommand(("tool", "ok", "1")),
            ManagerCommand(("tool", "x"), may_fail=True),
            ManagerCommand(("tool", "ok", "2")),
        ],
        environ,
    )
    with pytest.raises(Failed, match=r"`tool y` failed: no\\x1b\[1m; way"):
        run_commands([ManagerCommand(("tool", "y")), ManagerCommand(("tool", "ok", "3"))], environ)
    assert (tmp_path / "heard").read_text(encoding="utf-8").split("\n") == ["ok 1", "x", "ok 2", "y", ""]


def test_an_order_may_need_more_than_one_try(tmp_path: Path) -> None:
    """While the job before it ends."""
    environ = _program(tmp_path, "tool", f"echo >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) = 3")
    run_commands([ManagerCommand(("tool",), timeout_s=20)], environ)
    assert (tmp_path / "tries").read_text(encoding="utf-8") == "\n\n\n"


@pytest.mark.parametrize("beyond", [0, 1])
def test_of_a_long_message_the_beginning_is_told(tmp_path: Path, beyond: int) -> None:
    """And that it goes on."""
    most = shipped("memd.ctl.service.manager._MESSAGE_CHARS")
    environ = _program(tmp_path, "tool", f"echo {'x' * (most + beyond)} >&2; exit 1")
    with pytest.raises(Failed) as refused:
        run_commands([ManagerCommand(("tool",))], environ)
    assert refused.value.message == f"`tool` failed: {'x' * most}{'...' * beyond}"


def test_a_command_without_an_end_is_given_up(tmp_path: Path) -> None:
    """And named."""
    environ = _program(tmp_path, "tool", "exec sleep 60")
    with pytest.raises(Failed, match=r"`tool` did not end within 0.05 s") as refused:
        run(ManagerCommand(("tool",)), environ, 0.05)
    assert refused.value.exit_code == 75


def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    """Of that order alone."""
    assert run(ManagerCommand(("no-such-program",)), {"PATH": str(tmp_path)}, 1).code == 127


def test_a_manager_that_cannot_be_reached_is_told_with_another_way(tmp_path: Path) -> None:
    """Because it is not installed, or takes no orders."""
    supervisor = of_user({}, tmp_path)
    with pytest.raises(NoManager, match="no systemctl on the PATH"):
        query_manager(supervisor, {"PATH": str(tmp_path)})
    environ = _program(tmp_path, "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    with pytest.raises(NoManager, match="takes no orders from this session: Failed to connect") as refused:
        query_manager(supervisor, environ)
    assert refused.value.hint is not None
    assert "memd run" in refused.value.hint


@pytest.mark.parametrize(
    ("lines", "follow", "words"),
    [(None, False, set()), (7, False, {"--lines=7"}), (0, True, {"--lines=0", "--follow"})],
)
def test_as_many_lines_of_the_journal_are_read_as_are_asked_for(
    tmp_path: Path, lines: int | None, follow: bool, words: set[str]
) -> None:
    """All of them where no number is named."""
    environ = _program(tmp_path, "journalctl", 'printf "%s\\n" "$@"')
    said = {line.decode().strip() for line in journal_lines(environ, lines=lines, follow=follow)}
    assert {word for word in said if word.startswith(("--lines", "--follow"))} == words
