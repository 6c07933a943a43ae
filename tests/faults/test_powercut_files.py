"""The power goes while files of memd's own are written without SQLite: what is found is the old or the new, and whole."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import apsw
import pytest

from memd.backends.qmd import own_files
from memd.ctl import atomic_write
from memd.ctl.integrations import json_edit
from memd.domain_types import BatchJob, TextHash
from memd.store import migrations, recovery
from memd.store.embedding_cache import EmbeddingStore, Space
from memd.store.provider_records import ProviderStore
from memd_client.context.daily_note import append_daily_note
from tests.faults.powercut_machine import Cut, Machine, restore
from tests.store.older import made

DRAWS = 12  # at each place
LONG = 5000  # several sectors
SPACE: Space = ("remote", "m", "k")


def cuts(directory: Path, work: Callable[[], None]) -> list[Cut]:
    """The power cuts of some work in a directory."""
    directory.mkdir(exist_ok=True)
    machine = Machine(directory, 1)
    with machine.watching():
        work()
    machine.lose_power("at the end")
    found = machine.cuts(draws=DRAWS)
    assert len(found) > 3 * DRAWS
    return found


def texts_left(cut: Cut, directory: Path) -> dict[str, str]:
    """What is in each file, by its path below the directory."""
    return {
        Path(path).relative_to(directory).as_posix(): data.decode("utf-8", "replace")
        for path, data in cut.left.files.items()
    }


def test_a_configuration_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    """And the new one, once it is said to be written."""
    directory = tmp_path / "config"
    file = directory / "config.toml"
    versions = [str(number) * LONG for number in range(3)]

    def write() -> None:
        for version in versions:
            atomic_write.write_text(file, version)

    found = {(cut.kind, texts_left(cut, directory).get("config.toml")) for cut in cuts(directory, write)}
    assert {text for _, text in found} == {None, *versions}
    assert {text for kind, text in found if kind == "at the end"} == {versions[-1]}


@pytest.mark.parametrize("way", ["client.json", "made/client.json", "made/for/it/client.json"])
def test_the_file_of_another_program_keeps_its_text_or_has_the_new_one(tmp_path: Path, way: str) -> None:
    """In a directory that is made for it, too: what `install` has said to be written is there, with the way to it."""
    home = tmp_path / "home"
    home.mkdir()
    file = home / way
    old = f'{{"theirs": "{"x" * LONG}"}}'
    if file.parent == home:
        file.write_text(old)
    new = []
    machine = Machine(home, 1)
    with machine.watching():
        for number in range(2):
            edit = partial(
                json_edit.with_value, path=("mcpServers", "memd"), value={"args": [number, "x" * LONG]}
            )
            assert atomic_write.change_file(file, edit, name="its file", by_hand="")
            new.append(file.read_text())
            machine.lose_power(f"written {number}")
    allowed = {old if file.parent == home else None, *new}
    assert {texts_left(cut, home).get(way) for cut in machine.cuts(draws=DRAWS)} <= allowed
    for number, text in enumerate(new):
        for cut in machine.cuts((f"written {number}",), 4 * DRAWS):
            assert texts_left(cut, home).get(way) == text


def test_what_was_appended_to_a_note_is_there(tmp_path: Path) -> None:
    """The first note of all, the next block, and the note of the next day; what stood there before is never touched."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    days = [datetime(2026, 2, day, 12, tzinfo=UTC) for day in (9, 9, 9, 10)]
    blocks = [f"- block {number} {'x' * LONG}" for number in range(len(days))]
    machine = Machine(workspace, 1)
    expected: list[dict[str, str]] = []
    with machine.watching():
        for number, (now, block) in enumerate(zip(days, blocks, strict=True)):
            appended = append_daily_note(workspace, block, now, UTC)
            assert appended.outcome == "appended"
            expected.append(
                {file.relative_to(workspace).as_posix(): file.read_text() for file in workspace.rglob("*.md")}
            )
            machine.lose_power(f"appended {number}")
    assert len(expected[-1]) == 2
    for number, texts in enumerate(expected):
        for cut in machine.cuts((f"appended {number}",), 4 * DRAWS):
            assert texts_left(cut, workspace) == texts
    for cut in machine.cuts(("fsync",), 4 * DRAWS):
        for path, text in texts_left(cut, workspace).items():
            assert text.startswith(expected[0].get(path, "")[: len(text)]), cut.kind


def test_a_copy_of_a_store_is_whole_once_it_is_said_to_be_there(tmp_path: Path) -> None:
    """With what is in the log; before that there is none, or a whole one."""
    directory = tmp_path / "state"
    directory.mkdir()
    file = made(directory / "main.sqlite", "embeddings", 1)
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", "wal")
    for number in range(40):
        connection.execute("INSERT INTO cache VALUES ('p', ?, 'k', x'00', x'00', 0)", (f"{number}" * 900,))
    machine = Machine(directory, 1)
    with machine.watching():
        copy = migrations.make_copy(connection, file, 2)
        machine.lose_power("copied")
    connection.close()
    found = set()
    for cut in [*machine.cuts(draws=DRAWS), *machine.cuts(("copied",), 4 * DRAWS)]:
        data = cut.left.files.get(str(copy))
        if data is None:
            found.add((cut.kind, None))
            continue
        tried = tmp_path / "tried.sqlite"
        tried.write_bytes(data)
        looking = apsw.Connection(str(tried))
        assert looking.pragma("integrity_check") == "ok", cut.kind
        found.add((cut.kind, looking.execute("SELECT count(*) FROM cache").get))
        looking.close()
    assert {rows for kind, rows in found if kind == "copied"} == {40}
    assert {rows for _, rows in found} == {None, 40}


def test_no_copy_for_qmd_is_half_or_forgotten(tmp_path: Path) -> None:
    """What the manifest does not name any more is gone, and what has a name there is whole."""
    base = tmp_path / "main.qmd"

    def save(*names: str) -> None:
        own_files.put(base, "manifest.json", json.dumps(names).encode().ljust(LONG))

    def export() -> None:
        save("a", "b")
        for name in ("a", "b"):
            own_files.put(base, f"sessions/{name}.md", name.encode() * LONG)
        own_files.remove(base, "sessions/a.md")
        save("b")
        save("b", "c")
        own_files.put(base, "sessions/c.md", b"c" * LONG)

    seen = set()
    for cut in cuts(base, export):
        texts = texts_left(cut, base)
        named = json.loads(texts.pop("manifest.json", "[]"))
        pages = {name: text for name, text in texts.items() if name.endswith(".md")}
        for name, text in pages.items():
            assert Path(name).stem in named
            assert text == Path(name).stem * LONG
        seen.add((tuple(named), tuple(sorted(pages))))
    assert len(seen) > 5


@pytest.mark.parametrize("has_log", [False, True])
def test_what_is_brought_back_meets_no_log_of_what_was_there(tmp_path: Path, has_log: bool) -> None:
    """A cache that is gone comes back from its copy, whole, wherever the power goes."""
    directory = tmp_path / "state"
    directory.mkdir()
    copy = made(directory / "embeddings.sqlite.before-schema-2", "embeddings", 1)
    _add(copy, "kept")
    file = directory / "embeddings.sqlite"
    if has_log:
        _leave_log(file)
    found = set()
    for cut in cuts(directory, lambda: recovery.bring_back(file, "embeddings")):
        shutil.rmtree(directory)
        restore(cut.left, directory)
        if file.exists():
            connection = apsw.Connection(str(file))
            assert connection.pragma("integrity_check") == "ok"
            found.add(tuple(model for (model,) in connection.execute("SELECT model FROM cache")))
            connection.close()
    assert found == {("kept",)}


async def test_what_must_not_be_paid_for_twice_lasts_from_the_moment_it_is_remembered(tmp_path: Path) -> None:
    """A job that is about to be created, what it brought, and what a person wished."""
    directory = tmp_path / "state"
    directory.mkdir()
    machine = Machine(directory, 1)
    hashes = [TextHash(bytes([number]) * 32) for number in range(3)]
    with machine.watching():
        store = EmbeddingStore(directory / "embeddings.sqlite")
        await store.open()
        providers = ProviderStore(store, SPACE)
        await providers.begin(BatchJob("j", 3, 0.0), dict.fromkeys(hashes, 0.5), "j.jsonl")
        machine.lose_power("begun")
        await providers.keep("j", dict.fromkeys(hashes[:2], b"1234"))
        machine.lose_power("kept")
        await providers.put_document("wishes", b"paused")
        machine.lose_power("wished")
        await store.close()
    for kind, (missing, documents) in {
        "begun": (3, []),
        "kept": (1, []),
        "wished": (1, [(b"paused",)]),
    }.items():
        for cut in machine.cuts((kind,), 4 * DRAWS):
            shutil.rmtree(directory)
            restore(cut.left, directory)
            connection = apsw.Connection(str(directory / "embeddings.sqlite"))
            assert connection.execute("SELECT count(*) FROM job_texts WHERE job = 'j'").get == missing
            assert connection.execute("SELECT count(*) FROM cache").get == 3 - missing
            assert connection.execute("SELECT content FROM documents").fetchall() == documents
            connection.close()


def _add(file: Path, model: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO cache VALUES ('p', ?, 'k', x'00', x'00', 0)", (model,))
    connection.close()


def _leave_log(file: Path) -> None:
    """Have a log of a database that is there no more."""
    other = made(file.with_name("other"), "embeddings", 1)
    connection = apsw.Connection(str(other))
    connection.pragma("journal_mode", "wal")
    connection.execute("INSERT INTO cache VALUES ('p', 'gone', 'k', x'00', x'00', 0)")
    shutil.copyfile(f"{other}-wal", f"{file}-wal")
    connection.close()
    other.unlink()
