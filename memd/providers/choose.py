"""Chooses the embedding provider for an agent's settings."""

import hashlib
import os
from pathlib import Path
from random import Random, SystemRandom

import msgspec

from memd.config import check_embedding
from memd.config.settings import AgentSettings, Embedder, Remote
from memd.providers.api_keys import ChoiceInputs, NoKey, mistaken, read_small, with_credentials
from memd.providers.local import provider as local
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, Provider
from memd.providers.remote import known_models
from memd.providers.remote.spec import ProviderSpec, provider_at, provider_spec

BY_KEY: tuple[Embedder, ...] = ("openai", "gemini", "voyage")
"""Providers that `auto` takes if there is a key for them, in this order."""

Candidate = Provider | ProviderSpec
"""A provider that can be used at once, or one that must be probed first."""


class SkippedProvider(msgspec.Struct, frozen=True):
    """A provider that was considered, and why it was not chosen."""

    provider: str
    reason: str


class ProviderChoice(msgspec.Struct, frozen=True):
    """The provider of some settings; without one, search uses keywords only."""

    primary: Candidate | None
    reason: str | None  # why there is none
    passed_over: tuple[SkippedProvider, ...] = ()  # in the order in which they were considered
    because: str = ""  # why it is this one, and who gets to read the notes
    fallback: Candidate | None = None  # what takes over when the primary fails for long
    no_fallback: str | None = None  # why there is none, where one is named

    @property
    def provider(self) -> Provider | None:
        """The primary, if it can be used now."""
        return None if isinstance(self.primary, ProviderSpec) else self.primary


class _Considered(msgspec.Struct, frozen=True):
    """A provider to be considered."""

    provider: Embedder
    model: str
    remote: Remote  # what of the settings is this provider's own
    why: str


def choose(settings: AgentSettings, inputs: ChoiceInputs, rng: Random | None = None) -> ProviderChoice:
    """Choose a provider without loading, starting or requesting anything; what is missing becomes the reason.

    Args:
        settings: Of them, `provider`, `model`, `fallback` and `remote` are looked at.
        inputs: Where keys may be.
        rng: Source of jitter for the local provider; None for one that differs from process to process.
    """
    if settings.provider == "none":
        return ProviderChoice(None, "provider = none")
    jitter = rng or SystemRandom()
    passed_over: list[SkippedProvider] = []
    for each in _to_consider(settings, inputs):
        if isinstance(each, SkippedProvider):
            passed_over.append(each)
            continue
        try:
            primary = _candidate(each, inputs, jitter)
        except (EmbedUnavailable, EmbedTerminal) as missing:
            passed_over.append(SkippedProvider(each.provider, _reason(each, missing, inputs)))
            continue
        fallback, no_fallback = _second(settings, each, inputs, jitter)
        return ProviderChoice(
            primary, None, tuple(passed_over), _because(each, primary), fallback, no_fallback
        )
    return ProviderChoice(None, "\n".join(each.reason for each in passed_over), tuple(passed_over))


def choose_here(settings: AgentSettings, state: Path | None = None) -> ProviderChoice:
    """Choose with the environment and the logins of this process's user.

    Args:
        settings: See choose.
        state: The state directory; None: nothing is written.
    """
    environ = with_credentials(os.environ, read_small)
    return choose(settings, ChoiceInputs(environ, Path.home(), read_small, state))


def shared(settings: AgentSettings) -> str:
    """Return a hash of all settings that affect embedding: agents with equal hashes share a provider."""
    wanted = (settings.provider, settings.model, settings.fallback, settings.remote)
    return hashlib.sha256(msgspec.json.encode(wanted, order="sorted")).hexdigest()


def _to_consider(settings: AgentSettings, inputs: ChoiceInputs) -> list[_Considered | SkippedProvider]:
    """Return the providers that the settings allow, most preferred first."""
    provider, model, remote = settings.provider, settings.model, settings.remote
    found: list[_Considered | SkippedProvider]
    match provider:
        case "none":
            found = []
        case "auto":
            found = [*_remote_ones(settings, inputs), _Considered("local", model, remote, "it needs no key")]
        case _:
            found = [_Considered(provider, model, remote, f"provider = {provider}")]
    named_before = {each.provider for each in found if isinstance(each, _Considered)}
    if settings.fallback != "none" and settings.fallback not in named_before:
        found.append(_fallback(settings, settings.fallback))
    return found


def _remote_ones(settings: AgentSettings, inputs: ChoiceInputs) -> list[_Considered | SkippedProvider]:
    """Return the providers that `auto` prefers to the local model.

    A base_url names who may read the notes. If it cannot be used, they do not go to another provider because there happens
    to be a key.
    """
    model, remote = settings.model, settings.remote
    found: list[_Considered | SkippedProvider]
    if remote.base_url:
        named = (
            "openai-compatible"
            if check_embedding.url_fault(remote.base_url)
            else provider_at(remote.base_url)
        )
        found = [_Considered(named, model, remote, "remote.base_url is set")]
        found += [
            SkippedProvider(name, f"{name}: remote.base_url names another server, and notes go nowhere else.")
            for name in BY_KEY
            if name != named
        ]
    else:
        found = [
            _Considered(name, model, remote, "there is a key for it")
            if known_models.is_from(name, model)
            else SkippedProvider(name, f'{name}: it has no model "{model}".')
            for name in BY_KEY
        ]
    other = mistaken("anthropic", inputs)
    return found if other is None else [*found, SkippedProvider("anthropic", other)]


def _fallback(settings: AgentSettings, name: Embedder) -> _Considered:
    """Return the fallback provider, with its default model.

    Address, key and whatever belongs to a model are the first one's, unless that is local and has no use for them.
    """
    remote = settings.remote
    if settings.provider != "local":
        remote = Remote(
            concurrency=remote.concurrency,
            query_timeout_ms=remote.query_timeout_ms,
            confirm_above_chunks=remote.confirm_above_chunks,
            batch=remote.batch,
        )
    return _Considered(name, "", remote, f"fallback = {name}")


def _second(
    settings: AgentSettings, chosen: _Considered, inputs: ChoiceInputs, rng: Random
) -> tuple[Candidate | None, str | None]:
    """Return the fallback, or why there is none although one is configured."""
    if settings.fallback in {"none", chosen.provider}:
        return None, None
    one = _fallback(settings, settings.fallback)
    try:
        return _candidate(one, inputs, rng), None
    except (EmbedUnavailable, EmbedTerminal) as missing:
        return None, _reason(one, missing, inputs)


def _candidate(one: _Considered, inputs: ChoiceInputs, rng: Random) -> Candidate:
    """Create the provider.

    Raises:
        EmbedUnavailable, EmbedTerminal: it cannot be had.
    """
    if one.provider == "local":
        return local.build(one.model, rng, inputs.state)
    return provider_spec(one.provider, one.model, one.remote, inputs.environ, inputs.read)


def _reason(one: _Considered, missing: Exception, inputs: ChoiceInputs) -> str:
    """Return why a provider cannot be used; a key or login that cannot be used for embeddings is mentioned."""
    looks_so = mistaken(one.provider, inputs) if isinstance(missing, NoKey) else None
    return str(missing) if looks_so is None else f"{missing} {looks_so}"


def _because(one: _Considered, made: Candidate) -> str:
    """Return why this provider was chosen, and where it sends notes."""
    where = (
        f"notes and questions are sent to {made.account.host}"
        if isinstance(made, ProviderSpec)
        else "nothing is sent anywhere"
    )
    return f"{one.why}; {where}"
