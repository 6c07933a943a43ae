import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.conversation import Message
from memd_client.context.pruning import Record, Rules, decide, matches, prune, shortened
from tests.table import table

WINDOW = 50_000  # tokens: 200,000 characters; trimmed from 60,000 on, cleared from 100,000 on
PLACEHOLDER = "[Old tool result content cleared]"
COLD = Record(asked_at=0.0)  # long ago


def said(role: str, text: str = "x") -> Message:
    return msgspec.convert({"role": role, "text": text}, Message)


def result(text: str, call: str, tool: str = "read", images: int = 0) -> Message:
    return Message(role="tool", text=text, tool=tool, call=call, images=images)


def talk(*results: Message) -> list[Message]:
    """A conversation in which each result follows a call, and three more turns of the assistant."""
    messages = [said("system"), said("user")]
    for one in results:
        messages += [said("assistant"), one]
    return [*messages, said("assistant"), said("user"), said("assistant"), said("user"), said("assistant")]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.role == "tool"]


def pruned(messages: list[Message], rules: Rules | None = None, window: int = WINDOW) -> list[str]:
    """The results of tools after the cache has gone cold."""
    done = prune(messages, window_tokens=window, record=COLD, now_s=1e6, rules=rules or Rules())
    return texts(done.messages)


def test_a_long_result_loses_its_middle() -> None:
    """1,500 characters of either end stay, and a note tells how many there were."""
    text = "a" * 40_000 + "z" * 30_000
    note = "[Tool result trimmed: kept first 1500 chars and last 1500 chars of 70000 chars.]"
    assert pruned(talk(result(text, "c1"))) == [f"{'a' * 1500}\n...\n{'z' * 1500}\n\n{note}"]


@pytest.mark.parametrize(("size", "is_touched"), [(59_900, False), (60_100, True)])
def test_nothing_is_shortened_while_there_is_room(size: int, is_touched: bool) -> None:
    """From three tenths of the window on results are trimmed."""
    assert (pruned(talk(result("a" * size, "c1"))) != ["a" * size]) == is_touched


def test_a_short_result_is_never_trimmed() -> None:
    """4,000 characters may stay, however full the window is."""
    fits, longer = "a" * 4_000, "b" * 4_001
    shown = pruned(talk(result(fits, "c1"), result(longer, "c2"), result("c" * 70_000, "c3")))
    assert shown[0] == fits
    assert [len(text) < 4_000 for text in shown[1:]] == [True, True]


def test_results_go_oldest_first_until_less_than_half_is_used() -> None:
    """Forty results of 3,500 characters are 140,000; eleven or twelve have to go, and the newest stay."""
    shown = pruned(talk(*(result("a" * 3_500, f"c{n}") for n in range(40))))
    gone = shown.count(PLACEHOLDER)
    assert shown == [PLACEHOLDER] * gone + ["a" * 3_500] * (40 - gone)
    assert (40 - gone) * 3_500 < 100_000 <= (41 - gone) * 3_500 + 1_000


def test_little_that_could_go_does_not_go() -> None:
    """Below 50,000 characters of results it is not worth it, whatever the rest takes."""
    messages = [said("system", "s" * 150_000), *talk(*(result("a" * 3_500, f"c{n}") for n in range(14)))]
    assert pruned(messages) == ["a" * 3_500] * 14
    assert PLACEHOLDER in pruned([*messages[:-5], result("a" * 3_500, "c14"), *messages[-5:]])


def test_clearing_can_be_switched_off() -> None:
    """Then results only lose their middle."""
    many = talk(*(result("a" * 3_500, f"c{n}") for n in range(40)))
    assert PLACEHOLDER not in pruned(many, Rules(clears=False))


def test_the_last_turns_are_protected() -> None:
    """Nothing from the third last turn of the assistant on is touched."""
    big = "a" * 100_000
    messages = [
        said("user"),
        *(said("assistant"), result(big, "old")),
        *(said("assistant"), result(big, "kept1")),
        *(said("assistant"), result(big, "kept2")),
        said("assistant"),
    ]
    shown = pruned(messages)
    assert len(shown[0]) < 4_000
    assert shown[1:] == [big, big]
    assert pruned(messages[:5]) == [big, big]  # only two turns
    assert len(pruned(messages[:5], Rules(keep_assistants=0))[1]) < 4_000


def test_what_was_read_before_the_first_message_of_the_user_is_protected() -> None:
    """That is how an agent reads its workspace."""
    big = "a" * 100_000
    messages = [said("system"), said("assistant"), result(big, "boot"), *talk(result(big, "c1"))]
    shown = pruned(messages)
    assert shown[0] == big
    assert shown[1] != big
    without_user = [message for message in messages if message.role != "user"]
    assert pruned(without_user) == [big, big]


def test_an_unknown_window_changes_nothing() -> None:
    """Nobody knows what is too much."""
    assert pruned(talk(result("a" * 500_000, "c1")), window=0) == ["a" * 500_000]


def test_a_chinese_character_counts_as_four() -> None:
    """20,000 of them fill as much of a window as 80,000 letters."""
    assert pruned(talk(result("库" * 20_000, "c1"))) != ["库" * 20_000]
    assert pruned(talk(result("a" * 20_000, "c1"))) == ["a" * 20_000]


def test_images_count_and_go_whole_but_for_the_last_three() -> None:
    """A result with images keeps its text, until it goes; the last three with images never do."""
    messages = talk(*(result("i" * 5_000, f"c{n}", images=4) for n in range(5)))
    done = prune(messages, window_tokens=WINDOW, record=COLD, now_s=1e6)
    results = [message for message in done.messages if message.role == "tool"]
    assert [message.images for message in results] == [0, 0, 4, 4, 4]
    assert texts(done.messages) == [PLACEHOLDER] * 2 + ["i" * 5_000] * 3
    assert (done.trimmed, done.cleared) == (0, 2)


TOOLS = [
    (Rules(), ["read", "exec"]),
    (Rules(allow=("exec",)), ["exec"]),
    (Rules(allow=("EX*", "re*d")), ["read", "exec"]),
    (Rules(deny=("*",)), []),
    (Rules(allow=("*",), deny=("read",)), ["exec"]),
    (Rules(allow=("nothing",)), []),
]


@pytest.mark.parametrize(("rules", "touched"), TOOLS)
def test_tools_are_allowed_and_denied_by_name(rules: Rules, touched: list[str]) -> None:
    """Deny wins, no allowed names mean all, and case does not count."""
    big = "a" * 70_000
    shown = pruned(talk(result(big, "c1", "read"), result(big, "c2", "exec")), rules)
    changed = {tool for tool, text in zip(["read", "exec"], shown, strict=True) if text != big}
    assert changed == set(touched)


PATTERNS = [
    ("read", "read", True),
    ("read", "READ", True),
    ("read", "reads", False),
    ("*", "", True),
    ("mcp__*", "mcp__memd__memory_get", True),
    ("*_get", "memory_get", True),
    ("m*_*t", "memory_get", True),
    ("a*a", "a", False),
    ("a*b*c", "aXbYc", True),
    ("a*b*c", "aXcYb", False),
    ("*a*a*", "ba", False),
    ("r[e]ad", "read", False),
    ("**", "x", True),
    ("", "", True),
    ("", "x", False),
]


@table(("pattern", "name", "expected"), PATTERNS)
def test_a_star_stands_for_any_text(pattern: str, name: str, expected: bool) -> None:
    """Nothing else is special."""
    assert matches(pattern, name) == expected


def test_a_pattern_of_many_stars_is_quick() -> None:
    """A thousand stars do not try every way of dividing a name."""
    assert not matches("a*" * 1_000 + "b", "a" * 100_000)


def test_nothing_new_is_shortened_while_the_cache_is_warm() -> None:
    """Less than five minutes after the last request the prompt must not change."""
    messages = talk(result("a" * 70_000, "c1"))
    warm = prune(messages, window_tokens=WINDOW, record=Record(asked_at=1_000.0), now_s=1_299.9)
    assert warm.messages == tuple(messages)
    assert warm.record == Record(asked_at=1_299.9)
    assert prune(messages, window_tokens=WINDOW, record=warm.record, now_s=1_599.9).trimmed == 1


def test_nothing_is_shortened_where_nobody_knows_of_the_last_request() -> None:
    """The cache may be warm; a clock that was set back does not make it cold."""
    messages = talk(result("a" * 70_000, "c1"))
    assert prune(messages, window_tokens=WINDOW, record=Record(), now_s=1e9).messages == tuple(messages)
    assert prune(messages, window_tokens=WINDOW, record=Record(asked_at=1e9), now_s=5.0).trimmed == 0


def test_what_was_shortened_stays_shortened_in_the_same_way() -> None:
    """In later requests the beginning of the prompt is the same, letter for letter, while the conversation grows."""
    messages = talk(*(result("a" * 9_000, f"c{n}") for n in range(30)))
    first = prune(messages, window_tokens=WINDOW, record=COLD, now_s=1e6)
    assert first.trimmed
    longer = [*messages, said("user"), said("assistant"), result("b" * 90_000, "new"), said("assistant")]
    second = prune(longer, window_tokens=WINDOW, record=first.record, now_s=1e6 + 10)
    assert second.messages[: len(messages)] == first.messages
    assert second.messages[len(messages) :] == tuple(longer[len(messages) :])


def test_messages_that_are_gone_are_forgotten() -> None:
    """After a compaction the record is as small as the conversation."""
    first = prune(talk(result("a" * 70_000, "c1")), window_tokens=WINDOW, record=COLD, now_s=1e6)
    assert list(first.record.verdicts.values()) == ["trim"]
    second = prune([said("user")], window_tokens=WINDOW, record=first.record, now_s=1e6 + 1)
    assert second.record.verdicts == {}


def test_a_record_survives_a_file() -> None:
    """It is kept with the session as JSON."""
    record = Record(verdicts={"c1": "trim", "#5": "clear"}, asked_at=5.5)
    assert msgspec.json.decode(msgspec.json.encode(record), type=Record) == record
    assert json.loads(msgspec.json.encode(record))["verdicts"]["#5"] == "clear"


def test_results_with_the_same_id_or_none_are_told_apart() -> None:
    """What is decided of one is not done to another."""
    big = "a" * 70_000
    protected = [said("assistant"), result(big, "same"), said("assistant"), said("assistant")]
    for call in ("same", None):
        first = msgspec.structs.replace(result(big, "same"), call=call)
        last = msgspec.structs.replace(protected[1], call=call)
        messages = [said("user"), said("assistant"), first, protected[0], last, *protected[2:]]
        assert [text == big for text in pruned(messages)] == [False, True]


roles = st.sampled_from(["system", "user", "assistant", "tool"])
messages = st.lists(
    st.builds(
        lambda role, size, letter, images, tool, call: Message(
            role=role,
            text=letter * size,
            images=images if role in {"tool", "user"} else 0,
            tool=tool if role == "tool" else None,
            call=call if role == "tool" else None,
        ),
        roles,
        st.integers(0, 200),
        st.sampled_from("ab库"),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["read", "exec", None]),
        st.sampled_from([None, *(f"c{n}" for n in range(30))]),
    ),
    max_size=25,
)
rules = st.builds(
    Rules,
    keep_assistants=st.integers(0, 3),
    trim_share=st.floats(0, 1),
    clear_share=st.floats(0, 1),
    clear_from_chars=st.integers(0, 500),
    longest_chars=st.integers(0, 150),
    head_chars=st.integers(-5, 60),
    tail_chars=st.integers(-5, 60),
    keep_images=st.integers(0, 3),
    allow=st.sampled_from([(), ("read",)]),
    deny=st.sampled_from([(), ("exec",)]),
)


@given(messages, messages, rules, st.integers(0, 25), st.integers(1, 3_000))
def test_after_a_compaction_nothing_new_is_shortened(
    some: list[Message], later: list[Message], how: Rules, kept: int, window: int
) -> None:
    """While the cache is warm, only a result that was shortened before is, and none of the last turns."""
    first = prune(some, window_tokens=window, record=COLD, now_s=1e6, rules=how)
    done = [old for old, new in zip(some, first.messages, strict=True) if old is not new]
    shrunk = [said("user", "what happened so far"), *some[len(some) - kept :], *later]
    second = prune(shrunk, window_tokens=window, record=first.record, now_s=1e6 + 1, rules=how)
    turns = [at for at, message in enumerate(shrunk) if message.role == "assistant"]
    untouched = turns[-how.keep_assistants] if 0 < how.keep_assistants <= len(turns) else len(shrunk)
    for at, (old, new) in enumerate(zip(shrunk, second.messages, strict=True)):
        assert old is new or (old in done and at < untouched)


@pytest.mark.parametrize("call", ["call_0", None])
def test_the_newest_result_is_sent_after_a_compaction(call: str | None) -> None:
    """Also where calls have no ids, or ids that begin anew in each turn; and although it says what an old one said."""
    read = Message(role="tool", text="a" * 3_900, tool="read", call=call)
    first = prune(
        [said("system"), said("user"), *[said("assistant"), read] * 50, *[said("assistant")] * 3],
        window_tokens=WINDOW,
        record=COLD,
        now_s=1e6,
    )
    assert first.cleared
    newest = [
        said("system"),
        said("user"),
        said("assistant"),
        read,
        said("assistant"),
        msgspec.structs.replace(read, text="THE ANSWER"),
    ]
    second = prune(newest, window_tokens=WINDOW, record=first.record, now_s=1e6 + 1)
    assert second.messages == tuple(newest)


@given(messages, rules, st.integers(1, 3_000))
def test_pruning_is_deterministic_and_changes_no_input(some: list[Message], how: Rules, window: int) -> None:
    """The same input gives the same output, in as many messages as came in, and only results are touched."""
    before = copy.deepcopy(some)
    first = prune(some, window_tokens=window, record=COLD, now_s=1e6, rules=how)
    assert first == prune(some, window_tokens=window, record=COLD, now_s=1e6, rules=how)
    assert some == before
    assert len(first.messages) == len(some)
    for old, new in zip(some, first.messages, strict=True):
        assert (old.role, old.call, old.tool) == (new.role, new.call, new.tool)
        assert old is new or (old.role == "tool" and not (how.allow and old.tool != "read"))


@given(messages, rules, st.integers(1, 3_000))
def test_a_later_request_repeats_what_was_decided(some: list[Message], how: Rules, window: int) -> None:
    """With the record of the first, a request a second later sends the same; and a cold one takes nothing back."""
    first = prune(some, window_tokens=window, record=COLD, now_s=1e6, rules=how)
    warm = prune(some, window_tokens=window, record=first.record, now_s=1e6 + 1, rules=how)
    assert warm.messages == first.messages
    cold = prune(some, window_tokens=window, record=warm.record, now_s=2e6, rules=how)
    for key, verdict in first.record.verdicts.items():
        assert cold.record.verdicts[key] in {verdict, "clear"}


@given(messages, st.integers(1, 3_000))
def test_what_is_pruned_is_not_pruned_further(some: list[Message], window: int) -> None:
    """Deciding again over what was decided adds nothing."""
    how = Rules(longest_chars=100, head_chars=10, tail_chars=10, clear_from_chars=100)
    verdicts = decide(some, window_tokens=window, rules=how)
    assert decide(some, window_tokens=window, rules=how, earlier=verdicts) == verdicts
    once = shortened(some, verdicts, how)
    assert shortened(once, verdicts, how) == once
