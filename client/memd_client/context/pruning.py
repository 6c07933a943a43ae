"""Shortens old tool results in what is sent to a model; the transcript keeps them whole.

A provider's prompt cache expires when there is no request for a while (its TTL). The next request pays for
the whole prompt again, so that is the moment to make it shorter. In between nothing may change, or the cache
is lost: what was shortened once is shortened in the same way in each later request. This is recorded in a
Record, which the agent stores with the session. The steps and constants are those of OpenClaw's ``cache-ttl``
mode.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from memd_client.context.conversation import Message, quarters
from memd_client.context.truncate import head, tail

Verdict = Literal["trim", "clear"]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How tool results are shortened. Shares are of the context window."""

    ttl_s: float = 300.0  # how long the provider's cache lives without a request
    # Nothing from the third last assistant message on is changed; 0: everything may be.
    keep_assistants: int = 3
    trim_share: float = 0.3  # from this use on, long results lose their middle
    clear_share: float = 0.5  # from this use on, whole results are cleared, oldest first, until less is used
    clear_from_chars: int = 50_000  # only if results that may be cleared have at least so many characters
    longest_chars: int = 4_000  # longer results lose their middle
    head_chars: int = 1_500  # kept of the beginning
    tail_chars: int = 1_500  # kept of the end
    clears: bool = True
    placeholder: str = "[Old tool result content cleared]"
    keep_images: int = 3  # so many of the last results with images are never cleared
    allow: tuple[str, ...] = ()  # tool names, case-insensitive, * for any text; empty: all tools
    deny: tuple[str, ...] = ()  # tools whose results are never shortened, even if allowed


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What was shortened in a session so far. It can be stored with msgspec.json.encode."""

    verdicts: dict[str, Verdict] = {}  # by id of the call and digest of the result
    asked_at: float | None = None  # time of the last request, in seconds; None: unknown


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The messages to send, and the record for the next request."""

    messages: tuple[Message, ...]  # as many as the input; unchanged ones are the same objects
    record: Record
    trimmed: int  # number of results that lost their middle
    cleared: int  # number of results that were cleared


def prune(
    messages: Sequence[Message],
    *,
    window_tokens: int,
    record: Record,
    now_s: float,
    rules: Rules = Rules(),  # noqa: B008  frozen
) -> Pruned:
    """Shorten tool results for one request.

    The same messages and record give the same result until the cache expires. The input is not changed. The
    caller has to know whether the provider caches at all.

    Args:
        messages: The whole conversation, oldest first.
        window_tokens: The model's context window; 0: unknown, and nothing more is shortened.
        record: The result of the last call, or Record() in a new session.
        now_s: The time in seconds, on the clock of record.asked_at.
        rules: How results are shortened.
    """
    # After a compaction, the verdict on a result that is gone could match a new one, so only keys that occur
    # are kept.
    keys = _keys(messages)
    known = {
        keys[at]: verdict
        for at in _open_to_pruning(messages, rules)
        if (verdict := record.verdicts.get(keys[at]))
    }
    verdicts = known
    if record.asked_at is not None and now_s - record.asked_at >= rules.ttl_s:
        verdicts = decide(messages, window_tokens=window_tokens, rules=rules, earlier=known)
    return Pruned(
        messages=shortened(messages, verdicts, rules),
        record=Record(verdicts=verdicts, asked_at=now_s),
        trimmed=sum(verdict == "trim" for verdict in verdicts.values()),
        cleared=sum(verdict == "clear" for verdict in verdicts.values()),
    )


def decide(
    messages: Sequence[Message],
    *,
    window_tokens: int,
    rules: Rules = Rules(),  # noqa: B008  frozen
    earlier: Mapping[str, Verdict] | None = None,
) -> dict[str, Verdict]:
    """Decide which results lose their middle, and which are cleared.

    The size of everything (characters; a Chinese one counts as four, an image as 8,000) is compared with ``4
    * window_tokens``. From trim_share on, each result over longest_chars loses its middle. If clear_share is
    still reached, and the results that may be cleared have clear_from_chars, results are cleared, oldest
    first, until less is used. Messages before the first of the user, where an agent reads its workspace, and
    those from the third last assistant message on are never changed.

    Returns:
        Verdicts by key, as in Record: the earlier ones, which remain, and the new ones.
    """
    verdicts = dict(earlier or {})
    window = 4 * window_tokens
    keys = _keys(messages)
    may_go = [at for at in _open_to_pruning(messages, rules) if verdicts.get(keys[at]) != "clear"]
    if window <= 0 or not may_go:
        return verdicts
    sizes = [quarters(message) for message in shortened(messages, verdicts, rules)]
    if sum(sizes) < rules.trim_share * window:
        return verdicts
    for at in may_go:
        if keys[at] not in verdicts and (trimmed := _trimmed(messages[at], rules)) is not messages[at]:
            verdicts[keys[at]] = "trim"
            sizes[at] = quarters(trimmed)
    used = sum(sizes)
    if not rules.clears or used < rules.clear_share * window:
        return verdicts
    may_go = _without_last_images(messages, may_go, rules.keep_images)
    if sum(sizes[at] for at in may_go) < rules.clear_from_chars:
        return verdicts
    for at in may_go:
        if used < rules.clear_share * window:
            break
        left = quarters(_cleared(messages[at], rules))
        if left < sizes[at]:
            used -= sizes[at] - left
            verdicts[keys[at]] = "clear"
    return verdicts


def shortened(
    messages: Sequence[Message], verdicts: Mapping[str, Verdict], rules: Rules
) -> tuple[Message, ...]:
    """Return the messages with the verdicts applied."""
    return tuple(
        _carried_out(message, verdicts.get(key), rules)
        for message, key in zip(messages, _keys(messages), strict=True)
    )


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in which ``*`` stands for any text; case-insensitive."""
    first, *rest = pattern.lower().split("*")
    name = name.lower()
    if not rest:
        return name == first
    *middle, last = rest
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in middle:
        if (found := name.find(piece, at, end)) < 0:
            return False
        at = found + len(piece)
    return True


def _carried_out(message: Message, verdict: Verdict | None, rules: Rules) -> Message:
    if message.role != "tool":
        return message
    match verdict:
        case "trim":
            return _trimmed(message, rules)
        case "clear":
            return _cleared(message, rules)
        case None:
            return message


def _trimmed(message: Message, rules: Rules) -> Message:
    """Return a result without its middle; the same object if that is not worthwhile, or if it contains images."""
    text = message.text
    if message.images or len(text) <= rules.longest_chars:
        return message
    start, end = max(0, rules.head_chars), max(0, rules.tail_chars)
    short = (
        f"{head(text, start)}\n...\n{tail(text, end)}\n\n"
        f"[Tool result trimmed: kept first {start} chars and last {end} chars of {len(text)} chars.]"
    )
    return msgspec.structs.replace(message, text=short) if len(short) < len(text) else message


def _cleared(message: Message, rules: Rules) -> Message:
    return msgspec.structs.replace(message, text=rules.placeholder, images=0)


def _open_to_pruning(messages: Sequence[Message], rules: Rules) -> list[int]:
    """Return the indexes of the results that may be shortened, oldest first."""
    first_user = next((at for at, message in enumerate(messages) if message.role == "user"), len(messages))
    assistants = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if rules.keep_assistants <= 0:
        end = len(messages)
    elif len(assistants) < rules.keep_assistants:
        end = 0
    else:
        end = assistants[-rules.keep_assistants]
    return [
        at
        for at in range(first_user, end)
        if messages[at].role == "tool" and _is_prunable(messages[at].tool, rules)
    ]


def _is_prunable(tool: str | None, rules: Rules) -> bool:
    name = tool or ""
    if _any_matches(rules.deny, name):
        return False
    return not rules.allow or _any_matches(rules.allow, name)


def _any_matches(patterns: Iterable[str], name: str) -> bool:
    return any(matches(pattern.strip(), name) for pattern in patterns)


def _without_last_images(messages: Sequence[Message], places: list[int], keep: int) -> list[int]:
    with_images = [at for at, message in enumerate(messages) if message.role == "tool" and message.images]
    kept = frozenset(with_images[-keep:] if keep > 0 else [])
    return [at for at in places if at not in kept]


def _keys(messages: Sequence[Message]) -> list[str]:
    """Return a key for each message that stays the same while the conversation grows, and matches no other after it shrinks.

    The id of the call is not enough: some providers give none, and some start again with each turn.
    """
    taken: Counter[str] = Counter()
    keys: list[str] = []
    for message in messages:
        if message.role != "tool":
            keys.append("")
            continue
        content = f"{message.tool}\0{message.images}\0{message.text}".encode("utf-8", "replace")
        key = f"{message.call or ''}#{hashlib.blake2b(content, digest_size=8).hexdigest()}"
        taken[key] += 1
        keys.append(key if taken[key] == 1 else f"{key}#{taken[key]}")
    return keys
