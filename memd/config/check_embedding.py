"""Validates the settings of an embedding provider together, and the address of a server. Pure."""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from memd.config.settings import AgentSettings, Remote, Rerank
from memd.config.toml_lines import Key

_BATCHING = frozenset({"auto", "openai", "gemini", "voyage"})
_PREFIXED = frozenset({"auto", "openai", "ollama", "openai-compatible", "local", "none"})
_TYPED = frozenset({"auto", "openai-compatible", "local", "none"})
_KEYS: tuple[str, ...] = ("api_key", "api_key_env", "api_key_file")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_OF_VARIABLE = re.compile(r"\$.*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# The prefixes of keys of OpenAI, Voyage, Google and some others.
_KEY = re.compile(r"(?:sk|pa|gsk|hf|xai)[-_]|AIza|Bearer\b", re.IGNORECASE)
# An address with a user or a password, or a connection string of PostgreSQL with a password.
_PASSWORD = re.compile(r"://[^/]*@|\bpassword\s*=", re.IGNORECASE)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_OURS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})

Complaint = tuple[tuple[Key, ...], str]


def disagreements(settings: AgentSettings) -> Iterator[Complaint]:
    """Validate an agent's provider and its connection; messages quote no value that may be secret.

    Yields:
        The keys concerned, relative to the agent, and a sentence about them.
    """
    yield from _fallback(settings)
    yield from _compatible(settings)
    yield from _key(settings.remote)
    yield from _owner(settings)
    yield from _address(settings.remote)
    yield from _headers(settings.remote)
    yield from _unused(settings)
    yield from _rerank(settings.rerank)


def _rerank(rerank: Rerank) -> Iterator[Complaint]:
    for keys, said in (*_key(rerank.as_remote), *_address(rerank.as_remote)):
        yield tuple(("rerank", *key[1:]) for key in keys), said
    if rerank.provider == "compatible" and not rerank.base_url:
        yield (
            (("rerank", "base_url"), ("rerank", "provider")),
            'rerank.provider = "compatible" needs rerank.base_url, such as "http://127.0.0.1:8080/v1"',
        )
    if rerank.provider == "onnx" and not rerank.model:
        yield (
            (("rerank", "model"), ("rerank", "provider")),
            'rerank.provider = "onnx" needs rerank.model, the path of an ONNX file or of the directory of a model',
        )


def _fallback(settings: AgentSettings) -> Iterator[Complaint]:
    provider, fallback = settings.provider, settings.fallback
    if fallback == "none":
        return
    if fallback == provider:
        yield (
            (("fallback",), ("provider",)),
            f'fallback is the provider itself; name another one, or "none" instead of "{fallback}"',
        )
    elif provider == "none":
        yield (
            (("fallback",), ("provider",)),
            'provider = "none" wants keywords alone, and would never use a fallback',
        )
    elif fallback == "openai-compatible":
        yield (
            (("fallback",),),
            'fallback cannot be "openai-compatible": model is that of the provider; take "local", "openai", "gemini", "voyage" or "ollama"',
        )


def _compatible(settings: AgentSettings) -> Iterator[Complaint]:
    if settings.provider != "openai-compatible":
        return
    if not settings.remote.base_url:
        yield (
            (("remote", "base_url"), ("provider",)),
            'provider = "openai-compatible" needs remote.base_url, such as "http://127.0.0.1:8080/v1"',
        )
    if not settings.model:
        yield (
            (("model",), ("provider",)),
            'provider = "openai-compatible" needs model: the name that the server gives to it',
        )


def _key(remote: Remote) -> Iterator[Complaint]:
    """Validate how the key is given."""
    given = [name for name in _KEYS if getattr(remote, name)]
    if len(given) > 1:
        yield (
            tuple(("remote", name) for name in given),
            f"{' and '.join(given)} both say what the key is; keep one",
        )
    key, variable, file = remote.api_key.strip(), remote.api_key_env, remote.api_key_file
    if remote.api_key and _NAME_OF_VARIABLE.fullmatch(key):
        yield (
            (("remote", "api_key"),),
            "api_key is the key itself; the name of a variable belongs into api_key_env",
        )
    elif remote.api_key and not _is_sendable(key):
        yield (("remote", "api_key"),), "api_key is no key: it is empty, or has spaces or other signs in it"
    if variable and (_KEY.match(variable) or not _VARIABLE.fullmatch(variable)):
        yield (
            (("remote", "api_key_env"),),
            "api_key_env must be the name of a variable, such as OPENAI_API_KEY, not the key itself",
        )
    if file and _KEY.match(file.rpartition("/")[2]) and "." not in file.rpartition("/")[2]:
        yield (("remote", "api_key_file"),), "api_key_file must be the path of a file, not the key itself"


def _owner(settings: AgentSettings) -> Iterator[Complaint]:
    """Require that a key, or a header that may hold one, is used only with a server that the settings name."""
    remote = settings.remote
    if settings.provider != "auto" or remote.base_url:
        return
    given = [name for name in (*_KEYS, "headers") if getattr(remote, name)]
    if given:
        yield (
            tuple(("remote", name) for name in given),
            f'remote.{given[0]} does not say whose it is; set provider to the one that it belongs to, such as "openai", or set remote.base_url',
        )


def _address(remote: Remote) -> Iterator[Complaint]:
    if not remote.base_url:
        return
    fault = url_fault(remote.base_url)
    if fault is not None:
        yield (("remote", "base_url"),), f"base_url {fault}"
    elif (any(getattr(remote, name) for name in _KEYS) or remote.headers) and is_readable(remote.base_url):
        yield (
            (("remote", "base_url"),),
            "base_url must begin with https://: with http:// the key can be read on its way",
        )


def _headers(remote: Remote) -> Iterator[Complaint]:
    for name, value in remote.headers.items():
        at = ((("remote", "headers", name)),)
        if not _HEADER.fullmatch(name):
            yield at, "this is no name for a header: letters, digits and - make one"
        elif name.lower() in _NOT_OURS:
            yield at, f"the header {name} is memd's own to set"
        elif not _is_sendable(value.replace(" ", "")) or value != value.strip():
            yield at, f"the value of the header {name} is empty, or has signs in it that no header has"
    lower = [name.lower() for name in remote.headers]
    for name in sorted({name for name in lower if lower.count(name) > 1}):
        yield (("remote", "headers"),), f"the header {name} occurs twice, in different letter case"


def _unused(settings: AgentSettings) -> Iterator[Complaint]:
    """Yield settings that have no effect with the provider."""
    remote, is_local = settings.remote, settings.provider == "local" and settings.fallback != "none"
    provider = settings.fallback if is_local else settings.provider
    if remote.batch.enabled and provider not in _BATCHING:
        yield (
            (("remote", "batch", "enabled"), ("provider",)),
            f'batch needs a provider that has batches, "openai", "gemini" or "voyage"; here provider is "{provider}"',
        )
    prefixes = [name for name in ("query_prefix", "document_prefix") if getattr(remote, name)]
    if prefixes and provider not in _PREFIXED:
        yield (
            (("remote", prefixes[0]), ("provider",)),
            f'{prefixes[0]} would do nothing: "{provider}" is told by itself which text is a question',
        )
    types = [name for name in ("query_input_type", "document_input_type") if getattr(remote, name)]
    if types and provider not in _TYPED:
        yield (
            (("remote", types[0]), ("provider",)),
            f'{types[0]} is for provider = "openai-compatible"; "{provider}" '
            + (
                "is told by itself which text is a question"
                if provider in {"gemini", "voyage"}
                else "takes none"
            ),
        )


def _is_sendable(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def may_be_secret(text: str) -> bool:
    """Return whether a text may be a key, or an address with a password."""
    return _KEY.match(text) is not None or _PASSWORD.search(text) is not None


def is_address(text: str) -> bool:
    """Return whether a text is an address or a connection string, and no path."""
    return "://" in text or _PASSWORD.search(text) is not None


_NEAR = (".local", ".lan", ".internal", ".localhost", ".home.arpa", ".ts.net")
# RFC 6598. Used by overlay networks such as Tailscale, which encrypt traffic by themselves.
_OVERLAY = ipaddress.ip_network("100.64.0.0/10")


def url_fault(base_url: str) -> str | None:
    """Return the fault of an address as the end of a sentence, which does not quote it, since it may contain a key."""
    try:
        address = urlsplit(base_url)
        port = address.port
    except ValueError:
        return "is no address of a server"
    if address.scheme not in {"http", "https"}:
        return "must begin with http:// or https://"
    if address.username is not None or address.password is not None:
        return "must hold no user or password: a key belongs into api_key, api_key_env or api_key_file"
    if "?" in base_url or "#" in base_url:
        return "must end before any ? or #: a key belongs into api_key, api_key_env or api_key_file"
    if not address.hostname or port == 0 or not base_url.isascii() or not base_url.isprintable():
        return "names no server"
    if " " in base_url or "\\" in base_url:
        return "has signs in it that no address has"
    return None


def is_readable(base_url: str) -> bool:
    """Return whether traffic to a valid address can be read outside of the local network."""
    return urlsplit(base_url).scheme == "http" and not is_near(base_url)


def is_near(base_url: str) -> bool:
    """Return whether the host of a valid address is on this machine or in the local network, by its name alone."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_NEAR)
    return address.is_private or address.is_loopback or address.is_link_local or address in _OVERLAY
