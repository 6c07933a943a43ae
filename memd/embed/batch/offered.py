"""Which batch API goes with which embedding API."""

from memd.embed.batch.dialect import BatchDialect
from memd.embed.batch.gemini import GeminiBatches
from memd.embed.batch.openai import OpenAIBatches
from memd.embed.remote.dialect import Dialect
from memd.embed.remote.gemini import Gemini
from memd.embed.remote.openai import OpenAI
from memd.embed.remote.voyage import Voyage


def offered(dialect: Dialect, base_url: str) -> BatchDialect | None:
    """The batch API of a provider; None: it has none, or nobody can know whether it has.

    Args:
        dialect: How it is asked for vectors.
        base_url: Where.
    """
    match dialect:
        case OpenAI(provider="openai") | Voyage():
            return OpenAIBatches(dialect)
        case Gemini():
            return GeminiBatches(dialect, base_url)
        case _:
            return None
