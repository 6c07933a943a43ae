"""How a provider, and one agent at it, stand: states that say whether anything is embedded, and if not, why. Pure."""

import msgspec

LONGEST_ASKED_S = (
    3600.0  # a provider that asks for a longer wait is asked again all the same, as batch jobs are
)


class Working(msgspec.Struct, frozen=True):
    """All is well, whether or not anything waits."""


class BackingOff(msgspec.Struct, frozen=True):
    """The provider does not answer, or an agent's store does not take; it is tried again by itself."""

    since: float  # of the clock: the first failure in a row
    until: float  # of the clock: the next attempt
    failures: int  # in a row
    reason: str
    at: float = 0.0  # of the clock: the last failure


class Stopped(msgspec.Struct, frozen=True):
    """The provider refuses: it is not asked until the key or the configuration changes, or a person says so."""

    at: float  # of the clock
    reason: str


class Paused(msgspec.Struct, frozen=True):
    """A person wants nothing of the agent to be embedded."""


BURST_S = 600.0  # after so long without any being sent, texts that went out before do not count any more


class WaitingForConfirmation(msgspec.Struct, frozen=True):
    """There is more to embed than a person wants to pay for unasked."""

    chunks: int  # texts, each counted once, that are not cached
    tokens: int  # estimated
    sent: int = (
        0  # texts that went out just before, where it is only more than a person wants with them; see BURST_S
    )


Provided = Working | BackingOff | Stopped
"""How a provider stands."""

State = Provided | Paused | WaitingForConfirmation
"""How an agent stands at it."""


def failed(
    before: Provided, reason: str, *, began: float, now: float, wait_s: float, retry_after_s: float | None
) -> Provided:
    """The standing after a request that had no answer.

    Args:
        before: How it stood.
        reason: Why.
        began: When that request was sent. Those that were under way together fail together: that counts once.
        now: Of the same clock.
        wait_s: The backoff after so many failures in a row.
        retry_after_s: What the provider asked for, if it did. One huge number must not end embedding for years.
    """
    if isinstance(before, Stopped):
        return before
    asked_s = min(retry_after_s or 0.0, LONGEST_ASKED_S)
    until = now + max(wait_s, asked_s)
    if not isinstance(before, BackingOff):
        return BackingOff(now, until, 1, reason, now)
    if began < before.at:
        return msgspec.structs.replace(before, until=max(before.until, now + asked_s if asked_s else 0.0))
    return BackingOff(before.since, until, before.failures + 1, reason, now)


def failures_after(before: Provided) -> int:
    """How many failures in a row one more would make."""
    return before.failures + 1 if isinstance(before, BackingOff) else 1


def in_words(state: State, agent: str) -> str | None:
    """Why nothing of an agent is embedded, and what to do about it; None: nothing is in the way."""
    match state:
        case Working():
            return None
        case BackingOff():
            return state.reason
        case Stopped():
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
