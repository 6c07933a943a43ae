"""Roots that the configuration replaces by others: what came from the old ones is not the new ones'."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memd_client import Client
from tests.daemon.process import Daemon
from tests.wait import until

SETTINGS = """\
provider = "none"
scope = { default = "allow", rules = [] }
sync = { watch_debounce_ms = 50, wait_ms = 10, interval_minutes = 600 }
"""
TIMEOUT_S = 60.0
GROUP = "agent:main:telegram:group:-1001"
LINE = '{"type":"message","message":{"role":"user","content":"The walrus sleeps on the pier."}}\n'


def configure(daemon: Daemon, workspace: Path | str, settings: str = "") -> None:
    daemon.config.write_text(
        f'[agents.main]\nworkspace = "{workspace}"\n{SETTINGS}{settings}\n', encoding="utf-8"
    )


def shown(client: Client, session: str | None = None) -> int:
    """How many hits have the word of the old notes."""
    found = client.search("walrus", min_score=0, session_key=session)
    return sum("walrus" in hit.snippet for hit in found.results)


def indexed(daemon: Daemon, groups: int = 1) -> None:
    """Start the daemon, have all indexed, and see that it is found; by groups, so many times."""
    daemon.start()
    with daemon.client() as client:
        client.sync(vectors=False)
        assert (shown(client), shown(client, GROUP)) == (1, groups)


def reloaded(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.reload()


def restarted(daemon: Daemon) -> None:
    daemon.stop()
    daemon.start()


WAYS = [reloaded, restarted]


@pytest.mark.parametrize("become", WAYS)
@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_notes_of_another_workspace_are_not_found(
    daemon: Daemon, exists: bool, become: Callable[[Daemon], None]
) -> None:
    """Neither by their owner nor by a group, from the first answer on; those of the new one are, once they are written."""
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    configure(daemon, daemon.workspace)
    indexed(daemon)
    other = daemon.home / "other"
    if exists:
        other.mkdir()
    configure(daemon, other)
    become(daemon)
    with daemon.client() as client:
        assert (shown(client), shown(client, GROUP)) == (0, 0)
        assert client.get("memory/a.md").missing
        client.sync(vectors=False)
        assert (shown(client), shown(client, GROUP)) == (0, 0)
        assert client.status().agents["main"].files == 0
        (other / "memory").mkdir(parents=True)
        (other / "memory" / "b.md").write_text("Another walrus.\n")
        client.sync(vectors=False)
        assert (shown(client), shown(client, GROUP)) == (1, 1)


@pytest.mark.parametrize("become", WAYS)
def test_transcripts_of_another_directory_are_not_found(
    daemon: Daemon, become: Callable[[Daemon], None]
) -> None:
    """The directories have one name, so that their transcripts have the same names in the index."""
    for user in ("ann", "ben"):
        (daemon.home / user).mkdir()
    chats = daemon.home / "ann" / "chats"
    chats.mkdir()
    (chats / "one.jsonl").write_text(LINE)
    sources = 'sources = ["memory", "sessions"]\nsessions = {{ paths = ["{}"] }}'
    configure(daemon, daemon.workspace, sources.format(chats))
    indexed(daemon, groups=0)
    configure(daemon, daemon.workspace, sources.format(daemon.home / "ben" / "chats"))
    become(daemon)
    with daemon.client() as client:
        assert shown(client) == 0
        client.sync(vectors=False)
        assert shown(client) == 0


@pytest.mark.parametrize("become", WAYS)
def test_notes_of_another_extra_path_are_not_found(daemon: Daemon, become: Callable[[Daemon], None]) -> None:
    vault = daemon.home / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("The walrus sleeps.\n")
    configure(daemon, daemon.workspace, f'extra_paths = ["{vault}"]')
    indexed(daemon)
    shutil.move(vault, daemon.home / "away")
    configure(daemon, daemon.workspace, f'extra_paths = ["{daemon.home}/other"]')
    become(daemon)
    with daemon.client() as client:
        assert (shown(client), shown(client, GROUP)) == (0, 0)


def test_transcripts_of_another_home_are_not_found(daemon: Daemon) -> None:
    """The environment names the home of a preset."""
    project = daemon.home / "claude" / "projects" / "-srv"
    project.mkdir(parents=True)
    said = '{"type":"user","sessionId":"one","uuid":"u","message":{"role":"user","content":"The walrus sleeps."}}\n'
    (project / "one.jsonl").write_text(said)
    configure(
        daemon,
        daemon.workspace,
        'sources = ["memory", "sessions"]\nsessions = { presets = ["claude-code"] }',
    )
    daemon.start(environ={"CLAUDE_CONFIG_DIR": f"{daemon.home}/claude"})
    with daemon.client() as client:
        client.sync(vectors=False)
        assert shown(client) == 1
    daemon.stop()
    shutil.move(daemon.home / "claude", daemon.home / "away")
    daemon.start(environ={"CLAUDE_CONFIG_DIR": f"{daemon.home}/claude"})
    with daemon.client() as client:
        client.sync(vectors=False)
        assert shown(client) == 1
    daemon.stop()
    daemon.start(environ={"CLAUDE_CONFIG_DIR": f"{daemon.home}/other"})
    with daemon.client() as client:
        assert shown(client) == 0


def test_a_daemon_that_is_killed_after_the_change_finds_nothing_of_the_old_workspace(daemon: Daemon) -> None:
    """Whether or not it began to apply the change."""
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    configure(daemon, daemon.workspace)
    indexed(daemon)
    configure(daemon, daemon.home / "other")
    daemon.kill()
    daemon.start(wait=False)
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        assert (shown(client), shown(client, GROUP)) == (0, 0)


@pytest.mark.parametrize("spelling", ["tilde", "slash", "dots", "symlink"])
@pytest.mark.parametrize("become", WAYS)
def test_a_missing_workspace_that_is_spelled_otherwise_keeps_its_notes(
    daemon: Daemon, spelling: str, become: Callable[[Daemon], None]
) -> None:
    """As one on a disk that is not mounted; they are marked, and the disk is looked at once it is back."""
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    spelled = {
        "tilde": os.path.relpath(daemon.workspace, Path.home()).join(("~/", "")),
        "slash": f"{daemon.workspace}/",
        "dots": f"{daemon.home}/state/../workspace",
        "symlink": f"{daemon.home}/link",
    }[spelling]
    (daemon.home / "link").symlink_to(daemon.workspace)
    configure(daemon, daemon.workspace)
    indexed(daemon)
    away = daemon.workspace.rename(daemon.home / "away")
    configure(daemon, spelled)
    become(daemon)
    with daemon.client() as client:
        client.sync(vectors=False)
        assert shown(client) == 1
        assert client.search("walrus").stale
        away.rename(daemon.workspace)
        client.sync(vectors=False)
        assert shown(client) == 1
        until(lambda: not client.search("walrus").stale, TIMEOUT_S)


def test_a_moved_state_directory_loses_nothing_of_a_missing_workspace(daemon: Daemon) -> None:
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    configure(daemon, daemon.workspace)
    indexed(daemon)
    daemon.stop()
    daemon.workspace.rename(daemon.home / "away")
    daemon.state = daemon.state.rename(daemon.home / "moved")
    daemon.start()
    with daemon.client() as client:
        assert shown(client) == 1


def test_an_index_that_was_built_anew_knows_where_it_is_from(daemon: Daemon) -> None:
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    configure(daemon, daemon.workspace)
    indexed(daemon)
    with daemon.client() as client:
        client.reindex()
        until(lambda: client.status().agents["main"].rebuild is None, TIMEOUT_S)
        assert shown(client) == 1
    configure(daemon, daemon.home / "other")
    reloaded(daemon)
    with daemon.client() as client:
        assert shown(client) == 0


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_a_reload_forgets_what_a_symlink_led_to(daemon: Daemon, exists: bool) -> None:
    """Also where it leads nowhere now; until the reload, that may be a moment of its replacement."""
    daemon.write("memory/a.md", "The walrus sleeps.\n")
    link = daemon.home / "link"
    link.symlink_to(daemon.workspace)
    configure(daemon, link)
    indexed(daemon)
    link.unlink()
    with daemon.client() as client:
        client.sync(vectors=False)
        assert shown(client) == 1
        if exists:
            link.symlink_to(daemon.home / "other")
            (daemon.home / "other").mkdir()
        client.reload()
        assert (shown(client), shown(client, GROUP)) == (0, 0)
        link.unlink(missing_ok=True)
        link.symlink_to(daemon.workspace)
        client.sync(vectors=False)
        until(lambda: shown(client) == 1, TIMEOUT_S)
