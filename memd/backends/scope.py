"""Who may see what: decided from the session key, before anything is ranked or read."""

import msgspec

from memd.config import Scope
from memd.model import Kind, Source
from memd_client import session_key


class Denied(msgspec.Struct, frozen=True):
    """This session may not search at all."""

    reason: str  # for the log: channel and chat type, never a text


class Granted(msgspec.Struct, frozen=True):
    """What this session may see."""

    kinds: frozenset[Kind]
    direct: bool  # a direct chat, or the owner without a key


Access = Denied | Granted


def access(
    scope: Scope, raw_key: str | None, *, agent: str, source: Source | None, sources: tuple[Source, ...]
) -> Access:
    """What a request may see.

    A request without a key is the owner's. With one, the first rule that matches decides, then the default. MEMORY.md,
    USER.md and transcripts are for the main session and direct chats, whatever the rules; a key of an unknown shape
    counts as shared. What was said in one conversation was not said to the others.

    Args:
        scope: The agent's rules.
        raw_key: As the caller gave it; None for the owner.
        agent: The agent that is asked.
        source: What the caller wants to search; None for all.
        sources: What the agent has.
    """
    kinds = frozenset(kind for kind in Kind if kind.source in sources and source in (None, kind.source))
    if raw_key is None:
        return Granted(kinds, direct=True)
    key = session_key.parse(raw_key)
    if key.agent is not None and key.agent != agent:
        return Denied("the session belongs to another agent")
    if _action(scope, key) == "deny":
        return Denied(f"channel {key.channel or 'unknown'}, chat type {key.chat_type or 'unknown'}")
    if not key.is_owner_private:
        kinds -= {Kind.CURATED, Kind.SESSION}
    return Granted(kinds, direct=key.is_owner_private)


def _action(scope: Scope, key: session_key.SessionKey) -> str:
    for rule in scope.rules:
        wanted = rule.match
        if (
            (wanted.channel is None or wanted.channel == key.channel)
            and (wanted.chat_type is None or wanted.chat_type == key.chat_type)
            and (wanted.key_prefix is None or key.rest.startswith(wanted.key_prefix.lower()))
            and (wanted.raw_key_prefix is None or key.raw.lower().startswith(wanted.raw_key_prefix.lower()))
        ):
            return rule.action
    return scope.default
