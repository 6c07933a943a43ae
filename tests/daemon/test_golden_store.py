"""The stores that earlier programs left are of use to this one."""

import shutil
from pathlib import Path

import apsw
import pytest

from memd.store.migrations import newest
from tests.daemon.contents import contents, differences
from tests.daemon.inprocess import running
from tests.fakes import HashingProvider
from tests.store.golden.read import QUESTIONS, WORKSPACE, stores, unpack


def _schema(file: Path) -> int:
    with apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        found: int = connection.pragma("user_version")
    connection.close()
    return found


def _workspace(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    shutil.copytree(WORKSPACE, home / "workspace")
    return home


async def _asked(home: Path, provider: HashingProvider) -> dict[str, str]:
    """The first hit of each question, once everything is up to date."""
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "complete"
        found = {question: await client.search(question) for question in QUESTIONS}
        assert {one.mode for one in found.values()} == {"hybrid"}
        return {question: one.results[0].path for question, one in found.items()}


def test_the_store_of_this_schema_is_in_the_collection() -> None:
    """After a migration was added: python -m tests.store.golden.write."""
    assert stores()[-1].name == f"schema-{newest('index')}-{newest('embeddings')}"


@pytest.mark.parametrize("store", stores(), ids=lambda store: store.name)
async def test_a_store_is_brought_up_to_date_in_place(home: Path, store: Path) -> None:
    """Whatever its schema, it answers as before, becomes what a fresh index is, and nothing is embedded again."""
    unpack(store, _workspace(home) / "state")
    index = home / "state" / "agents" / "main.sqlite"
    _, first, second = store.name.split("-")
    assert (_schema(index), _schema(home / "state" / "embeddings.sqlite")) == (int(first), int(second))
    provider = HashingProvider()
    assert await _asked(home, provider) == QUESTIONS
    assert provider.requests == []
    assert _schema(index) == newest("index")
    assert _schema(home / "state" / "embeddings.sqlite") == newest("embeddings")
    fresh = _workspace(home / "fresh")
    await _asked(fresh, HashingProvider())
    assert differences(contents(index), contents(fresh / "state" / "agents" / "main.sqlite")) == []
