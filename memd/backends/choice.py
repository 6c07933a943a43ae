"""Which engine answers an agent's searches."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.backends.builtin import Builtin
from memd.backends.fallback import Fallback, FallbackTimeouts
from memd.backends.qmd.backend import QmdBackend
from memd.backends.qmd.embed_slot import EmbedSlot
from memd.config.settings import AgentSettings
from memd.index_service import IndexService
from memd.indexing.rules import IndexingRules
from memd.store.index import Index


class BackendEnvironment(msgspec.Struct, frozen=True):
    """What engines that are programs of their own need to know of this process."""

    environ: Mapping[str, str]
    home: Path
    turn: EmbedSlot  # one of them embeds at a time, whatever the number of agents


def chosen(
    agent: str,
    settings: AgentSettings,
    around: BackendEnvironment,
    *,
    builtin: Builtin,
    index: Index,
    sync: IndexService,
    treatment: IndexingRules,
) -> Builtin | Fallback:
    """The engine that the settings name, with the built-in one behind it.

    The text of the built-in index is kept up to date in any case: `get`, scope and the fence ask it, and a fallback finds it
    ready. Its vectors are not: nobody shall pay twice, so they rest for as long as the other engine answers.
    """
    if settings.backend == "builtin":
        return builtin
    sync.rest_vectors()

    def lean(on_builtin: bool) -> None:
        (sync.want_vectors if on_builtin else sync.rest_vectors)()

    async def create() -> QmdBackend:
        return await QmdBackend.create(
            agent,
            settings,
            directory=index.file.with_suffix(".qmd"),
            index=index,
            sync=sync,
            treatment=treatment,
            builtin=builtin,
            turn=around.turn,
            environ=around.environ,
            home=around.home,
        )

    patience = FallbackTimeouts(settings.qmd.timeout_ms / 1000, settings.qmd.cooldown_seconds)
    return Fallback(agent, "qmd", create, builtin, patience, leaned_on=lean)
