"""Which agents a request means, and what its session may see of them; decided before anything is ranked or read."""

from collections.abc import Sequence
from unicodedata import normalize

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, ForeignSession, RunningAgent
from memd.config.settings import AgentSettings, IncludedMemory, PathMatch, Scope
from memd.domain_types import Kind, Source
from memd.errors import MemdError
from memd.runtime.profiling import timed_part
from memd_client import session_key
from memd_client.session_key import SessionKey

_CHAT_TYPES = {"direct": "direct", "dm": "direct", "group": "group", "channel": "channel", "room": "channel"}
# First words of a key that do not name a messenger: an ACP session may be bound to any thread, a global one
# holds all chats.
_ANY_MESSENGER = frozenset({"acp", "global", "unknown", "agent", "subagent", "thread", "topic", *_CHAT_TYPES})


class Denied(msgspec.Struct, frozen=True):
    """The session may not search this agent."""

    reason: str  # for the log: channel and chat type, never text of memory


class Granted(msgspec.Struct, frozen=True):
    """What the session may see."""

    kinds: frozenset[Kind]
    direct: bool  # a direct chat, or the owner without a session key
    included: frozenset[str] = frozenset()  # names of the included memories that it may see


Access = Denied | Granted


def decide_access(
    scope: Scope,
    key: SessionKey | None,
    *,
    agent: str,
    source: Source | None,
    sources: tuple[Source, ...],
    include: Sequence[IncludedMemory] = (),
) -> Access:
    """Decide what a request may see.

    A request without a key is the owner's. For one with a key, the first matching rule decides, else the
    default. Whatever the rules say, only the main session and direct chats may see MEMORY.md, USER.md and
    transcripts, and only requests without a key may see transcripts of group chats, because what was said in
    one conversation was not said to the others. A key of an unknown shape counts as shared, and a deny rule
    applies to it if it could belong to a conversation that the rule matches.

    Args:
        scope: The agent's rules.
        key: The caller's session key; None for the owner.
        agent: The agent that is asked.
        source: The source that the caller wants to search; None for all.
        sources: The agent's sources.
        include: Memories that the agent includes; shared conversations see only those with `in_groups`.
    """
    kinds = frozenset(kind for kind in Kind if kind.source in sources and source in (None, kind.source))
    if key is None:
        return Granted(kinds, direct=True, included=frozenset(one.name for one in include))
    if key.agent is not None and key.agent != agent:
        return Denied("the session belongs to another agent")
    if _action(scope, key) == "deny":
        return Denied(f"channel {key.channel or 'unknown'}, chat type {key.chat_type or 'unknown'}")
    if not key.is_owner_private:
        kinds -= {Kind.CURATED, Kind.SESSION}
    included = frozenset(one.name for one in include if one.in_groups or key.is_owner_private)
    return Granted(kinds - {Kind.SHARED_SESSION}, direct=key.is_owner_private, included=included)


def _action(scope: Scope, key: SessionKey) -> str:
    for rule in scope.rules:
        if _matches(rule.match, key) or (rule.action == "deny" and _could_match(rule.match, key)):
            return rule.action
    return scope.default


def _matches(wanted: PathMatch, key: SessionKey) -> bool:
    return (
        (wanted.channel is None or wanted.channel.lower() == key.channel)
        and (wanted.chat_type is None or wanted.chat_type == key.chat_type)
        and (wanted.key_prefix is None or _begins(key.rest, wanted.key_prefix.lower()))
        and (wanted.raw_key_prefix is None or _begins(key.raw.lower(), wanted.raw_key_prefix.lower()))
    )


def _begins(key: str, prefix: str) -> bool:
    """Return whether a key begins with a prefix; the prefix must end at a word boundary, unless it ends in `*` or `:`."""
    if prefix.endswith("*"):
        return key.startswith(prefix[:-1])
    if not prefix or prefix.endswith(":"):
        return key.startswith(prefix)
    return key == prefix or key.startswith(f"{prefix}:")


def _could_match(wanted: PathMatch, key: SessionKey) -> bool:
    """Return whether a key that cannot be parsed with certainty may belong to a conversation that a rule matches.

    Used for deny rules only: a misspelt key must not evade the rule that excludes its conversation.
    """
    is_certain = key.is_owner_private if key.channel is None else key.channel == _folded(key.channel)
    if is_certain:
        return False
    words = _words(key.raw)
    rest = _words(key.rest)
    chats = {_CHAT_TYPES[word] for word in rest if word in _CHAT_TYPES}
    return (
        (wanted.channel is None or not _names_itself(key) or _folded(wanted.channel) in rest)
        and (wanted.chat_type is None or not chats or wanted.chat_type in chats)
        and (wanted.key_prefix is None or _has_in_order(rest, _words(wanted.key_prefix)))
        and (wanted.raw_key_prefix is None or _has_in_order(words, _words(wanted.raw_key_prefix)))
    )


def _names_itself(key: SessionKey) -> bool:
    """Return whether the first word of a key says what kind of conversation it is, such as a messenger or ``hook``."""
    first = key.rest.partition(":")[0]
    return bool(first) and first == _folded(first) and first not in _ANY_MESSENGER


def _has_in_order(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether all wanted words occur in this order, with any words between them; the last may end in `*`."""
    rest = iter(words)
    return all(any(_is_word(word, one) for word in rest) for one in wanted)


def _is_word(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _words(key: str) -> list[str]:
    """Return the normalised words of a key, split at colons and whitespace."""
    return [word for part in key.split(":") for blank in part.split() if (word := _folded(blank))]


def _folded(word: str) -> str:
    """Normalise a word: NFKC, case-folded, without spaces and unprintable characters."""
    return "".join(one for one in normalize("NFKC", word).casefold() if one.isprintable() and one != " ")


log = structlog.get_logger()


class BadRequest(MemdError):
    """The request is invalid; the message says what to send instead."""


class DeniedSession(MemdError):
    """The session may not make this request."""


class AllowedAgent(msgspec.Struct, frozen=True):
    """An agent that a request means, with what the caller may see of it."""

    agent: RunningAgent
    granted: Granted


class Caller:
    """The sender of one request; parses its session key once."""

    def __init__(self, agents: Agents, raw_key: str | None) -> None:
        """Parse the session key of a request.

        Args:
            agents: All agents of the daemon.
            raw_key: The session key as the client sent it; None: the owner asks.
        """
        self._agents = agents
        self.key = None if raw_key is None else session_key.parse(raw_key)

    @property
    def is_private(self) -> bool:
        """Whether the caller is the owner, or a conversation that only the owner reads."""
        return self.key is None or self.key.is_owner_private

    async def agent(self, name: str | None, source: Source | None = None) -> AllowedAgent | None:
        """Return the agent that a request means, or None if this session may see nothing of it.

        Args:
            name: The agent named in the request, if any.
            source: The source to search; None: all.

        Raises:
            UnknownAgent, AgentUnavailable.
        """
        try:
            with timed_part("waiting for its agent"):
                agent = await self._agents.meant_by(name, self.key)
        except ForeignSession as foreign:
            log.info("scope.denied", agent=None, reason=str(foreign))
            return None
        except AgentUnavailable as unavailable:
            # A session without access must not learn that the agent has failed.
            if self._granted(unavailable.agent_id, unavailable.left_out.settings, source) is None:
                return None
            raise
        granted = self._granted(agent.id, agent.settings, source)
        return None if granted is None else AllowedAgent(agent, granted)

    def _granted(self, agent_id: str, settings: AgentSettings, source: Source | None) -> Granted | None:
        access = decide_access(
            settings.scope,
            self.key,
            agent=agent_id,
            source=source,
            sources=settings.sources,
            include=settings.include,
        )
        if isinstance(access, Denied):
            log.info("scope.denied", agent=agent_id, reason=access.reason)
            return None
        return access

    def means_all(self, name: str | None) -> bool:
        """Return whether a request means every agent: it is the owner's, and names no agent."""
        return name is None and self.key is None

    async def agents(self, name: str | None) -> list[RunningAgent]:
        """Return the running agents that a request means: the one it names, the session's own, or all.

        Raises:
            DeniedSession: the session may see nothing of it.
            UnknownAgent, AgentUnavailable.
        """
        if self.means_all(name):
            await self._agents.wait_until_unchanging()
            return list(self._agents.all().values())
        allowed = await self.agent(name)
        if allowed is None:
            raise DeniedSession("this session may not use this memory")
        return [allowed.agent]

    async def agents_to_change(self, name: str | None, denial: str) -> list[RunningAgent]:
        """Return the same as `agents`, for a request that changes something; the caller must be private.

        Args:
            name: The agent named in the request, if any.
            denial: The message for a session in a shared conversation.

        Raises:
            DeniedSession: the caller is not private.
            UnknownAgent, AgentUnavailable.
        """
        agents = await self.agents(name)
        if not agents:
            for agent_id, left_out in self._agents.left_out().items():
                raise AgentUnavailable(agent_id, left_out)
        if not self.is_private:
            raise DeniedSession(denial)
        return agents
