"""What is told about settings of a provider that do not go together."""

from typing import Any

import msgspec
import pytest

from memd.config.check import dotted
from memd.config.check_embedding import disagreements, is_readable, url_fault
from memd.config.settings import AgentSettings
from tests.table import table


def _told(**settings: Any) -> list[tuple[str, str]]:
    agent = msgspec.convert(
        {"workspace": "/w", **settings}, AgentSettings, dec_hook=lambda kind, text: kind(text)
    )
    return [(dotted(keys[0]), sentence) for keys, sentence in disagreements(agent)]


_SERVER = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"fallback": "openai"},
        {"provider": "none"},
        {"provider": "local", "fallback": "ollama", "remote": {"base_url": "http://gpubox:11434"}},
        {"provider": "local", "fallback": "openai", "remote": {"batch": {"enabled": True}}},
        {"provider": "openai", "fallback": "local", "remote": {"api_key": "sk-1", "batch": {"enabled": True}}},
        {"provider": "openai", "remote": {"headers": {"OpenAI-Organization": "org-1", "X-Note": "two words"}}},
        {"provider": "gemini", "remote": {"api_key_env": "MY_KEY"}},
        {"provider": "voyage", "remote": {"api_key_file": "/run/secrets/voyage.key"}},
        {"provider": "ollama", "model": "bge-m3", "remote": {"query_prefix": "query: "}},
        {"provider": "openai-compatible", "model": "m", "remote": {"base_url": _SERVER, "query_input_type": "query"}},
        {"provider": "auto", "remote": {"base_url": "https://gateway.example.org", "api_key": "k-1"}},
        {"provider": "auto", "remote": {"batch": {"enabled": True}}},
    ],
)  # fmt: skip
def test_what_goes_together_is_accepted(settings: dict[str, Any]) -> None:
    """Nothing is told."""
    assert _told(**settings) == []


@table(
    ("settings", "key", "words"),
    [
        ({"provider": "openai", "fallback": "openai"}, "fallback", "is the provider itself"),
        ({"provider": "none", "fallback": "local"}, "fallback", "keywords alone"),
        ({"provider": "openai", "fallback": "openai-compatible"}, "fallback", "cannot be"),
        ({"provider": "openai-compatible", "model": "m"}, "remote.base_url", "http://127.0.0.1:8080/v1"),
        ({"provider": "openai-compatible", "remote": {"base_url": _SERVER}}, "model", "needs model"),
        ({"provider": "ollama", "remote": {"batch": {"enabled": True}}}, "remote.batch.enabled", '"openai", "gemini" or "voyage"'),
        ({"provider": "local", "remote": {"batch": {"enabled": True}}}, "remote.batch.enabled", 'provider is "local"'),
        ({"provider": "openai", "remote": {"api_key": "sk-1", "api_key_env": "A_KEY"}}, "remote.api_key", "keep one"),
        ({"provider": "openai", "remote": {"api_key": "sk-mellon two"}}, "remote.api_key", "no key"),
        ({"provider": "openai", "remote": {"api_key": " "}}, "remote.api_key", "no key"),
        ({"provider": "openai", "remote": {"api_key": "OPENAI_API_KEY"}}, "remote.api_key", "api_key_env"),
        ({"provider": "openai", "remote": {"api_key": "${OPENAI_API_KEY}"}}, "remote.api_key", "api_key_env"),
        ({"provider": "openai", "remote": {"api_key_env": "sk-mellon"}}, "remote.api_key_env", "name of a variable"),
        ({"provider": "gemini", "remote": {"api_key_env": "AIzaSymellon"}}, "remote.api_key_env", "name of a variable"),
        ({"provider": "openai", "remote": {"api_key_file": "/c/sk-mellon"}}, "remote.api_key_file", "path of a file"),
        ({"remote": {"api_key": "sk-mellon"}}, "remote.api_key", "does not say whose"),
        ({"remote": {"headers": {"x": "mellon"}}}, "remote.headers", "does not say whose"),
        ({"provider": "openai", "remote": {"base_url": "api.example.com"}}, "remote.base_url", "must begin with http://"),
        ({"provider": "openai", "remote": {"base_url": "https://ann:mellon@x.org"}}, "remote.base_url", "no user"),
        ({"provider": "openai", "remote": {"base_url": "http://x.org", "api_key": "sk-mellon"}}, "remote.base_url", "https://"),
        ({"provider": "openai", "remote": {"headers": {"a b": "mellon"}}}, 'remote.headers."a b"', "no name"),
        ({"provider": "openai", "remote": {"headers": {"Host": "mellon"}}}, "remote.headers.Host", "memd's own"),
        ({"provider": "openai", "remote": {"headers": {"x": "mellon\r\ny: z"}}}, "remote.headers.x", "signs"),
        ({"provider": "openai", "remote": {"headers": {"x": ""}}}, "remote.headers.x", "empty"),
        ({"provider": "openai", "remote": {"headers": {"X-A": "mellon", "x-a": "b"}}}, "remote.headers", "twice"),
        ({"provider": "gemini", "remote": {"query_prefix": "q: "}}, "remote.query_prefix", "do nothing"),
        ({"provider": "voyage", "remote": {"document_input_type": "x"}}, "remote.document_input_type", "by itself"),
        ({"provider": "ollama", "remote": {"query_input_type": "x"}}, "remote.query_input_type", "takes none"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_told(settings: dict[str, Any], key: str, words: str) -> None:
    """At the key to change, with what to do; a value that may be secret is not repeated."""
    [(at, sentence)] = _told(**settings)
    assert at == key
    assert words in sentence
    assert "mellon" not in sentence


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "HTTPS://API.EXAMPLE.COM",
        "http://127.0.0.1:11434",
        "http://[::1]:8080/v1/",
        "http://gpubox",
        "http://xn--bcher-kva.example",
    ],
)
def test_an_address_may_be(url: str) -> None:
    """Of any host, with a port and a path or without."""
    assert url_fault(url) is None


@table(
    ("url", "words"),
    [
        ("", "http://"),
        ("api.example.com/v1", "http://"),
        ("localhost:8080", "http://"),
        ("ftp://example.com", "http://"),
        ("https://", "no server"),
        ("https:///v1", "no server"),
        ("https://:443/v1", "no server"),
        ("https://bücher.example", "no server"),
        ("https://ann:mellon@example.com", "no user"),
        ("https://mellon@example.com", "no user"),
        ("https://example.com/v1?key=mellon", "?"),
        ("https://example.com/v1#mellon", "?"),
        ("https://example.com:99999", "no address"),
        ("https://example.com:mellon", "no address"),
        ("http://[::1", "no address"),
        ("https://example.com/a b", "signs"),
    ],
)
def test_an_address_may_not_be(url: str, words: str) -> None:
    """The fault is said in words that repeat nothing of it: it may hold a key."""
    found = url_fault(url)
    assert found is not None
    assert words in found
    assert "mellon" not in found


@pytest.mark.parametrize(
    ("url", "readable"),
    [
        ("https://example.com", False),
        ("http://example.com", True),
        ("http://8.8.8.8:80", True),
        ("http://localhost.example.com", True),
        ("http://127.0.0.1.example.com", True),
        ("http://127.0.0.1", False),
        ("http://localhost:1234", False),
        ("http://[::1]:1", False),
        ("http://192.168.1.7", False),
        ("http://10.0.0.1", False),
        ("http://gpubox", False),
        ("http://100.100.1.2:8080", False),
        ("http://100.128.1.2:8080", True),
        ("http://gpubox.tail1234.ts.net", False),
        ("http://gpubox.lan.", False),
    ],
)
def test_what_is_sent_can_be_read_on_its_way(url: str, *, readable: bool) -> None:
    """Without encryption, beyond this machine and its network."""
    assert is_readable(url) is readable
