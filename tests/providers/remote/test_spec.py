"""What it takes to ask each provider."""

from pathlib import Path

import msgspec
import pytest

from memd.config.settings import Remote
from memd.providers.api_keys import NoAccount
from memd.providers.provider import ProviderLimits
from memd.providers.remote import gemini, ollama, openai
from memd.providers.remote.spec import Name, provider_at, provider_spec

ENVIRON = {"OPENAI_API_KEY": "sk-o", "GOOGLE_API_KEY": "g-1", "VOYAGE_API_KEY": "pa-v"}
SERVER = Remote(base_url="http://127.0.0.1:8080")


def _nothing(path: Path) -> str:
    raise FileNotFoundError(2, "No such file or directory", str(path))


@pytest.mark.parametrize(
    ("name", "remote", "model", "base_url", "key", "key_header"),
    [
        ("openai", Remote(), "text-embedding-3-small", "https://api.openai.com/v1", "sk-o", None),
        ("gemini", Remote(), "gemini-embedding-001", "https://generativelanguage.googleapis.com/v1beta", "g-1", "x-goog-api-key"),
        ("voyage", Remote(), "voyage-4-large", "https://api.voyageai.com/v1", "pa-v", None),
        ("ollama", Remote(), "nomic-embed-text", "http://127.0.0.1:11434", None, None),
        ("ollama", Remote(base_url="http://gpubox:11434/v1/"), "nomic-embed-text", "http://gpubox:11434", None, None),
        ("ollama", Remote(base_url="http://gpubox/ollama/api/embed"), "nomic-embed-text", "http://gpubox/ollama", None, None),
        ("gemini", Remote(base_url="https://generativelanguage.googleapis.com/v1beta/openai"), "gemini-embedding-001",
         "https://generativelanguage.googleapis.com/v1beta", "g-1", "x-goog-api-key"),
        ("gemini", Remote(base_url="https://generativelanguage.googleapis.com"), "gemini-embedding-001",
         "https://generativelanguage.googleapis.com/v1beta", "g-1", "x-goog-api-key"),
    ],
)  # fmt: skip
def test_a_provider_is_asked_at_its_address_with_its_key(
    name: Name, remote: Remote, model: str, base_url: str, key: str | None, key_header: str | None
) -> None:
    """By default at home, with the usual key and the default model."""
    made = provider_spec(name, "", remote, ENVIRON, _nothing)
    assert (made.provider, made.model, made.key_header) == (name, model, key_header)
    assert (made.account.base_url, made.account.key) == (base_url, key)
    assert made.query_timeout_s == 2.0


def test_any_server_is_asked_without_a_key() -> None:
    """Unless it is given one of its own."""
    made = provider_spec("openai-compatible", "m", SERVER, ENVIRON, _nothing)
    assert (made.account.base_url, made.account.key) == ("http://127.0.0.1:8080/v1", None)


@pytest.mark.parametrize(("model", "remote", "word"), [("", SERVER, "model"), ("m", Remote(), "base_url")])
def test_any_server_must_be_named_with_its_model(model: str, remote: Remote, word: str) -> None:
    """There is no default for either."""
    with pytest.raises(NoAccount, match=word):
        provider_spec("openai-compatible", model, remote, {}, _nothing)


def test_a_recipe_tells_no_key() -> None:
    """Whatever prints it."""
    made = provider_spec("openai", "", Remote(headers={"x-team": "hush"}), ENVIRON, _nothing)
    assert "sk-o" not in repr(made)
    assert "hush" not in repr(made)


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://API.OpenAI.com:443", "openai"),
        ("https://api.openai.com.example.org/v1", "openai-compatible"),
        ("http://api.openai.com/v1", "openai-compatible"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("https://api.voyageai.com/v1", "voyage"),
        ("http://127.0.0.1:11434", "ollama"),
        ("http://gpubox:11434/v1", "ollama"),
        ("http://gpubox:3000/api/", "ollama"),
        ("https://example.org/ollama", "ollama"),
        ("http://127.0.0.1:1234/v1", "openai-compatible"),
        ("http://127.0.0.1:8080", "openai-compatible"),
    ],
)
def test_an_address_tells_whose_it_is(base_url: str, name: str) -> None:
    """A provider's own origin, Ollama's port or path; anything else speaks as OpenAI does."""
    assert provider_at(base_url) == name


@pytest.mark.parametrize(
    ("provider", "settings", "places"),
    [
        ("openai", {}, "OPENAI_API_KEY or remote.api_key"),
        ("openai", {"api_key": "sk-1"}, "remote.api_key"),
        ("openai", {"api_key_env": "MINE"}, "the variable that remote.api_key_env names"),
        # A key of the provider's own service does not go to another host, so to set it would not help.
        ("openai", {"base_url": "https://proxy.example/v1", "headers": {"api-key": "k"}}, "remote.api_key"),
        ("openai-compatible", {"base_url": "https://proxy.example/v1"}, "remote.api_key"),
    ],
)
def test_where_another_key_would_be_looked_for_is_told(
    provider: Name, settings: dict[str, object], places: str
) -> None:
    """The place that counts with these settings."""
    remote = msgspec.convert(settings, Remote)
    made = provider_spec(provider, "m", remote, {"OPENAI_API_KEY": "sk-2", "MINE": "sk-3"}, _nothing)
    assert made.key_places == places


@pytest.mark.parametrize(
    ("name", "tokens", "texts", "concurrency"),
    [
        ("openai", openai.REQUEST_TOKENS, openai.REQUEST_TEXTS, 7),
        ("gemini", gemini.REQUEST_TOKENS, gemini.REQUEST_TEXTS, 7),
        ("voyage", openai.REQUEST_TOKENS, openai.VOYAGE_REQUEST_TEXTS, 7),
        ("ollama", ollama.REQUEST_TOKENS, ollama.REQUEST_TEXTS, ollama.CONCURRENCY),
    ],
)
def test_a_request_has_its_limits(name: Name, tokens: int, texts: int, concurrency: int) -> None:
    """Those of its provider; requests at once are the configuration's, but where another model computes beside memd."""
    limits = provider_spec(name, "", Remote(concurrency=7), ENVIRON, _nothing).dialect.limits
    assert limits == ProviderLimits(tokens, texts, concurrency)
