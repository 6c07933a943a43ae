"""How the databases of a state directory are, and whether they fit the configuration."""

from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, Chunking
from memd.domain_types import LONG_FRONT_MATTER, NOT_UTF8
from memd.inspection.probe import Store
from memd.inspection.stores import look_at_cache, look_at_store, look_at_stores
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.migrations import newest
from tests.bounds import shipped
from tests.store.conftest import chunk_of, found_file

_SETTINGS = AgentSettings(workspace=Path("/ws"), provider="none")


async def _state(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    index = Index(tmp_path / "agents" / "main.sqlite")
    await index.open()
    await index.adopt(wanted_fingerprint(_SETTINGS, None))
    await index.replace(found_file("MEMORY.md"), b"h", [chunk_of("x")], {}, frozenset())
    await index.close()
    return tmp_path


async def test_an_index_that_fits_is_not_rebuilt(tmp_path: Path) -> None:
    """Nor one of whose agent nothing is known."""
    state = await _state(tmp_path)
    for settings in (_SETTINGS, None):
        store = look_at_store(state, "main", settings, 60.0)
        assert (store.files, store.rebuild, store.faults) == (1, None, ())
        assert store.configured is (settings is not None)


async def test_why_an_index_does_not_fit_is_told(tmp_path: Path) -> None:
    """In the words of the daemon."""
    settings = AgentSettings(workspace=Path("/ws"), provider="none", chunking=Chunking(tokens=99, overlap=9))
    assert look_at_store(await _state(tmp_path), "main", settings, 60.0).rebuild == "chunking changed"


async def test_files_are_found_by_agent(tmp_path: Path) -> None:
    """With those that were set aside as damaged."""
    state = await _state(tmp_path)
    (state / "agents" / "main.sqlite.damaged-2").touch()
    assert look_at_store(state, "main", _SETTINGS, 60.0).damaged == ("main.sqlite.damaged-2",)
    cache, main, other = look_at_stores(state, {"other": _SETTINGS}, 60.0)
    assert not cache.exists
    assert isinstance(main, Store)
    assert (main.agent, main.configured, main.exists) == ("main", False, True)
    assert (main.schema, main.known_schema, main.unchecked) == (newest("index"), newest("index"), None)
    assert isinstance(other, Store)
    assert (other.agent, other.configured, other.exists) == ("other", True, False)
    assert (other.schema, other.known_schema, other.files, other.chunks, other.bytes) == (0, 0, 0, 0, 0)
    assert len(list(look_at_stores(state / "none", {}, 60.0))) == 1


async def test_notes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    """Three of them, and how many there are."""
    state = await _state(tmp_path)
    assert look_at_store(state, "main", _SETTINGS, 60.0).not_utf8_count == 0
    index = Index(state / "agents" / "main.sqlite")
    await index.open()
    await index.adopt(wanted_fingerprint(_SETTINGS, None))
    changes = [
        FileChange(found_file(f"memory/{name}.md"), b"h", [chunk_of(name)], {NOT_UTF8: 1}) for name in "dbca"
    ] + [FileChange(found_file("memory/e.md"), b"h", [chunk_of("e")], {LONG_FRONT_MATTER: 1})]
    await index.replace_all(changes, {}, frozenset())
    await index.close()
    store = look_at_store(state, "main", _SETTINGS, 60.0)
    assert (store.not_utf8, store.not_utf8_count) == (("memory/a.md", "memory/b.md", "memory/c.md"), 4)
    assert (store.long_front_matter, store.long_front_matter_count) == (("memory/e.md",), 1)
    assert len(store.not_utf8) == shipped("memd.inspection.stores._NAMED")


async def test_copies_of_before_are_found(tmp_path: Path) -> None:
    """With what they take and hold."""
    state = await _state(tmp_path)
    (state / "agents" / "main.sqlite.before-schema-9").write_bytes(
        (state / "agents" / "main.sqlite").read_bytes()
    )
    [copy] = look_at_store(state, "main", _SETTINGS, 60.0).copies
    assert (copy.name, copy.schema) == ("main.sqlite.before-schema-9", newest("index"))
    assert copy.bytes == (state / "agents" / "main.sqlite").stat().st_size
    assert look_at_cache(state, 60.0).copies == ()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError(), "OSError")],
)
def test_why_a_database_cannot_be_opened_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: OSError, reason: str
) -> None:
    """In the words of the system, where it has some."""

    def refused(*_: object) -> None:
        raise failure

    (tmp_path / "embeddings.sqlite").touch()
    monkeypatch.setattr("memd.inspection.stores.read_only.look_at_cache", refused)
    cache = look_at_cache(tmp_path, 60.0)
    assert (cache.exists, cache.closed) == (True, reason)


async def test_damage_and_absence_are_no_errors(tmp_path: Path) -> None:
    """They are what is found."""
    state = await _state(tmp_path)
    (state / "embeddings.sqlite").write_text("no database " * 500, encoding="utf-8")
    assert look_at_cache(state, 60.0).faults == ("file is not a database",)
    (state / "embeddings.sqlite").unlink()
    assert not look_at_cache(state, 60.0).exists
    assert not look_at_store(state, "other", None, 60.0).exists
    assert look_at_store(state, "main", _SETTINGS, -1.0).unchecked
