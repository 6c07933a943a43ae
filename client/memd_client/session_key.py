"""Parses session keys.

An agent names each conversation by a key such as ``agent:main:telegram:direct:4711``. The key decides which
agent's memory is meant, and whether only the owner reads the conversation. A key counts as private only if
its form says so word by word; any other counts as shared, since a mistake in that direction costs a hit,
while one in the other direction shows a group what is in MEMORY.md.
"""

from dataclasses import dataclass
from typing import Literal

ChatType = Literal["direct", "group", "channel"]

_LONGEST = 1024  # characters; real keys have fewer than 200
_LONGEST_AGENT = 64

# First words that are not a messenger. A hook is called from outside, an ACP session may be bound to a thread
# of a group, and a global one contains all chats at once: these three are never private, and as their ids are
# arbitrary, no later word of theirs may be read as a direct message.
_NO_MESSENGERS = frozenset(
    {"main", "cron", "dashboard", "explicit", "hook", "acp", "global", "unknown", "agent"}
)

_CHATS = frozenset({"direct", "dm", "group", "channel", "room"})


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A parsed session key.

    Attributes:
        raw: The key as given.
        agent: The agent that it names, unchanged, even if no such agent can exist; None if it names none.
        rest: What follows ``agent:<id>:``, or the whole key without that prefix; lower case.
        channel: The messenger: telegram, slack, ...; None if the key has none, or it is uncertain.
        chat_type: Who reads the conversation. "direct": the owner, or one peer of a direct message. "group",
            "channel": others. None: unknown, so anybody might.
    """

    raw: str
    agent: str | None
    rest: str
    channel: str | None
    chat_type: ChatType | None

    @property
    def is_owner_private(self) -> bool:
        """Whether this conversation may see MEMORY.md and USER.md."""
        return self.chat_type == "direct"


def parse(raw: str) -> SessionKey:
    """Parse a session key. Every string is a key; one of an unknown form counts as shared."""
    agent, rest, is_sound = _split(raw)
    parts = rest.split(":")
    if is_sound and len(raw) <= _LONGEST and _is_plain(raw) and all(parts):
        channel, chat_type = _classify(parts)
    else:
        channel, chat_type = None, _shared_word(parts)
    return SessionKey(raw, agent, rest.lower(), channel, chat_type)


def _split(raw: str) -> tuple[str | None, str, bool]:
    """Return the agent, the rest of the key, and whether the key can be trusted so far."""
    word, _, named = raw.partition(":")
    # A misspelt prefix must not count as no agent: the request would be answered for another one.
    if "".join(filter(str.isalnum, word)).lower() != "agent" or ":" not in raw:
        return None, raw, True
    agent, _, rest = named.partition(":")
    is_sound = word == "agent" and 0 < len(agent) <= _LONGEST_AGENT and _is_plain(agent)
    return agent, rest, is_sound


def _is_plain(text: str) -> bool:
    return text.isprintable() and " " not in text


def _classify(parts: list[str]) -> tuple[str | None, ChatType | None]:
    """Return messenger and chat type of a well-formed key."""
    if "subagent" in parts:
        # A subagent works for the conversation that started it, and sees what that may see, if the key names
        # it.
        place = parts.index("subagent")
        word = _shared_word(parts[place:])
        return (None, word) if word else _classify(parts[:place])
    if (private := _find_private(parts)) and not _shared_word(private[1]):
        return private[0], "direct"
    return _find_messenger([part.lower() for part in parts]), _shared_word(parts)


def _find_private(parts: list[str]) -> tuple[str | None, list[str]] | None:
    """Return the messenger of a private key, and the words that may still make it shared; None if it is not private.

    Words count by their position, and only in lower case. The word after "direct" is the peer, who may have
    any name, even "group"; no other word may name a shared conversation.
    """
    match parts:
        # The owner wrote the job, opened the dashboard, or named the session on the command line.
        case ["main"] | ["main", "thread", _, *_] | ["cron" | "dashboard" | "explicit", _, *_]:
            return None, parts[1:]
        case [head, *_] if head in _NO_MESSENGERS or head != head.lower():
            return None
        # Without a messenger in front, the peer's name could as well be a chat type.
        case ["direct" | "dm", _, *_]:
            return None, parts[1:]
        case [messenger, "direct" | "dm", _, *after]:
            return messenger, [messenger, *after]
        # If the messenger has several accounts, the account is in between.
        case [messenger, account, "direct" | "dm", _, *after]:
            return messenger, [messenger, account, *after]
        case _:
            return None


def _find_messenger(parts: list[str]) -> str | None:
    """Return the messenger of a key that is not private: the word before the chat type."""
    match parts:
        case [head, "group" | "channel" | "room", *_] if head not in _NO_MESSENGERS | _CHATS:
            return head
        case _:
            return None


def _shared_word(parts: list[str]) -> ChatType | None:
    """Return the chat type of the first word that names a shared conversation; None if there is none."""
    for part in parts:
        match part.lower():
            case "group":
                return "group"
            case "channel" | "room":
                return "channel"
            case _:
                pass
    return None
