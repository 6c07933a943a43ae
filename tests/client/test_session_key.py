import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.session_key import ChatType, SessionKey, parse
from tests.bounds import shipped
from tests.table import table

PRIVATE: list[tuple[str, str | None, str | None]] = [  # key, agent, channel
    ("main", None, None),
    ("agent:main:main", "main", None),
    ("agent:work:main", "work", None),
    ("agent:main:main:thread:4711", "main", None),
    ("agent:main:main:thread:4711:9", "main", None),
    ("agent:main:telegram:direct:4711", "main", "telegram"),
    ("agent:main:telegram:dm:4711", "main", "telegram"),
    ("telegram:direct:4711", None, "telegram"),
    ("agent:main:slack:direct:U0AB12CD:thread:1772413329.120", "main", "slack"),
    ("agent:main:slack:direct:u0ab12cd:thread:1772413329.120", "main", "slack"),
    ("agent:main:telegram:direct:4711:topic:5", "main", "telegram"),
    ("agent:main:whatsapp:direct:+4915112345678", "main", "whatsapp"),
    ("agent:main:matrix:direct:@bob:example.org", "main", "matrix"),
    ("agent:main:wechat:direct:张三", "main", "wechat"),
    ("agent:main:direct:4711", "main", None),
    ("agent:main:dm:4711", "main", None),
    ("direct:4711", None, None),
    ("agent:x:telegram:tasks:direct:4711", "x", "telegram"),
    ("agent:x:telegram:tasks:dm:4711", "x", "telegram"),
    # The peer may be called anything.
    ("agent:x:telegram:direct:group", "x", "telegram"),
    ("agent:x:telegram:direct:channel", "x", "telegram"),
    ("agent:x:telegram:direct:direct", "x", "telegram"),
    ("agent:x:telegram:direct:main", "x", "telegram"),
    ("agent:x:telegram:direct:hook", "x", "telegram"),
    ("agent:x:telegram:tasks:direct:group", "x", "telegram"),
    ("agent:x:telegram:direct:4711:thread:direct", "x", "telegram"),
    ("agent:group:telegram:direct:4711", "group", "telegram"),
    ("agent:hook:main", "hook", None),
    ("agent:agent:main", "agent", None),
    # The owner's own, though nobody chats.
    ("agent:main:cron:nightly", "main", None),
    ("agent:main:cron:0d5ee5c2-1f2b:run:7", "main", None),
    ("cron:nightly", None, None),
    ("agent:main:dashboard:3f6e", "main", None),
    ("agent:main:explicit:my-session", "main", None),
    # A helper of a conversation that can be seen.
    ("agent:main:main:subagent:3f6e", "main", None),
    ("agent:main:telegram:direct:4711:subagent:3f6e", "main", "telegram"),
    ("agent:main:cron:nightly:subagent:3f6e:subagent:77", "main", None),
]

SHARED: list[tuple[str, str | None, str | None, ChatType | None]] = [  # key, agent, channel, chat type
    ("agent:main:telegram:group:-100123", "main", "telegram", "group"),
    ("agent:main:telegram:group:-100123:topic:5", "main", "telegram", "group"),
    ("agent:main:discord:channel:123", "main", "discord", "channel"),
    ("agent:main:discord:channel:123:thread:456", "main", "discord", "channel"),
    ("agent:main:matrix:room:!abc:example.org", "main", "matrix", "channel"),
    ("agent:main:whatsapp:group:1203630@g.us", "main", "whatsapp", "group"),
    ("discord:channel:123", None, "discord", "channel"),
    ("group:1203630@g.us", None, None, "group"),
    ("agent:main:group:5", "main", None, "group"),
    ("agent:main:channel:5", "main", None, "channel"),
    # The group may be called anything.
    ("agent:main:discord:channel:123:thread:direct", "main", "discord", "channel"),
    ("agent:main:discord:channel:direct", "main", "discord", "channel"),
    ("agent:main:discord:channel:direct:4711", "main", "discord", "channel"),
    ("agent:main:telegram:group:direct:4711", "main", "telegram", "group"),
    ("agent:main:telegram:group:dm:4711", "main", "telegram", "group"),
    ("agent:main:telegram:group:main", "main", "telegram", "group"),
    ("agent:main:group:direct:4711", "main", None, "group"),
    ("agent:main:channel:telegram:direct:4711", "main", None, "channel"),
    ("agent:direct:telegram:group:5", "direct", "telegram", "group"),
    ("agent:main:telegram:group", "main", "telegram", "group"),
    # In doubt.
    ("agent:main:telegram:direct:4711:group:5", "main", None, "group"),
    ("agent:main:telegram:direct:4711:thread:channel", "main", None, "channel"),
    ("agent:main:direct:group:5", "main", None, "group"),
    ("agent:main:direct:group", "main", None, "group"),
    ("agent:main:main:group:5", "main", None, "group"),
    ("agent:main:main:thread:group", "main", None, "group"),
    ("agent:main:cron:group:5", "main", None, "group"),
    ("agent:main:a:b:c:group:5", "main", None, "group"),
    ("agent:main:telegram:tasks:group:5", "main", None, "group"),
    ("agent:main:telegram:tasks:direct:4711:room:5", "main", None, "channel"),
    # From outside, or from who knows where.
    ("agent:main:hook:github", "main", None, None),
    ("hook:3f6e", None, None, None),
    ("agent:main:hook:direct:4711", "main", None, None),
    ("agent:main:hook:x:direct:4711", "main", None, None),
    ("agent:main:hook:group:5", "main", None, "group"),
    ("agent:main:hook:main:subagent:3f6e", "main", None, None),
    ("agent:main:acp:3f6e", "main", None, None),
    ("agent:main:acp:direct:4711", "main", None, None),
    ("agent:main:global", "main", None, None),
    ("global", None, None, None),
    ("agent:main:global:direct:4711", "main", None, None),
    ("unknown", None, None, None),
    ("agent:main:subagent:3f6e", "main", None, None),
    ("subagent:3f6e", None, None, None),
    ("agent:main:subagent:3f6e:subagent:77", "main", None, None),
    ("agent:main:subagent:telegram:direct:4711", "main", None, None),
    ("agent:main:telegram:direct:subagent:3f6e", "main", None, None),
    ("agent:main:telegram:group:5:subagent:3f6e", "main", "telegram", "group"),
    ("agent:main:main:subagent:group", "main", None, "group"),
    ("agent:main:telegram:slash:4711", "main", None, None),
    ("agent:main:openai:4711", "main", None, None),
    ("agent:main:1203630@g.us", "main", None, None),
    ("agent:main:telegram:4711", "main", None, None),
    ("agent:main:a:b:c:direct:4711", "main", None, None),
    # Halves.
    ("", None, None, None),
    (":", None, None, None),
    ("agent", None, None, None),
    ("agent:", "", None, None),
    ("agent::", "", None, None),
    ("agent::x", "", None, None),
    ("agent::main", "", None, None),
    ("agent::telegram:direct:4711", "", None, None),
    ("agent:work", "work", None, None),
    ("agent:work:", "work", None, None),
    ("agent:work::main", "work", None, None),
    ("agent:work:main:", "work", None, None),
    ("agent:work:main:thread", "work", None, None),
    ("agent:work:main:thread:", "work", None, None),
    ("agent:work:main:main", "work", None, None),
    ("agent:work:telegram:direct", "work", None, None),
    ("agent:work:telegram:direct:", "work", None, None),
    ("agent:work::direct:4711", "work", None, None),
    ("agent:work:telegram::direct:4711", "work", None, None),
    ("agent:work:direct", "work", None, None),
    ("agent:work:cron", "work", None, None),
    ("agent:work:cron:", "work", None, None),
    ("agent:work:dashboard", "work", None, None),
    (":main", None, None, None),
    ("main:", None, None, None),
    ("agent:work:telegram::group:5", "work", None, "group"),
    # Upper case: no program writes these words so.
    ("MAIN", None, None, None),
    ("agent:main:MAIN", "main", None, None),
    ("AGENT:main:main", "main", None, None),
    ("AGENT:main:direct:4711", "main", None, None),
    ("Agent:main:telegram:direct:4711", "main", None, None),
    ("agent:main:Telegram:direct:4711", "main", None, None),
    ("agent:main:telegram:DIRECT:4711", "main", None, None),
    ("agent:main:telegram:Group:5", "main", "telegram", "group"),
    ("agent:main:telegram:direct:4711:GROUP:5", "main", None, "group"),
    ("agent:main:agent:work:direct:4711", "main", None, None),
    # White space, control characters, other things that do not show.
    (" ", None, None, None),
    (" main", None, None, None),
    ("main ", None, None, None),
    ("main\n", None, None, None),
    ("agent:main:main\n", "main", None, None),
    ("agent:main: main", "main", None, None),
    ("agent: main:main", " main", None, None),
    ("agent:ma\0in:main", "ma\0in", None, None),
    ("agent:main:telegram:direct:47 11", "main", None, None),
    ("agent:main:telegram:direct:47\x1b[31m11", "main", None, None),
    ("agent:main:telegram:direct:\u200b", "main", None, None),
    ("agent:main:telegram:direct:\u2028", "main", None, None),
    ("agent:main:telegram:direct:\ud800", "main", None, None),
    ("agent:main:\uff4d\uff41\uff49\uff4e", "main", None, None),  # main, in full-width letters
    ("agent:main:telegram:d\u0456rect:4711", "main", None, None),  # with a Cyrillic letter
    # Enormous.
    ("agent:main:telegram:direct:" + "4" * 10_000, "main", None, None),
    ("agent:" + "m" * 10_000 + ":main", "m" * 10_000, None, None),
    ("agent:main:" + "telegram:" * 1_200 + "group:5", "main", None, "group"),
    ("agent:main:main" + ":subagent:x" * 1_000, "main", None, None),
    (":" * 10_000, None, None, None),
]


@table(("raw", "agent", "channel"), PRIVATE)
def test_private(raw: str, agent: str | None, channel: str | None) -> None:
    """Keys whose shape says that the owner or one peer alone reads along."""
    key = parse(raw)
    assert (key.agent, key.channel, key.chat_type, key.is_owner_private) == (agent, channel, "direct", True)


@table(("raw", "agent", "channel", "chat_type"), SHARED)
def test_shared(raw: str, agent: str | None, channel: str | None, chat_type: ChatType | None) -> None:
    """Keys of groups, keys from outside, and keys that make no sense."""
    key = parse(raw)
    assert (key.agent, key.channel, key.chat_type, key.is_owner_private) == (agent, channel, chat_type, False)


@pytest.mark.parametrize(
    ("raw", "rest"),
    [
        ("agent:main:main", "main"),
        ("agent:Main:Slack:Direct:U0AB", "slack:direct:u0ab"),
        ("Cron:Nightly", "cron:nightly"),
        ("agent:main", ""),
        ("agent::X", "x"),
        ("agent:", ""),
        ("", ""),
    ],
)
def test_rest(raw: str, rest: str) -> None:
    """What rules compare is the key without its agent, in lower case; the key itself stays as it came."""
    key = parse(raw)
    assert (key.raw, key.rest) == (raw, rest)


def test_agent_is_kept_as_written() -> None:
    """An agent is whom the key names, letter for letter, though no agent can be called so."""
    assert parse("agent:Work-2:main").agent == "Work-2"
    assert parse("agent:../x:main").agent == "../x"
    assert parse("AGENT:work:main").agent == "work"
    assert parse("agents:work:main").agent is None


def test_key_is_a_value() -> None:
    """Keys that are equal are the same key, and nobody changes one."""
    assert parse("main") == parse("main")
    assert len({parse("main"), parse("main"), parse("cron:x")}) == 2
    with pytest.raises(AttributeError):
        parse("main").agent = "other"  # type: ignore[misc]


WORDS = st.sampled_from(
    [
        "agent",
        "main",
        "direct",
        "dm",
        "group",
        "channel",
        "room",
        "telegram",
        "4711",
        "thread",
        "subagent",
        "hook",
        "cron",
        "",
    ]
)


@given(st.lists(WORDS, max_size=8).map(":".join) | st.text())
def test_any_string_is_a_key(raw: str) -> None:
    """No string raises, and one whose second or third word is that of a group is never private."""
    key = parse(raw)
    assert key.raw == raw
    words = key.rest.split(":")
    if {"group", "channel", "room"} & set(words[:2]):
        assert not key.is_owner_private
    if key.is_owner_private:
        assert {"main", "cron", "dashboard", "explicit", "direct", "dm"} & set(words)


@given(st.text())
def test_hooks_stay_outside(name: str) -> None:
    """Whatever a hook calls itself, it is not the owner."""
    assert not parse(f"agent:main:hook:{name}").is_owner_private
    assert not parse(f"hook:{name}").is_owner_private


@given(st.text())
def test_groups_stay_groups(name: str) -> None:
    """Whatever a group calls itself, it is shared."""
    key: SessionKey = parse(f"agent:main:telegram:group:{name}")
    assert key.chat_type == "group"


def test_a_key_that_is_longer_than_any_is_shared() -> None:
    """As is one of an agent whose name is."""
    longest, agent = (
        shipped("memd_client.session_key._LONGEST"),
        "a" * shipped("memd_client.session_key._LONGEST_AGENT"),
    )
    assert parse(f"agent:{agent}:main").is_owner_private
    assert not parse(f"agent:{agent}a:main").is_owner_private
    peer = "agent:main:telegram:direct:"
    assert parse(peer.ljust(longest, "7")).is_owner_private
    assert not parse(peer.ljust(longest + 1, "7")).is_owner_private
