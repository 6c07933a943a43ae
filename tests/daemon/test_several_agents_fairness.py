"""An agent with much to index takes its time from nobody: another's edits are found at once."""

from pathlib import Path

import pytest

from memd_client import Client
from tests.daemon.fresh import PATIENT
from tests.daemon.process import Daemon
from tests.wait import until

FILES = 2000


def large(directory: Path, files: int) -> None:
    """Write notes that take a while to index."""
    for number in range(files):
        file = directory / str(number % 20) / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\n" + f"The lighthouse {number} was painted red and green.\n" * 30)


def is_indexing(client: Client) -> bool:
    """Whether the pass of agent main is in the middle of its files."""
    progress = client.status("main").agents["main"].progress
    return progress is not None and progress.done < progress.total


def test_an_edit_is_found_while_another_agent_indexes_thousands(home: Path) -> None:
    """Each note is in the next search, fresh, and has its vector, before the first pass of the other agent has ended."""
    daemon = Daemon(home, settings=f'[agents.work]\nworkspace = "{home}/work"\n{PATIENT}\n')
    notes = home / "work" / "memory"
    notes.mkdir(parents=True)
    large(daemon.workspace / "memory", FILES)
    with daemon.start(), daemon.client() as client:
        client.sync(agent="work")
        until(lambda: is_indexing(client), 30)
        for number in range(5):
            (notes / f"{number}.md").write_text(f"The porcupine number{number} sleeps.\n")
            found = client.search(f"porcupine number{number}", agent="work")
            assert found.results[0].path == f"memory/{number}.md"
            assert not found.stale
            report = client.sync(agent="work")
            assert (report.vectors, report.files) == ("complete", number + 1)
            assert is_indexing(client), "the other agent was done before this one was asked enough"


@pytest.mark.long
def test_fifty_agents_in_one_daemon(home: Path) -> None:
    """Each sees what happens in its own workspace as it happens, and answers; the threads of each are few."""
    names = [f"agent{number}" for number in range(49)]
    tables = "".join(f'[agents.{name}]\nworkspace = "{home}/{name}"\n' for name in names)
    daemon = Daemon(home, settings=f"[defaults.sync]\nwatch_debounce_ms = 50\n{tables}")
    for name in names:
        (home / name / "memory").mkdir(parents=True)
        (home / name / "memory" / "a.md").write_text(f"The lighthouse of {name}.\n")
    with daemon.start(), daemon.client() as client:
        assert client.sync().files == 49
        for name in names:
            (home / name / "memory" / "b.md").write_text(f"The harbour of {name}.\n")
        # No search helps along: the changes are seen by themselves.
        until(lambda: {client.status().agents[name].files for name in names} == {2}, 30)
        for name in names:
            found = client.search("harbour", session_key=f"agent:{name}:main")
            assert [hit.snippet.strip() for hit in found.results] == [f"The harbour of {name}."]
        threads = list(Path(f"/proc/{daemon.process.pid}/task").iterdir())
        assert len(threads) < 10 * 50
