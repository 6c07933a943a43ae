"""What a session key says about the conversation it names.

An agent names each conversation by a key such as ``agent:main:telegram:direct:4711``. The key decides which
agent's memory is meant, and whether only the owner can read along. A key is trusted to be private when its
shape says so word by word; whatever else it looks like, it counts as shared, since a mistake in that
direction costs a hit and a mistake in the other one tells a group what is in MEMORY.md.
"""

from dataclasses import dataclass
from typing import Literal

ChatType = Literal["direct", "group", "channel"]

_LONGEST = 1024  # characters; real keys have fewer than 200
_LONGEST_AGENT = 64

# What the first word may be instead of a messenger. A hook is called from outside, an ACP session may be
# bound to a thread of a group, and a global one holds all chats at once: those three are never private, and
# since their ids are anything, no later word of theirs may be read as a direct message.
_NO_MESSENGERS = frozenset(
    {"main", "cron", "dashboard", "explicit", "hook", "acp", "global", "unknown", "agent"}
)

_CHATS = frozenset({"direct", "dm", "group", "channel", "room"})


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session key, taken apart.

    Attributes:
        raw: The key as it came.
        agent: The agent it names, letter for letter, be it one that cannot exist; None where it names none.
        rest: What follows ``agent:<id>:``, or the whole key without that prefix; lower case.
        channel: The messenger: telegram, slack, ...; None where the key has none, or is too odd to be sure.
        chat_type: Who reads along. "direct": the owner, or one peer of a direct message. "group", "channel":
            others. None: the key does not tell, so anybody might.
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
    """Take a session key apart. Every string is a key; one that makes no sense is a shared one."""
    agent, rest, is_sound = _split(raw)
    parts = rest.split(":")
    if is_sound and len(raw) <= _LONGEST and _is_plain(raw) and all(parts):
        channel, chat_type = _classify(parts)
    else:
        channel, chat_type = None, _shared_word(parts)
    return SessionKey(raw, agent, rest.lower(), channel, chat_type)


def _split(raw: str) -> tuple[str | None, str, bool]:
    """The agent, what follows it, and whether the key is fit to be trusted so far."""
    word, _, named = raw.partition(":")
    # Whom a misspelt key names must not be taken for nobody: it would then be answered for another agent.
    if "".join(filter(str.isalnum, word)).lower() != "agent" or ":" not in raw:
        return None, raw, True
    agent, _, rest = named.partition(":")
    is_sound = word == "agent" and 0 < len(agent) <= _LONGEST_AGENT and _is_plain(agent)
    return agent, rest, is_sound


def _is_plain(text: str) -> bool:
    return text.isprintable() and " " not in text


def _classify(parts: list[str]) -> tuple[str | None, ChatType | None]:
    """Messenger and chat type of a well-formed key."""
    if "subagent" in parts:
        # A helper works for whoever asked. It sees what that conversation sees, if the key shows which it is.
        place = parts.index("subagent")
        word = _shared_word(parts[place:])
        return (None, word) if word else _classify(parts[:place])
    if (private := _find_private(parts)) and not _shared_word(private[1]):
        return private[0], "direct"
    return _find_messenger([part.lower() for part in parts]), _shared_word(parts)


def _find_private(parts: list[str]) -> tuple[str | None, list[str]] | None:
    """The messenger of a private shape, with the words that may yet cast doubt on it; None for any other.

    A word counts by its place, and in lower case, as it is written. After the word "direct" stands the peer,
    who may be called anything, even "group"; no other word of the key may name a shared conversation.
    """
    match parts:
        # The owner wrote the job, opened the dashboard, or named the session on their own command line.
        case ["main"] | ["main", "thread", _, *_] | ["cron" | "dashboard" | "explicit", _, *_]:
            return None, parts[1:]
        case [head, *_] if head in _NO_MESSENGERS or head != head.lower():
            return None
        # Without a messenger in front, the peer could as well be the type of the chat.
        case ["direct" | "dm", _, *_]:
            return None, parts[1:]
        case [messenger, "direct" | "dm", _, *after]:
            return messenger, [messenger, *after]
        # Where the messenger has several accounts, the account stands between.
        case [messenger, account, "direct" | "dm", _, *after]:
            return messenger, [messenger, account, *after]
        case _:
            return None


def _find_messenger(parts: list[str]) -> str | None:
    """The messenger of a shape that is not private: what stands before the type of the chat."""
    match parts:
        case [head, "group" | "channel" | "room", *_] if head not in _NO_MESSENGERS | _CHATS:
            return head
        case _:
            return None


def _shared_word(parts: list[str]) -> ChatType | None:
    """The chat type that the first word of a shared conversation names; None without such a word."""
    for part in parts:
        match part.lower():
            case "group":
                return "group"
            case "channel" | "room":
                return "channel"
            case _:
                pass
    return None
