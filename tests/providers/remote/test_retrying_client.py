"""The client of a provider."""

from pathlib import Path

from memd.config.settings import Remote
from memd.providers.remote.retrying_client import open_client
from memd.providers.remote.spec import provider_spec


async def test_a_client_that_is_opened_has_not_connected() -> None:
    """It knows its server, and can be closed without a request."""
    made = provider_spec("ollama", "", Remote(base_url="http://127.0.0.1:1"), {}, Path.read_text)
    opened = open_client(made)
    assert opened.dialect is made.dialect
    assert opened.account is made.account
    await opened.session.close()
