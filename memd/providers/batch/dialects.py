"""Which batch API goes with which embedding API."""

from memd.providers.batch.dialect import BatchDialect
from memd.providers.batch.gemini import GeminiBatches
from memd.providers.batch.openai import OpenAIBatches
from memd.providers.remote.dialect import Dialect
from memd.providers.remote.gemini import Gemini
from memd.providers.remote.openai import OpenAI
from memd.providers.remote.voyage import Voyage


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
