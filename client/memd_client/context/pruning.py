"""Old results of tools, shortened in what is sent to a model; the transcript keeps them whole.

A provider that caches prompts forgets them when nobody asked for a while (its TTL). The next request pays for the whole
prompt again, so that is the moment to make it shorter. In between nothing may change, or the cache is lost: what was
shortened once is shortened in the same way in each later request. That is kept in a Record, which the agent stores with
the session. The steps and constants are those of OpenClaw's ``cache-ttl`` mode.
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
    """How results of tools are shortened. Shares are of the context window."""

    ttl_s: float = 300.0  # how long the provider's cache lives without a request
    keep_assistants: int = 3  # nothing from the third last turn of the assistant on is touched; 0: all may be
    trim_share: float = 0.3  # from here on long results lose their middle
    clear_share: float = 0.5  # from here on whole results go, the oldest first, until less is used
    clear_from_chars: int = 50_000  # if there are at least so many characters of results that may go
    longest_chars: int = 4_000  # a longer result loses its middle
    head_chars: int = 1_500  # what is kept of its beginning
    tail_chars: int = 1_500  # and of its end
    clears: bool = True
    placeholder: str = "[Old tool result content cleared]"
    keep_images: int = 3  # so many of the last results with images are never cleared
    allow: tuple[str, ...] = ()  # names of tools, * for anything, in any case; none: every tool
    deny: tuple[str, ...] = ()  # tools that keep their results, even if they are allowed too


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What has been shortened in a session so far. msgspec.json.encode makes it fit for a file."""

    verdicts: dict[str, Verdict] = {}  # by the id of the call and a digest of the result
    asked_at: float | None = None  # when the last request was made, in seconds; None: nobody knows


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The messages to send, and what to remember for the next request."""

    messages: tuple[Message, ...]  # as many as came in; those that did not change are the same objects
    record: Record
    trimmed: int  # how many lost their middle
    cleared: int  # how many are gone


def prune(
    messages: Sequence[Message],
    *,
    window_tokens: int,
    record: Record,
    now_s: float,
    rules: Rules = Rules(),  # noqa: B008  frozen
) -> Pruned:
    """Shorten results of tools for one request.

    The same messages and the same record give the same messages, at any time before the cache is cold. The input is not
    changed. Whether a provider caches at all is for the caller to know.

    Args:
        messages: The whole conversation, the oldest first.
        window_tokens: The context window of the model; 0: not known, and nothing new is shortened.
        record: What the last call returned, or Record() in a new session.
        now_s: The time in seconds, on the clock of record.asked_at.
        rules: How.
    """
    # After a compaction, what was decided of a result that is gone may fit one that has just come.
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
    """Which results lose their middle, and which go.

    The size of everything (characters; a Chinese one counts as four, an image as 8,000) is compared with
    ``4 * window_tokens``. From trim_share on, each result over longest_chars loses its middle. If clear_share is still
    reached, and what may go has clear_from_chars, results go, the oldest first, until less is used. Never touched are
    the messages before the first of the user, where an agent reads its workspace, and those from the third last
    assistant message on.

    Returns:
        By key, as in Record: the earlier ones, which stay, with the new ones.
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
    """The messages with the verdicts carried out."""
    return tuple(
        _carried_out(message, verdicts.get(key), rules)
        for message, key in zip(messages, _keys(messages), strict=True)
    )


def matches(pattern: str, name: str) -> bool:
    """Whether a name is of a pattern, where ``*`` stands for any text; case does not count."""
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
    """A result without its middle; the same object where that is not worth it, or where it has images."""
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
    """The places of the results that may be shortened, the oldest first."""
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
    """A key for each message that stays the same while the conversation grows, and fits no other when it has shrunk.

    The id alone would not do: some providers give none, and some begin anew with each turn.
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
