"""Puts the keyword index in order once many files have changed, or some a while ago."""

import structlog

from memd.maintenance.loop import BackgroundTask
from memd.maintenance.triggers import MaintenanceTriggers
from memd.store.index import Index

log = structlog.get_logger()


def optimize_keywords(index: Index, triggers: MaintenanceTriggers) -> BackgroundTask:
    """Merge the parts of the keyword index. Edits and searches go on meanwhile, between two steps."""

    async def run() -> None:
        steps = 1
        more = await index.tidy_keywords(begin=True)
        while more:
            more = await index.tidy_keywords(begin=False)
            steps += 1
        while await index.database.shrink():
            steps += 1
        log.debug("sync.keywords_tidied", steps=steps)
        triggers.left_over.set()  # the index holds no word any more that is in none of its texts

    return BackgroundTask(
        "optimizing keywords", run, triggers.enough, put_off="sync.keywords_not_tidied", damage=index.damage
    )
