"""What the index of an agent has to be built for, by its settings."""

import msgspec

from memd.chunk.markdown import LONGEST
from memd.config import AgentSettings
from memd.embed.provider import Identity
from memd.store.meta import CHUNKING, TOKENIZER, Fingerprint


def wanted_fingerprint(settings: AgentSettings, identity: Identity | None) -> Fingerprint:
    """The fingerprint of an index that fits.

    Args:
        settings: Of the agent.
        identity: Of its embedding provider; None where it has none.
    """
    text_part = Fingerprint(
        chunking=f"{CHUNKING}: {settings.chunking.tokens}/{settings.chunking.overlap} tokens, {LONGEST} characters",
        tokenizer=str(TOKENIZER),
        sources=tuple(sorted(settings.sources)),
    )
    if identity is None:
        return text_part
    return msgspec.structs.replace(
        text_part,
        provider=identity.provider,
        model=identity.model,
        key=identity.key,
        dimensions=identity.dimensions,
    )
