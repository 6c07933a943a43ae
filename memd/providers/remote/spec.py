"""Everything needed to send requests to a provider over HTTP."""

from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec

from memd.config.settings import Remote
from memd.providers.api_keys import Account, NoAccount, ProviderAddress, Read, account, origin_of
from memd.providers.remote import gemini, ollama, openai
from memd.providers.remote.dialect import Dialect

Name = Literal["openai", "gemini", "voyage", "ollama", "openai-compatible"]

OLLAMA_PORT = 11434
_OLLAMA_ENDINGS = ("/api", "/api/embed", "/api/embeddings", "/ollama")


class ProviderSpec(msgspec.Struct, frozen=True):
    """A provider over HTTP, whose model has not been probed yet.

    Its repr contains no key; neither do those of its parts.
    """

    dialect: Dialect
    account: Account
    key_header: str | None  # header of the key; None: Authorization, as a bearer token
    query_timeout_s: float
    key_places: str = "remote.api_key"  # where a key can be configured, for messages

    @property
    def provider(self) -> str:
        """The provider's name in the configuration."""
        return self.dialect.provider

    @property
    def model(self) -> str:
        """The model's name in requests."""
        return self.dialect.model


def provider_spec(
    name: Name, model: str, remote: Remote, environ: Mapping[str, str], read: Read
) -> ProviderSpec:
    """Return the specification of a provider.

    Args:
        name: The provider's name.
        model: The configured model; empty for the provider's default.
        remote: The settings of this provider.
        environ: The process's environment.
        read: Reads the file with the key.

    Raises:
        NoAccount: the message says what is missing, and how to provide it.
    """
    key_header = None
    home: ProviderAddress
    dialect: Dialect
    match name:
        case "openai":
            home, dialect = openai.HOME, openai.openai(model, remote)
        case "gemini":
            home, dialect, key_header = gemini.HOME, gemini.gemini(model, remote), gemini.KEY_HEADER
        case "voyage":
            home, dialect = openai.VOYAGE_HOME, openai.voyage(model, remote)
        case "ollama":
            home, dialect = ollama.HOME, ollama.ollama(model, remote)
        case "openai-compatible":
            if not model:
                raise NoAccount(
                    f"{name}: set model to the name that the server at remote.base_url gives to it."
                )
            home, dialect = openai.ANY_HOME, openai.compatible(model, remote)
        case _:
            assert_never(name)
    who = account(name, home, remote, environ, read)
    return ProviderSpec(
        dialect, who, key_header, remote.query_timeout_ms / 1000, _key_places(home, who, remote)
    )


def _key_places(home: ProviderAddress, who: Account, remote: Remote) -> str:
    """Return where the key for an address can be configured; environment variables are for the provider's own host only."""
    if remote.api_key:
        return "remote.api_key"
    if remote.api_key_env:
        return "the variable that remote.api_key_env names"
    if remote.api_key_file:
        return "the file that remote.api_key_file names"
    is_home = bool(home.base_url) and origin_of(ProviderAddress(who.base_url)) == origin_of(home)
    return " or ".join([*home.variables[:is_home], "remote.api_key"])


def provider_at(base_url: str) -> Name:
    """Return the provider to expect at an address: the one that it belongs to, Ollama at its port, else any other."""
    origin = origin_of(ProviderAddress(base_url))
    homes: Mapping[Name, ProviderAddress] = {
        "openai": openai.HOME,
        "gemini": gemini.HOME,
        "voyage": openai.VOYAGE_HOME,
    }
    for name, home in homes.items():
        if origin == origin_of(home):
            return name
    *_, port = origin
    if port == OLLAMA_PORT or base_url.rstrip("/").endswith(_OLLAMA_ENDINGS):
        return "ollama"
    return "openai-compatible"
