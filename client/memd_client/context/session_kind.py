"""Determines the kind of a session from its key, on which the system prompt depends."""

from typing import Literal

from memd_client.session_key import parse

SessionKind = Literal["main", "direct", "group", "channel", "subagent", "cron", "unknown"]


def session_kind(session_key: str | None) -> SessionKind:
    """Return the kind of session that a key names.

    A subagent counts as one whatever session it works for, since it gets less than all others. A key that does not prove
    that only the owner reads the conversation is "group", "channel" or "unknown", all of which count as shared.

    Args:
        session_key: The agent's key of the session; None: the owner's own session, "main".
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
