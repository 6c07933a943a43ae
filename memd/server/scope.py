"""Who sends a request, which agents it means, and what it may see of them: decided before anything is ranked or read."""

from collections.abc import Sequence
from unicodedata import normalize

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, ForeignSession, RunningAgent
from memd.config.settings import AgentSettings, IncludedMemory, PathMatch, Scope
from memd.domain_types import Kind, Source
from memd.errors import MemdError
from memd.runtime.profiling import spent
from memd_client import session_key
from memd_client.session_key import SessionKey

_CHAT_TYPES = {"direct": "direct", "dm": "direct", "group": "group", "channel": "channel", "room": "channel"}
# First words that leave the messenger open: an ACP session may be bound to any thread, a global one holds all chats.
_ANY_MESSENGER = frozenset({"acp", "global", "unknown", "agent", "subagent", "thread", "topic", *_CHAT_TYPES})


class Denied(msgspec.Struct, frozen=True):
    """This session may not search at all."""

    reason: str  # for the log: channel and chat type, never a text


class Granted(msgspec.Struct, frozen=True):
    """What this session may see."""

    kinds: frozenset[Kind]
    direct: bool  # a direct chat, or the owner without a key
    included: frozenset[str] = frozenset()  # names of the memories that the agent includes


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
    """What a request may see.

    A request without a key is the owner's. With one, the first rule that matches decides, then the default. MEMORY.md,
    USER.md and transcripts are for the main session and direct chats, whatever the rules; a key of an unknown shape
    counts as shared, and a deny rule holds for it wherever it may belong to a conversation that the rule means. What was said
    in one conversation was not said to the others, so what was said in a group is for requests without a key alone.

    Args:
        scope: The agent's rules.
        key: Of the caller; None for the owner.
        agent: The agent that is asked.
        source: What the caller wants to search; None for all.
        sources: What the agent has.
        include: Memories of others that it includes: for conversations that nobody else reads along, or where it is said.
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
    """Whether a key begins with a prefix, whose last word is a whole one unless a star or a colon follows it."""
    if prefix.endswith("*"):
        return key.startswith(prefix[:-1])
    if not prefix or prefix.endswith(":"):
        return key.startswith(prefix)
    return key == prefix or key.startswith(f"{prefix}:")


def _could_match(wanted: PathMatch, key: SessionKey) -> bool:
    """Whether a key that cannot be read with certainty may belong to a conversation that a rule means.

    Only deny rules ask: a key that was misspelt must not lead around the rule that keeps its conversation out.
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
    """Whether a key begins with a word that tells what kind of conversation it names, such as a messenger or ``hook``."""
    first = key.rest.partition(":")[0]
    return bool(first) and first == _folded(first) and first not in _ANY_MESSENGER


def _has_in_order(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all wanted words are there in their order, whatever stands between; the last may end in a star."""
    rest = iter(words)
    return all(any(_is_word(word, one) for word in rest) for one in wanted)


def _is_word(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _words(key: str) -> list[str]:
    """The words of a key as a reader sees them, divided by colons and by blanks."""
    return [word for part in key.split(":") for blank in part.split() if (word := _folded(blank))]


def _folded(word: str) -> str:
    """A word in one letter case and one form, without what does not show."""
    return "".join(one for one in normalize("NFKC", word).casefold() if one.isprintable() and one != " ")


log = structlog.get_logger()


class BadRequest(MemdError):
    """The request makes no sense; the message says what to send instead."""


class DeniedSession(MemdError):
    """This session may not have what it asks for."""


class AllowedAgent(msgspec.Struct, frozen=True):
    """An agent that a request means, and what the caller may see of it."""

    agent: RunningAgent
    granted: Granted


class Caller:
    """The session that one request comes from; its key is parsed here, once."""

    def __init__(self, agents: Agents, raw_key: str | None) -> None:
        """Parse the session key of a request.

        Args:
            agents: All agents of the daemon.
            raw_key: As the client gave it; None: the owner asks.
        """
        self._agents = agents
        self.key = None if raw_key is None else session_key.parse(raw_key)

    @property
    def is_private(self) -> bool:
        """Whether the owner asks, or a conversation that nobody else reads along."""
        return self.key is None or self.key.is_owner_private

    async def agent(self, name: str | None, source: Source | None = None) -> AllowedAgent | None:
        """The agent that a request means; None: this session may see nothing of it.

        Args:
            name: The agent that the request names; None: it names none.
            source: What it wants to search; None: every source.

        Raises:
            UnknownAgent, AgentUnavailable.
        """
        try:
            with spent("waiting for its agent"):
                agent = await self._agents.meant_by(name, self.key)
        except ForeignSession as foreign:
            log.info("scope.denied", agent=None, reason=str(foreign))
            return None
        except AgentUnavailable as unavailable:
            # Who may not ask is not told that there is no answer either.
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
        """Whether a request means every agent: the owner's, without a name."""
        return name is None and self.key is None

    async def agents(self, name: str | None) -> list[RunningAgent]:
        """The running agents that a request means: the one it names, the session's own, or all.

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
        """The same, for a request that changes something: only the owner may send it, and an agent must run.

        Args:
            name: The agent that the request names; None: it names none.
            denial: What a session hears whose conversation others read along.

        Raises:
            DeniedSession: the session may not.
            UnknownAgent, AgentUnavailable.
        """
        agents = await self.agents(name)
        if not agents:
            for agent_id, left_out in self._agents.left_out().items():
                raise AgentUnavailable(agent_id, left_out)
        if not self.is_private:
            raise DeniedSession(denial)
        return agents
