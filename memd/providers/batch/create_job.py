"""Begins a job at the provider, once and not twice whatever happens to the answer."""

import asyncio
from collections.abc import Mapping

from memd.model import TextHash
from memd.providers.batch.client import BatchClient
from memd.providers.batch.dialect import JobListing
from memd.providers.batch.grouping import lines
from memd.providers.provider import EmbedUnavailable
from memd.providers.remote.request import HttpRequest, RateLimited
from memd.runtime.threads import beside

MOST_PAGES = 20  # of the list of jobs: a job of ours that is sought began a short while ago


def upload_name(label: str) -> str:
    """Under which name the texts of a job are uploaded; a list of the provider's files tells it."""
    return f"{label}.jsonl"


async def upload(asking: BatchClient, label: str, texts: Mapping[TextHash, str]) -> tuple[str, bool]:
    """The name of a new file with the texts of a job, and whether it is the only one: a lost answer leaves others.

    Args:
        asking: Whom to ask.
        label: Of the job.
        texts: What is in it.

    Raises:
        EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable, NotSupported: it is not there.
    """

    def form() -> HttpRequest:
        return asking.dialect.upload(upload_name(label), lines(asking.dialect, texts))

    # Tens of megabytes: the loop must not stand still for them, and they are not kept while the job runs.
    body, times = await asking.counted(await beside(form))
    return asking.dialect.uploaded(body), times == 1


async def create(asking: BatchClient, label: str, file: str) -> str:
    """The name of a new job.

    Args:
        asking: Whom to ask.
        label: What the job is to be found by.
        file: What is in it, uploaded.

    Raises:
        EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable, NotSupported: there is no job.
        JobFailed: nobody could say for days whether there is one.
    """
    failures = 0
    while True:
        try:
            return asking.dialect.created(await asking.once(asking.dialect.create(file, label)))
        except EmbedUnavailable as failure:
            failures += 1
            # The job may be there although no answer came: another one would be paid for as well.
            if not isinstance(failure, RateLimited):
                name = await find(asking, label, since=asking.clock())
                if name is not None:
                    return name
            if (
                failures >= asking.retries.attempts
                or (failure.retry_after_s or 0) > asking.retries.longest_asked_s
            ):
                raise
            await asking.wait_after(failures, failure)


async def find(asking: BatchClient, label: str, *, since: float) -> str | None:
    """The name of a job that may have been created; None: it was not.

    Args:
        asking: Whom to ask.
        label: Of the job.
        since: Unix time from which patience counts.

    Raises:
        JobFailed: there was no answer for too long.
        TooMuch, Unacceptable, NotSupported: jobs cannot be listed.
    """
    name = await _listed(asking, label, since)
    if name is None:
        await asyncio.sleep(asking.patience.appear_s)
        name = await _listed(asking, label, since)
    return name


async def _listed(asking: BatchClient, label: str, since: float) -> str | None:
    after: str | None = None
    for _ in range(MOST_PAGES):
        page: JobListing = await asking.until_answered(
            asking.dialect.list(after), asking.dialect.listed, since=since
        )
        if label in page.jobs or page.after is None:
            return page.jobs.get(label)
        after = page.after
    return None
