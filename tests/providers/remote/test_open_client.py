"""From a recipe to somebody who asks."""

from pathlib import Path

from memd.config.settings import Remote
from memd.providers.remote.open_client import asker
from memd.providers.remote.spec import recipe


async def test_nobody_is_asked_before_somebody_asks() -> None:
    """What is opened knows whom to ask, and can be closed without ever having connected."""
    made = recipe("ollama", "", Remote(base_url="http://127.0.0.1:1"), {}, Path.read_text)
    opened = asker(made)
    assert opened.dialect is made.dialect
    assert opened.account is made.account
    await opened.session.close()
