"""A daemon that is to keep below a number of megabytes."""

import asyncio
import os
import signal
from pathlib import Path

import apsw
import pytest

from memd.memory_limit.enforce import resident_bytes
from memd_client import Client
from memd_client.messages import Found, Memory, StatusReport
from tests.daemon.inprocess import configure, running, write
from tests.daemon.process import Daemon
from tests.daemon.wide import DIMENSIONS
from tests.wait import until

MB = 1_000_000
CHUNKS = 2000
VECTORS_MB = CHUNKS * DIMENSIONS * 2 / MB  # as 16-bit integers; those of a block that is not full take more
QUESTIONS = ["harbour 17", "what of lantern 2041?", "数据库 99", "anything at all", "turbine"]


def limit(mb: int) -> str:
    """As it stands in a configuration, below the table of an agent."""
    return f"[daemon]\nmemory_limit_mb = {mb}\n"


def filled(daemon: Daemon) -> None:
    """Notes of so many chunks."""
    subjects = ["harbour", "lantern", "turbine", "数据库 迁移"]
    for start in range(0, CHUNKS, 500):
        sections = (
            f"# {subjects[n % 4]} {n}\n\n" + f"The {subjects[n % 3]} of {n} was {n % 17}. " * 12
            for n in range(start, start + 500)
        )
        daemon.write(f"memory/{start}.md", "\n\n".join(sections))


def follow(daemon: Daemon, settings: str) -> None:
    daemon.configure(settings)
    daemon.process.send_signal(signal.SIGHUP)


def resident_mb(daemon: Daemon) -> float:
    held = resident_bytes(daemon.process.pid)
    assert held is not None
    return held / MB


def answers(client: Client) -> list[Found]:
    return [client.search(question) for question in QUESTIONS]


def memory_of(status: StatusReport) -> Memory:
    assert status.memory is not None
    return status.memory


def is_on_disk(client: Client) -> bool:
    return client.status().agents["main"].vectors.on_disk


@pytest.mark.long
def test_memory_falls_and_answers_stay(home: Path) -> None:
    """Vectors are given up on reload, are searched on disk, come back when the limit goes, and are not loaded below one."""
    with Daemon(home, entry="tests.daemon.wide") as daemon, daemon.client() as client:
        filled(daemon)
        until(lambda: client.sync().vectors == "complete", 120)
        before = answers(client)
        status = client.status()
        vectors = status.agents["main"].vectors
        assert vectors.done >= CHUNKS
        assert VECTORS_MB < vectors.resident_mb < 3 * VECTORS_MB
        assert (vectors.on_disk, memory_of(status).limit_mb) == (False, 0)
        # What making the postings took goes back a moment later.
        until(lambda: abs(memory_of(client.status()).daemon_mb - resident_mb(daemon)) < VECTORS_MB)
        held_mb = resident_mb(daemon)

        follow(daemon, limit(64))
        until(lambda: is_on_disk(client), 20)
        until(lambda: resident_mb(daemon) < held_mb - 0.7 * VECTORS_MB, 20)
        for _ in range(4):
            assert answers(client) == before
        # What the searches took goes back a moment later.
        until(lambda: resident_mb(daemon) < held_mb - 0.4 * VECTORS_MB, 60)
        status = client.status()
        assert memory_of(status).limit_mb == 64
        assert status.agents["main"].vectors.resident_mb < VECTORS_MB / 50
        assert status.agents["main"].vector.ok
        assert all(not found.degraded and found.mode == "hybrid" for found in before)

        follow(daemon, "")
        until(lambda: not is_on_disk(client), 20)
        assert client.status().agents["main"].vectors.resident_mb > VECTORS_MB
        assert answers(client) == before

        assert daemon.stop() == 0
        daemon.configure(limit(100_000))
        daemon.start()
        until(lambda: not is_on_disk(client), 20)  # there is room
        assert daemon.stop() == 0
        daemon.configure(limit(64))
        daemon.start()
        assert is_on_disk(client)
        assert answers(client) == before
        # What the searches took goes back a moment later.
        until(lambda: resident_mb(daemon) < held_mb - 0.4 * VECTORS_MB, 60)


@pytest.mark.long
def test_a_limit_that_cannot_be_kept_is_said_and_memd_serves(home: Path) -> None:
    """With the bundled model and its worker: in status with what to do, once in the log, and in no reply."""
    with Daemon(home, settings=limit(64), real_model=True) as daemon, daemon.client() as client:
        daemon.write("MEMORY.md", "# Port\n\nThe gateway listens on port 8443.\n")
        assert client.sync().vectors == "complete"
        found = client.search("where does the gateway listen?")
        assert found.results[0].path == "MEMORY.md"
        assert (found.mode, found.degraded) == ("hybrid", [])
        until(lambda: memory_of(client.status()).trouble, 30)
        status = client.status()
        memory, agent = memory_of(status), status.agents["main"]
        assert memory.worker_mb > 20
        assert memory.daemon_mb + memory.worker_mb > 64
        assert "memory_limit_mb" in (memory.trouble or "")
        assert agent.vectors.on_disk
        assert agent.vector.ok
        assert daemon.printed().count("memory.limit_exceeded") == 1
        assert client.search("gateway port").results[0].path == "MEMORY.md"


async def test_what_is_written_is_found_by_meaning_while_vectors_are_on_disk(home: Path) -> None:
    """New notes, edits, deletions and a rebuild, with the limit there and gone again."""
    write(home, "memory/a.md", "The lighthouse was painted red.\n")
    async with running(home, settings=limit(64)) as client:
        await client.sync()

        async def is_shelved() -> bool:
            return (await client.status()).agents["main"].vectors.on_disk

        async def meant(question: str) -> list[tuple[str, float]]:
            explained = await client.explain(question)
            return [(one.path, one.cosine or 0.0) for one in explained.candidates if one.vector_rank]

        assert await is_shelved()
        write(home, "memory/b.md", "The harbour is deep.\n")
        await client.sync()
        assert dict(await meant("deep harbour"))["memory/b.md"] > 0.5
        write(home, "memory/b.md", "The turbine is loud.\n")
        (home / "workspace/memory/a.md").unlink()
        write(home, "memory/c.md", "Bread needs salt.\n")
        await client.sync()
        assert {path for path, _ in await meant("loud turbine")} == {"memory/b.md", "memory/c.md"}
        await client.reindex()
        async with asyncio.timeout(60):
            while (await client.status()).agents["main"].rebuild is not None:
                await client.sync()
        assert await is_shelved()
        on_disk = await meant("salt in the bread")
        configure(home)
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(60):
            while await is_shelved():
                await client.sync()
        assert await meant("salt in the bread") == on_disk


async def test_vectors_that_are_damaged_on_disk_are_made_anew(home: Path) -> None:
    """The search that meets them is answered by keywords, and those after the rebuild by meaning again."""
    write(home, "memory/a.md", "The lighthouse was painted red.\n")
    async with running(home, settings=limit(64)) as client:
        await client.sync()
        connection = apsw.Connection(str(home / "state/agents/main.sqlite"))
        connection.execute("UPDATE vectors_vector_chunks00 SET vectors = x'00'")
        connection.close()
        found = await client.search("red lighthouse")
        assert (found.mode, [hit.path for hit in found.results]) == ("keyword", ["memory/a.md"])
        assert "vector" in {one.part for one in found.degraded}
        async with asyncio.timeout(60):
            while (found := await client.search("red lighthouse")).mode != "hybrid" or found.degraded:
                await client.sync()
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert (await client.status()).agents["main"].vectors.on_disk
