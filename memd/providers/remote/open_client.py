"""From a recipe to somebody who asks; only who has a remote provider imports this, and httpx with it."""

from memd.providers.remote.http import HttpConnections
from memd.providers.remote.retrying_client import RetryingClient
from memd.providers.remote.spec import ProviderSpec

QUESTIONS = 2  # connections beside those for documents: a search does not wait behind them


def asker(recipe: ProviderSpec) -> RetryingClient:
    """Somebody who asks the provider of a recipe; nothing is sent or connected yet."""
    connections = recipe.dialect.limits.concurrency + QUESTIONS
    session = HttpConnections(recipe.provider, recipe.account, recipe.key_header, connections)
    return RetryingClient(recipe.dialect, recipe.account, session)
