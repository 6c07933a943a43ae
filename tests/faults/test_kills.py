"""Processes that are killed in an open transaction leave nothing wrong behind (invariant 2)."""

from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from tests.faults import campaign
from tests.faults.__main__ import main
from tests.faults.apart import run_apart
from tests.faults.mixed import tally

T = TypeVar("T", bound=msgspec.Struct)


def run(tmp_path: Path, kind: type[T], *arguments: str) -> dict[str, T]:
    """What happened in a run."""
    told = tmp_path / "told.json"
    run_apart(["-m", "tests.faults", "--json", str(told), *arguments])
    return msgspec.json.decode(told.read_bytes(), type=dict[str, kind])  # type: ignore[valid-type]  # it is the type that is wanted


@pytest.mark.long
@pytest.mark.parametrize("kills", [100])
def test_kills_in_open_transactions_leave_the_index_of_a_fresh_start(tmp_path: Path, kills: int) -> None:
    """Whatever a process was writing when it was killed, the next one brings the index to what a fresh one is."""
    deaths = run(tmp_path, campaign.Tally, "--kills", str(kills), "--seed", "1")["kills"]
    assert deaths.in_transaction >= kills
    assert sum(kills for place, kills in deaths.places.items() if "in a transaction" in place) >= kills
    for place in ("main.sqlite, statement", "main.sqlite, log", "main.sqlite.next", "embeddings.sqlite"):
        assert any(place in one for one in deaths.places), f"no process died in {place}"


def test_daemons_that_are_killed_and_stopped_while_notes_change_lose_nothing(tmp_path: Path) -> None:
    """After each of some restarts, in order and out of order, the index follows notes that changed all the while."""
    restarts = run(tmp_path, campaign.Tally, "--restarts", "12", "--seed", "2")["restarts"]
    assert restarts.restarts >= 12
    assert restarts.in_transaction + restarts.beside > 0
    assert restarts.stopped > 0


@pytest.mark.long
def test_daemons_that_are_killed_under_load_said_nothing_but_the_truth(tmp_path: Path) -> None:
    """While others write, say secrets, search, rebuild, pause and reload: clients come back, and nothing is lost."""
    mixed = run(tmp_path, tally.Tally, "--mixed", "6", "--seed", "4")["mixed"]
    assert mixed.kills >= 6
    assert mixed.judged > 100
    assert mixed.known > 0  # how many depends on how busy the machine is
    assert sum(mixed.cut.values()) > 0
    assert mixed.changes > 20


@pytest.mark.parametrize("arguments", [("--kills", "many"), ("--replay", "/nowhere/history.json")])
def test_a_run_that_cannot_begin_fails(arguments: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was mistyped passes for a run without a difference."""
    monkeypatch.setattr("gc.freeze", lambda: None)  # of what all tests have made
    with pytest.raises((SystemExit, FileNotFoundError)) as raised:
        main(arguments)
    assert not isinstance(raised.value, SystemExit) or raised.value.code == 2
