"""Which embedding provider an agent's settings mean."""

from random import Random, SystemRandom
from typing import Literal, assert_never

import msgspec

from memd.config import AgentSettings
from memd.embed import local
from memd.embed.provider import EmbedUnavailable, Provider

Name = Literal["local"]

AUTO: tuple[Name, ...] = ("local",)
"""What `auto` tries, in this order."""


class PassedOver(msgspec.Struct, frozen=True):
    """A provider that was considered, and why it was not taken."""

    provider: Name
    reason: str


class Choice(msgspec.Struct, frozen=True):
    """The provider, or why there is none: then search is by keywords alone."""

    provider: Provider | None
    reason: str | None  # None: there is a provider
    passed_over: tuple[PassedOver, ...] = ()


def choose(settings: AgentSettings, rng: Random | None = None) -> Choice:
    """Choose without loading, starting or asking anything; what is missing becomes the reason.

    Args:
        settings: Of them, `provider` and `model` are looked at.
        rng: Source of jitter for the provider; None for one that differs from process to process.
    """
    if settings.provider == "none":
        return Choice(None, "provider = none")
    passed_over: list[PassedOver] = []
    for name in AUTO if settings.provider == "auto" else (settings.provider,):
        try:
            return Choice(_build(name, settings.model, rng or SystemRandom()), None, tuple(passed_over))
        except EmbedUnavailable as missing:
            passed_over.append(PassedOver(name, str(missing)))
    return Choice(None, "\n".join(each.reason for each in passed_over), tuple(passed_over))


def _build(name: Name, model: str, rng: Random) -> Provider:
    match name:
        case "local":
            return local.build(model, rng)
        case _:
            assert_never(name)
