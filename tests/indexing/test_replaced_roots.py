"""What an index loses before it is searched, since the configuration has replaced the roots that it came from."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.indexing import replaced_roots
from memd.indexing.replaced_roots import remove_replaced
from memd.sources.roots import ConfiguredRoots, configured_roots, roots_as_written
from memd.sources.scan import scan
from memd.store.errors import StoreUnavailable
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.meta import Fingerprint

MAX_BYTES = 1_000_000


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An open index without vectors."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    await opened.adopt(Fingerprint("c", "t", ("memory",)))
    yield opened
    await opened.close()


@pytest.fixture
def settings(tmp_path: Path) -> AgentSettings:
    """A workspace, an extra path and a directory of transcripts, with a file each."""
    for file in ("ws/memory/a.md", "vault/a.md", "ann/chats/a.jsonl"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("A walrus.\n")
    return AgentSettings(
        workspace=tmp_path / "ws",
        extra_paths=(tmp_path / "vault",),
        sources=("memory", "sessions"),
        sessions=SessionSettings(presets=(), paths=(tmp_path / "ann" / "chats",)),
    )


def changed(settings: AgentSettings, **changes: Any) -> AgentSettings:
    return msgspec.structs.replace(settings, **changes)


async def fill(index: Index, configured: ConfiguredRoots) -> list[str]:
    """Have an index of these roots, which is not searched yet; return what it holds."""
    await remove_replaced("main", index, configured, MAX_BYTES)
    found = scan(configured.roots, max_bytes=MAX_BYTES).found.values()
    await index.replace_all([FileChange(one, b"0" * 32, []) for one in found], {}, frozenset())
    return sorted(await index.known())


async def left(index: Index, configured: ConfiguredRoots) -> list[str]:
    await remove_replaced("main", index, configured, MAX_BYTES)
    return sorted(await index.known())


def forget_record(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM meta WHERE key = 'origins'")


async def test_roots_that_are_the_same_keep_all(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    """Also while they are missing."""
    vault = f"{tmp_path}/vault/a.md"
    everything = [vault, "memory/a.md", "sessions/chats/a.jsonl"]
    assert await fill(index, configured_roots(settings)) == everything
    for name in ("ws", "vault", "ann"):
        (tmp_path / name).rename(tmp_path / f"{name}-away")
    assert await left(index, configured_roots(settings)) == everything


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "other files"])
async def test_another_path_keeps_nothing(
    index: Index, settings: AgentSettings, tmp_path: Path, exists: bool
) -> None:
    """Not even until the first scan of the new one."""
    vault = f"{tmp_path}/vault/a.md"
    await fill(index, configured_roots(settings))
    if exists:
        shutil.copytree(tmp_path / "ws", tmp_path / "ws2", copy_function=shutil.copy)
        shutil.copytree(tmp_path / "ann", tmp_path / "ben", copy_function=shutil.copy)
    elsewhere = changed(settings, workspace=tmp_path / "ws2")
    assert await left(index, configured_roots(elsewhere)) == [vault, "sessions/chats/a.jsonl"]
    elsewhere = changed(elsewhere, sessions=SessionSettings(presets=(), paths=(tmp_path / "ben" / "chats",)))
    assert await left(index, configured_roots(elsewhere)) == [vault]
    elsewhere = changed(elsewhere, extra_paths=(tmp_path / "vault2",))
    assert await left(index, configured_roots(elsewhere)) == []


async def test_a_directory_that_was_moved_keeps_its_files(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    """They are the same files still, and need not be read again; one that has changed since is another."""
    (tmp_path / "ws" / "memory" / "b.md").write_text("A heron.\n")
    await fill(index, configured_roots(settings))
    (tmp_path / "ws").rename(tmp_path / "ws2")
    (tmp_path / "ws2" / "memory" / "b.md").write_text("Two herons.\n")
    moved = configured_roots(
        changed(settings, workspace=tmp_path / "ws2", extra_paths=(), sources=("memory",))
    )
    assert await left(index, moved) == ["memory/a.md"]


async def test_a_source_that_is_left_out_keeps_nothing(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    """The index that answers until another is built has nothing of it any more."""
    await fill(index, configured_roots(settings))
    without = changed(settings, sources=("memory",))
    assert await left(index, configured_roots(without)) == [f"{tmp_path}/vault/a.md", "memory/a.md"]


async def test_another_file_of_a_directory_that_is_missing_keeps_nothing(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    chats = tmp_path / "ann" / "chats"
    one, two = (
        changed(settings, sessions=SessionSettings(presets=(), paths=(chats / name,)))
        for name in ("a.jsonl", "b.jsonl")
    )
    assert "sessions/chats/a.jsonl" in await fill(index, configured_roots(one))
    shutil.rmtree(tmp_path / "ann")
    assert "sessions/chats/a.jsonl" in await left(index, configured_roots(one))
    assert "sessions/chats/a.jsonl" not in await left(index, configured_roots(two))


async def test_an_index_without_a_record_gets_one_and_loses_nothing(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    """As one of an older memd; from then on another path is noticed."""
    everything = await fill(index, configured_roots(settings))
    await index.database.write(forget_record)
    other = configured_roots(changed(settings, workspace=tmp_path / "ws2"))
    assert await left(index, other) == everything
    assert await index.origins() == sorted(one.stored for one in other.origins)
    third = configured_roots(changed(settings, workspace=tmp_path / "ws3"))
    assert "memory/a.md" not in await left(index, third)


@pytest.mark.parametrize("step", ["remove", "put_origins"])
async def test_what_was_interrupted_is_made_up_for(
    index: Index, settings: AgentSettings, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step a killed process has not come to: the record names the new roots only after the removal."""

    async def killed(*_: object) -> None:
        raise asyncio.CancelledError

    await fill(index, configured_roots(settings))
    other = configured_roots(changed(settings, workspace=tmp_path / "ws2"))
    with monkeypatch.context() as patched:
        patched.setattr(index, step, killed)
        with pytest.raises(asyncio.CancelledError):
            await remove_replaced("main", index, other, MAX_BYTES)
    assert "memory/a.md" not in await left(index, other)


async def test_what_cannot_be_removed_is_not_searched(
    index: Index, settings: AgentSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent does not start; where only the record cannot be written, it does."""

    async def full(*_: object) -> None:
        raise StoreUnavailable("no space")

    await fill(index, configured_roots(settings))
    with monkeypatch.context() as patched:
        patched.setattr(index, "put_origins", full)
        extra = changed(settings, extra_paths=(*settings.extra_paths, tmp_path / "more"))
        await remove_replaced("main", index, configured_roots(extra), MAX_BYTES)
        patched.setattr(index, "remove", full)
        other = configured_roots(changed(settings, workspace=tmp_path / "ws2"))
        with pytest.raises(StoreUnavailable):
            await remove_replaced("main", index, other, MAX_BYTES)
    assert "memory/a.md" not in await left(index, other)


async def test_a_disk_that_does_not_answer_keeps_what_is_configured_as_before(
    index: Index, settings: AgentSettings, tmp_path: Path
) -> None:
    """Symlinks are not resolved then."""
    (tmp_path / "link").symlink_to(tmp_path / "vault")
    linked = changed(settings, extra_paths=(tmp_path / "link",))
    everything = await fill(index, configured_roots(linked))
    assert await left(index, roots_as_written(linked)) == everything
    assert await left(index, configured_roots(linked)) == everything
    other = changed(linked, workspace=tmp_path / "ws2")
    assert await left(index, roots_as_written(other)) == [one for one in everything if one != "memory/a.md"]


async def test_a_scan_that_takes_too_long_keeps_nothing(
    index: Index, settings: AgentSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the new root may not answer, and no start waits for it; its files are read again."""
    await fill(index, configured_roots(settings))
    (tmp_path / "ws").rename(tmp_path / "ws2")
    monkeypatch.setattr(replaced_roots, "SCAN_S", 0.0)
    other = configured_roots(changed(settings, workspace=tmp_path / "ws2"))
    assert "memory/a.md" not in await left(index, other)
