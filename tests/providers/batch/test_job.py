"""When a job's state is asked for, and how long."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from memd.config.settings import BatchSettings
from memd.domain_types import BatchJob, TextHash
from memd.providers.batch.client import BatchTimeouts, JobFailed
from memd.providers.batch.job import JobLate, JobRun, VectorForm
from memd.providers.batch.remote_files import RemoteFiles
from memd.providers.remote.dialect import HttpAnswer
from tests.clock import hastily
from tests.providers.batch.scripted import answer, scripted_client

TIMEOUTS = BatchTimeouts(first_s=1.0, longest_s=10.0, cancel_s=30.0, gone_s=50.0)
RUNNING, FAILED = answer({"id": "b", "status": "in_progress"}), answer({"id": "b", "status": "failed"})


class _NoFiles(RemoteFiles):
    def __init__(self) -> None:
        pass

    async def add(self, job_id: str, files: Iterable[str]) -> None:
        pass


def _asked(
    reply: Callable[[int], HttpAnswer], settings: BatchSettings, raises: type[Exception]
) -> list[tuple[float, str]]:
    """When what was asked of a provider about a job of one text that began at 0, until it failed so.

    Args:
        reply: The answer to a question about the job's state, by its number.
        settings: How long the job may take.
        raises: What it fails with.
    """

    async def ask() -> list[tuple[float, str]]:
        polls = 0

        def replied(what: str) -> HttpAnswer:
            nonlocal polls
            polls += what.startswith("GET")
            return reply(polls) if what.startswith("GET") else answer({})

        client, connections = scripted_client(replied, TIMEOUTS)
        job = BatchJob("job", 1, 0.0, "b")
        run = JobRun(client, settings, VectorForm(2, None), job, _NoFiles())

        async def keep(_: Mapping[TextHash, bytes]) -> None:
            raise AssertionError("there is nothing to keep")

        with pytest.raises(raises):
            await run.finish({TextHash(b"x")}, {}, keep)
        return connections.asked

    return hastily(ask())


def test_a_job_is_asked_about_less_and_less_often() -> None:
    """First after the time of the settings, which have milliseconds."""
    settings = BatchSettings(enabled=True, poll_interval_ms=2000, wait=False)
    asked = _asked(lambda polls: FAILED if polls == 8 else RUNNING, settings, JobFailed)
    assert [at for at, _ in asked] == [0, 2, 5, 9.5, 16.25, 26.25, 36.25, 46.25]
    slow = BatchSettings(enabled=True, poll_interval_ms=15_000, wait=False)
    assert [at for at, _ in _asked(lambda polls: FAILED if polls == 3 else RUNNING, slow, JobFailed)] == [
        0,
        15,
        30,
    ]


def test_a_late_job_is_cancelled_and_asked_about_once_more_for_a_while() -> None:
    """It is late to the second, and its end is waited for as long as providers take to cancel."""
    settings = BatchSettings(enabled=True, poll_interval_ms=40_000, wait=True, timeout_minutes=2)
    asked = _asked(lambda _: RUNNING, settings, JobLate)
    assert asked[:4] == [(at, "GET batches/b") for at in (0, 40, 80, 120)]
    assert asked[4:] == [(120, "POST batches/b/cancel"), (120, "GET batches/b"), (150, "GET batches/b")]
