"""Decides when memory is written before a conversation is compacted, and provides the prompts for it.

Compaction replaces most of a conversation by a summary. A flush is one silent turn shortly before: the model
is asked to write what should last to today's note, and answers NO_REPLY. The constants are OpenClaw's.
"""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Literal

import msgspec

from memd_client.context.conversation import estimate_all
from memd_client.context.daily_note import local_day, note_path
from memd_client.context.no_reply import NO_REPLY
from memd_client.watermark import marked

RESERVE_FLOOR_TOKENS = 20_000  # kept free for the answer and for compaction itself
SOFT_THRESHOLD_TOKENS = 4_000  # a flush is due so many tokens before compaction
# From this size of the transcript on, a flush is due whatever its token count.
FORCE_TRANSCRIPT_BYTES = 2 << 20

# A window smaller than both together would never be flushed, so each may take only a share of it.
_RESERVE_SHARE = 0.25
_SOFT_SHARE = 0.5  # of what the reserve leaves

Reason = Literal["due", "below_threshold", "already_flushed", "read_only", "unknown_window"]


class FlushDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a flush is due, and the figures behind it."""

    due: bool
    reason: Reason
    used_tokens: int  # in the window now; estimated if no count was given
    threshold_tokens: int  # a flush is due from here on; 0: the window is unknown


def flush_threshold(
    window_tokens: int,
    *,
    reserve_tokens: int = RESERVE_FLOOR_TOKENS,
    soft_tokens: int = SOFT_THRESHOLD_TOKENS,
) -> int:
    """Return the number of tokens from which on a flush is due.

    ``window - reserve - soft``, with ``reserve <= window / 4`` and ``soft <= (window - reserve) / 2``, as
    OpenClaw does since 2026.9: 176,000 of 200,000, and 20,576 of 32,768.
    """
    reserve = min(max(0, reserve_tokens), int(window_tokens * _RESERVE_SHARE))
    soft = min(max(0, soft_tokens), int((window_tokens - reserve) * _SOFT_SHARE))
    return max(0, window_tokens - reserve - soft)


def should_flush(
    *,
    window_tokens: int,
    used_tokens: int | None,
    unreported: Iterable[str] = (),
    compactions: int = 0,
    flushed_at: int | None = None,
    is_writable: bool = True,
    transcript_bytes: int = 0,
    reserve_tokens: int = RESERVE_FLOOR_TOKENS,
    soft_tokens: int = SOFT_THRESHOLD_TOKENS,
) -> FlushDecision:
    """Decide whether the model should be asked to write memory now.

    Args:
        window_tokens: The model's context window.
        used_tokens: The provider's last count of tokens in it; None (or 0) if unknown.
        unreported: Texts that this count does not include: what was said since, or without a count the whole
            conversation with the system prompt. They are estimated.
        compactions: How often this conversation was compacted.
        flushed_at: The value of ``compactions`` at the last flush; None before the first. There is one flush
            between two compactions. Store it only after a successful flush, so that a failed one is repeated.
        is_writable: Whether the agent may write to its workspace; otherwise a flush is a wasted turn.
        transcript_bytes: Size of the transcript on disk; from FORCE_TRANSCRIPT_BYTES on, a flush is due.
        reserve_tokens: Tokens that compaction keeps free.
        soft_tokens: How many tokens before compaction a flush is due.
    """
    threshold = flush_threshold(window_tokens, reserve_tokens=reserve_tokens, soft_tokens=soft_tokens)
    used = max(0, used_tokens or 0) + estimate_all(unreported)
    reason: Reason
    if not is_writable:
        reason = "read_only"
    elif flushed_at is not None and flushed_at == compactions:
        reason = "already_flushed"
    elif transcript_bytes >= FORCE_TRANSCRIPT_BYTES:
        reason = "due"
    elif threshold <= 0:
        reason = "unknown_window"
    else:
        reason = "due" if used >= threshold else "below_threshold"
    return FlushDecision(
        due=reason == "due", reason=reason, used_tokens=used, threshold_tokens=max(0, threshold)
    )


def flush_prompt(now: datetime, zone: tzinfo) -> str:
    """Return the user message of the silent turn, in a marked block (memd_client.watermark).

    Args:
        now: The time, with its time zone.
        zone: The user's time zone: at half past midnight in Shanghai the note is not yesterday's.

    Raises:
        ValueError: now has no time zone.
    """
    note = note_path(local_day(now, zone))
    return marked(
        "This conversation is about to be compacted: its details will be lost.\n"
        f"Write down now what should outlast it, in {note} (create memory/ if it is not there).\n"
        f"- Append to {note}. Never overwrite it, never repeat what it already says, and use no other file name.\n"
        "- Worth keeping: decisions with their reason, facts, preferences, names, open tasks, agreed next steps.\n"
        "- MEMORY.md, AGENTS.md, SOUL.md and the other workspace files are read-only in this turn.\n"
        f"Then answer with {NO_REPLY} alone. If nothing is worth keeping, answer {NO_REPLY} at once.\n"
        f"Current time: {now.astimezone(zone).isoformat(timespec='minutes')}",
        "flush",
    )


def flush_system_prompt() -> str:
    """Return the addition to the system prompt of the silent turn."""
    return (
        "This turn is for saving memory before compaction. The user does not see it. "
        f"Save what should last, then answer with {NO_REPLY} and nothing else."
    )
