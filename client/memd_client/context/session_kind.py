"""Which kind of session a session key names, as far as its system prompt depends on it."""

from typing import Literal

from memd_client.session_key import parse

SessionKind = Literal["main", "direct", "group", "channel", "subagent", "cron", "unknown"]


def session_kind(session_key: str | None) -> SessionKind:
    """The kind of session that a key names.

    A helper is one whoever it works for, since it gets less than all others. A key that does not show, word by word,
    that only the owner reads along is "group", "channel" or "unknown", and those are all shared with others.

    Args:
        session_key: As the agent has it; None: no conversation but the owner's own, which is "main".
    """
    if session_key is None:
        return "main"
    key = parse(session_key)
    words = key.rest.split(":")
    if "subagent" in words:
        return "subagent"
    match key.chat_type:
        case "group" | "channel":
            return key.chat_type
        case None:
            return "unknown"
        case "direct" if words[0] == "cron":
            return "cron"
        case "direct" if words[0] in {"main", "dashboard", "explicit"}:
            return "main"
        case "direct":
            return "direct"
