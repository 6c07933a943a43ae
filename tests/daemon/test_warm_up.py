"""What is broken is shown at the start, before anybody has asked; the start itself waits for nothing."""

from pathlib import Path

from structlog.testing import capture_logs

from memd_client import AsyncClient
from memd_client.messages import AgentStatus
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.daemon.trouble import comes_true
from tests.fakes import HashingProvider
from tests.wait import until

RED = "The lighthouse was painted red.\n"


async def told(client: AsyncClient) -> AgentStatus:
    """How agent main is."""
    return (await client.status()).agents["main"]


async def test_a_model_that_does_not_load_is_shown(home: Path) -> None:
    """In status and in the log, though nothing has been asked or embedded; when it loads, nothing is called broken."""
    provider = HashingProvider()
    provider.fail_next(1_000_000)
    with capture_logs() as logs:
        async with running(home, provider) as client:

            async def is_shown() -> bool:
                one = await told(client)
                return not one.provider_health.ok and not one.vector.available

            await comes_true(is_shown)
            one = await told(client)
            assert (one.vector.enabled, one.provider_health.reason) == (
                True,
                "the test lets this request fail",
            )
            assert "embed.provider_failed" in [
                each["event"] for each in logs if each["log_level"] == "warning"
            ]
            provider.fail_next(0)
            await client.search("anything")

            async def is_mended() -> bool:
                one = await told(client)
                return one.provider_health.ok and one.vector.available

            await comes_true(is_mended)


async def test_a_model_that_loads_is_ready(home: Path) -> None:
    """It was tried before the first question, and status says what it found."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        await client.sync()
        assert provider.questions == ["warm-up"]
        one = await told(client)
        assert (one.vector.ok, one.vector.enabled, one.vector.available) == (True, True, True)


async def test_an_agent_without_a_provider_has_no_vectors(home: Path) -> None:
    """Which is how its owner wants it."""
    async with running(home, settings='provider = "none"') as client:
        one = await told(client)
        assert (one.vector.ok, one.vector.enabled, one.vector.available) == (True, False, False)


def test_an_extension_that_does_not_load_is_shown(daemon: Daemon) -> None:
    """Vectors are compared in memory then: searches by meaning go on, and status and log say what is missing."""
    shadow = daemon.home / "shadow"
    shadow.mkdir()
    (shadow / "sqlite_vec.py").write_text("def loadable_path():\n    return '/no/such/extension'\n")
    daemon.write("memory/a.md", RED)
    with daemon.start(environ={"PYTHONPATH": str(shadow)}), daemon.client() as client:
        one = client.status().agents["main"]
        assert not one.vector.ok
        assert "vectors are compared in memory" in (one.vector.reason or "")
        assert (one.vector.enabled, one.vector.available) == (True, True)
        until(lambda: '"level":"warning","event":"backend.vectors_limited"' in daemon.printed(), 10)
        client.sync()
        assert client.search("lighthouse").mode == "hybrid"
