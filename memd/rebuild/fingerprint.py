"""The fingerprint of the index that an agent's settings ask for."""

import msgspec

from memd.config.settings import AgentSettings
from memd.providers.provider import Identity
from memd.redact.rule import rules_key
from memd.sources.transcripts.format import VERSION
from memd.store.meta import CHUNKING, TOKENIZER, TURNS, Fingerprint


def wanted_fingerprint(settings: AgentSettings, identity: Identity | None) -> Fingerprint:
    """Return the fingerprint of an index that fits the settings and the provider.

    Args:
        settings: The agent's settings.
        identity: The identity of its embedding provider; None if there is none.
    """
    redact = settings.redact
    text_part = Fingerprint(
        chunking=f"{CHUNKING}: {settings.chunking.tokens}/{settings.chunking.overlap} tokens,"
        f" {settings.chunking.max_chars} characters",
        tokenizer=str(TOKENIZER),
        sources=tuple(sorted(settings.sources)),
        redaction=rules_key(redact) if redact.mode == "all" else "",
        sessions=_sessions(settings) if "sessions" in settings.sources else "",
    )
    if identity is None:
        return text_part
    return msgspec.structs.replace(
        text_part,
        provider=identity.provider,
        model=identity.model,
        key=identity.key,
        dimensions=identity.dimensions,
        parts=embeds_parts(settings, identity.provider),
    )


def embeds_parts(settings: AgentSettings, provider: str) -> bool:
    """Return whether parts of chunks are embedded, too; "auto" does so only locally, as it doubles the tokens to pay for."""
    return settings.chunking.parts == "on" or (settings.chunking.parts == "auto" and provider == "local")


def _sessions(settings: AgentSettings) -> str:
    redacted = "nothing" if settings.redact.mode == "off" else rules_key(settings.redact)
    subagents = "with" if settings.sessions.subagents else "without"
    zone = f", times of {settings.timezone}" if settings.timezone else ""
    return f"{VERSION}.{TURNS}, {subagents} subagents, redacted: {redacted}{zone}"
