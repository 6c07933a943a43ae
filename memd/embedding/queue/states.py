"""Whether anything of an agent is embedded, and if not, why. Pure."""

import msgspec

from memd.embedding.health_state import Healthy, Refusing, RequestHealth, Retrying


class Paused(msgspec.Struct, frozen=True):
    """A person wants nothing of the agent to be embedded."""


BURST_S = 600.0  # after so long without any being sent, texts that went out before do not count any more


class WaitingForConfirmation(msgspec.Struct, frozen=True):
    """There is more to embed than a person wants to pay for unasked."""

    chunks: int  # texts, each counted once, that are not cached
    tokens: int  # estimated
    # Texts that went out just before, where it is only more than a person wants with them; see BURST_S.
    sent: int = 0


State = RequestHealth | Paused | WaitingForConfirmation
"""The state of an agent at a provider, or of the store that takes its vectors."""


def in_words(state: State, agent: str) -> str | None:
    """Why nothing of an agent is embedded, and what to do about it; None: nothing is in the way."""
    match state:
        case Healthy():
            return None
        case Retrying():
            return state.reason
        case Refusing():
            return (
                f"{state.reason}. It is not asked again until the key or the configuration changes;"
                f" `memd-ctl embed resume --agent {agent}` tries now"
            )
        case Paused():
            return f"embedding is paused; `memd-ctl embed resume --agent {agent}` goes on"
        case WaitingForConfirmation():
            before = f" after {state.sent:,} just before" if state.sent else ""
            until = f"for {BURST_S / 60:g} minutes, or until" if state.sent else "until"
            return (
                f"{state.chunks:,} chunks, about {state.tokens:,} tokens, would be sent to the provider{before}, more than"
                f" remote.confirm_above_chunks; nothing is sent {until}"
                f" `memd-ctl embed confirm --agent {agent}`"
            )
