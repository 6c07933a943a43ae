import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.config.settings import IncludedMemory, PathMatch, Scope, ScopeRule, included_path
from memd.domain_types import Kind, Source
from memd.server.scope import Denied, Granted, decide_access
from memd_client.session_key import parse

DEFAULT = Scope()
NOTES = frozenset({Kind.NOTE})
ALL = frozenset({Kind.NOTE, Kind.CURATED})
SESSIONS = frozenset({Kind.SESSION, Kind.SHARED_SESSION})  # what a group said is for requests without a key


def asked(
    key: str | None,
    scope: Scope = DEFAULT,
    *,
    agent: str = "main",
    source: Source | None = None,
    sources: tuple[Source, ...] = ("memory",),
) -> frozenset[Kind] | None:
    """What may be seen, or None where all is denied."""
    parsed = None if key is None else parse(key)
    decided = decide_access(scope, parsed, agent=agent, source=source, sources=sources)
    return decided.kinds if isinstance(decided, Granted) else None


@pytest.mark.parametrize(
    ("key", "kinds"),
    [
        (None, ALL),
        ("main", ALL),
        ("agent:main:main", ALL),
        ("agent:main:telegram:direct:4711", ALL),
        ("agent:main:telegram:group:-100", None),
        ("agent:main:discord:channel:9:thread:1", None),
        ("agent:main:hook:x", None),
        ("what is this", None),
        ("", None),
        ("agent:other:main", None),
    ],
)
def test_by_default_only_the_owner_and_direct_chats_search(
    key: str | None, kinds: frozenset[Kind] | None
) -> None:
    """Without rules of one's own, a group, a stranger and another agent's session see nothing."""
    assert asked(key) == kinds


@pytest.mark.parametrize(
    "key",
    [
        "agent:main:telegram:group:-100",
        "agent:main:discord:channel:9",
        "agent:main:hook:x",
        "unheard:of:shape",
    ],
)
def test_a_shared_session_that_is_allowed_never_sees_memory_md(key: str) -> None:
    """Whatever the rules say, MEMORY.md and USER.md are not for those who are not alone with the owner."""
    assert asked(key, Scope(default="allow", rules=())) == NOTES


@pytest.mark.parametrize(
    ("key", "sees"),
    [
        (None, True),
        ("main", True),
        ("agent:main:main", True),
        ("agent:main:cron:nightly", True),
        ("agent:main:telegram:direct:4711", True),
        ("agent:main:main:subagent:3", True),
        ("agent:main:telegram:group:-100", False),
        ("agent:main:telegram:group:-100:subagent:3", False),
        ("agent:main:discord:channel:9", False),
        ("agent:main:slack:room:7", False),
        ("agent:main:hook:x", False),
        ("agent:main:acp:x", False),
        ("unheard:of:shape", False),
        ("", False),
    ],
)
@pytest.mark.parametrize(
    "scope",
    [
        Scope(default="allow", rules=()),
        Scope(default="deny", rules=(ScopeRule(action="allow"),)),
        Scope(default="deny", rules=(ScopeRule(action="allow", match=PathMatch(key_prefix="")),)),
    ],
)
def test_transcripts_are_for_the_owner_alone(key: str | None, sees: bool, scope: Scope) -> None:
    """Whatever the rules allow, others see no transcript; asking for nothing else gives them nothing, not a denial."""
    both: tuple[Source, ...] = ("memory", "sessions")
    transcripts = SESSIONS if key is None else frozenset({Kind.SESSION})
    assert asked(key, scope, sources=both) == (ALL | transcripts if sees else NOTES)
    only = asked(key, scope, sources=both, source="sessions")
    assert only == (transcripts if sees else frozenset())
    assert asked(key, scope, sources=("sessions",)) == only


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        (None, {"team:alice/main", "team:handbook"}),
        ("agent:main:main", {"team:alice/main", "team:handbook"}),
        ("agent:main:telegram:direct:4711", {"team:alice/main", "team:handbook"}),
        ("agent:main:telegram:group:-100", {"team:handbook"}),
        ("agent:main:discord:channel:9", {"team:handbook"}),
        ("what is this", {"team:handbook"}),
    ],
)
def test_included_memories_are_for_private_conversations_unless_they_say_more(
    key: str | None, seen: set[str]
) -> None:
    """Whatever the rules allow otherwise; what is denied all is denied these."""
    include = (IncludedMemory("team", "alice/main"), IncludedMemory("team", "handbook", in_groups=True))
    parsed = None if key is None else parse(key)
    for scope in (Scope(default="allow", rules=()), Scope(default="deny", rules=())):
        decided = decide_access(
            scope, parsed, agent="main", source=None, sources=("memory",), include=include
        )
        if scope.default == "deny" and key is not None:
            assert isinstance(decided, Denied)
        else:
            assert isinstance(decided, Granted)
            assert decided.included == seen


def test_a_path_of_an_included_memory_begins_with_its_name() -> None:
    """The longest name that it begins with; another path is the agent's own."""
    alice, main = IncludedMemory("team", "alice"), IncludedMemory("team", "alice/main")
    include = (alice, main)
    assert included_path("team:alice/main/memory/a.md", include) == (main, "memory/a.md")
    assert included_path("team:alice/memory/a.md", include) == (alice, "memory/a.md")
    assert included_path("team:alice/main//home/alice/wiki/a.md", include) == (main, "/home/alice/wiki/a.md")
    for own in ("memory/a.md", "team:alice", "team:bob/main/memory/a.md", "other:alice/main/memory/a.md"):
        assert included_path(own, include) is None


def test_the_first_rule_that_matches_decides() -> None:
    """Rules are read in order; the default holds where none matches."""
    scope = Scope(
        default="allow",
        rules=(
            ScopeRule(action="allow", match=PathMatch(channel="slack", chat_type="group")),
            ScopeRule(action="deny", match=PathMatch(chat_type="group")),
            ScopeRule(action="deny", match=PathMatch(key_prefix="telegram:direct:666")),
            ScopeRule(action="deny", match=PathMatch(raw_key_prefix="agent:main:cron:")),
        ),
    )
    assert asked("agent:main:slack:group:g1", scope) == NOTES
    assert asked("agent:main:telegram:group:g1", scope) is None
    assert asked("agent:main:telegram:direct:666", scope) is None
    assert asked("agent:main:telegram:direct:6667", scope) == ALL
    assert asked("agent:main:telegram:direct:5", scope) == ALL
    assert asked("agent:main:cron:nightly", scope) is None
    assert asked("agent:main:main", scope) == ALL


def test_a_rule_without_a_match_is_for_everyone_with_a_key() -> None:
    """An empty match matches; the owner, who has no key, is asked by no rule."""
    scope = Scope(default="allow", rules=(ScopeRule(action="deny"),))
    assert asked("agent:main:main", scope) is None
    assert asked(None, scope) == ALL


def test_the_source_narrows_what_is_seen() -> None:
    """Asking for sessions gives none of the notes, and none at all where the agent has no sessions."""
    assert asked(None, source="sessions") == frozenset()
    assert asked(None, source="sessions", sources=("memory", "sessions")) == SESSIONS
    assert asked(None, source="memory", sources=("memory", "sessions")) == ALL


def test_the_reason_names_channel_and_chat_type_only() -> None:
    """What is logged of a denial tells where it came from, and nothing of what was asked."""
    decided = decide_access(
        DEFAULT, parse("agent:main:telegram:group:-100"), agent="main", source=None, sources=("memory",)
    )
    assert decided == Denied("channel telegram, chat type group")


# --- keys that are odd, and rules that keep their conversation out

NO_DISCORD = Scope(default="allow", rules=(ScopeRule(action="deny", match=PathMatch(channel="discord")),))


@pytest.mark.parametrize("channel", ["discord", "Discord", "DISCORD"])
@pytest.mark.parametrize(
    "rest",
    [
        "discord:channel:99",
        "Discord:Channel:99",
        "discord:channel:team room",
        "discord:channel:team\u200droom",
        "discord:channel:",
        "discord:channel:99:thread:",
        "discord::channel:99",
        "discord:work:channel:99",
        "discord:guild:7:channel:9",
        "discord:thread:5",
        "discord:channel:" + "9" * 1100,
        "discord:channel:99:subagent:group",
        "subagent:3:discord:channel:99",
        "subagent:3",
        "disc\u200dord:channel:99",
        "\uff44iscord:channel:99",
        " discord:channel:99",
        "discord server:channel:99",
        "group:5",
        "acp:3f6e",
        "global",
    ],
)
def test_a_channel_that_is_denied_stays_out_however_its_key_is_spelt(channel: str, rest: str) -> None:
    """A key that cannot be read with certainty is denied by each rule that may mean its conversation."""
    scope = Scope(default="allow", rules=(ScopeRule(action="deny", match=PathMatch(channel=channel)),))
    assert asked(f"agent:main:{rest}", scope) is None
    both = PathMatch(channel=channel, chat_type="channel")
    if "thread:5" not in rest and rest != "group:5":
        assert (
            asked(f"agent:main:{rest}", Scope(default="allow", rules=(ScopeRule(action="deny", match=both),)))
            is None
        )


@pytest.mark.parametrize(
    "rest",
    [
        "telegram:group:-100",
        "telegram:work:group:-100",
        "telegram:group:team room",
        "telegram:discord-fans:group:5",
        "hook:github",
        "cron:discord",
        "direct:4711",
        "main",
    ],
)
def test_a_denied_channel_denies_no_other(rest: str) -> None:
    """A key that names another messenger, or none by its kind, is not taken for the one that is denied."""
    assert asked(f"agent:main:{rest}", NO_DISCORD) is not None


def test_an_allow_rule_takes_nothing_for_granted() -> None:
    """What may be the conversation that is meant is not let in: an allow rule is read word by word."""
    scope = Scope(default="deny", rules=(ScopeRule(action="allow", match=PathMatch(channel="discord")),))
    assert asked("agent:main:discord:channel:99", scope) == NOTES
    assert asked("agent:main:discord:channel:team room", scope) is None
    assert asked("agent:main:discord:work:channel:99", scope) is None


MATCHES = st.builds(
    PathMatch,
    channel=st.sampled_from([None, "discord", "Telegram"]),
    chat_type=st.sampled_from([None, "direct", "group", "channel"]),
    key_prefix=st.sampled_from([None, "discord:", "telegram:group:5", "telegram:gr*"]),
    raw_key_prefix=st.sampled_from([None, "agent:main:discord", "Agent:main:telegram:group:"]),
)
SHARED = st.sampled_from(
    ["discord:channel:9", "discord:group:9:thread:5", "telegram:group:5", "telegram:group:51:topic:7"]
)


@given(match=MATCHES, key=SHARED, mutation=st.integers(0, 6), at=st.integers(0, 5), data=st.data())
def test_what_a_rule_denies_it_denies_in_any_disguise(
    match: PathMatch, key: str, mutation: int, at: int, data: st.DataObject
) -> None:
    """Letter case, blanks, signs that do not show, an account, empty words and length lead around no deny rule."""
    scope = Scope(default="allow", rules=(ScopeRule(action="deny", match=match),))
    if asked(f"agent:main:{key}", scope) is not None:
        return
    words = key.split(":")
    at %= len(words)
    match mutation:
        case 0:
            words[at] = words[at].upper()
        case 1:
            words[at] = data.draw(st.sampled_from(["{} ", " {}", "{}\t"])).format(words[at])
        case 2:
            words[at] += data.draw(st.sampled_from(["\u200b", "\u2060", "\x00", "\ufeff"]))
        case 3:
            words.insert(1, data.draw(st.sampled_from(["work", "account 2", "direct", "8"])))
        case 4:
            words.insert(at, "")
        case 5:
            words.append("9" * 1100)
        case _:
            words += ["subagent", data.draw(st.sampled_from(["3", "group", "channel"]))]
    assert asked(f"agent:main:{':'.join(words)}", scope) is None


@given(key=SHARED, word=st.sampled_from([" agent", "agent ", "AGENT", "a\u200bgent", "agent\t"]))
def test_a_misspelt_key_of_one_agent_is_not_answered_by_another(key: str, word: str) -> None:
    """Whom a key names is told by its first word, whatever does not show in that."""
    assert asked(f"{word}:work:{key}", Scope(default="allow", rules=())) is None


@pytest.mark.parametrize(
    ("match", "key", "allowed"),
    [
        (PathMatch(key_prefix="telegram:group:-1001"), "agent:main:telegram:group:-1001", True),
        (PathMatch(key_prefix="telegram:group:-1001"), "agent:main:telegram:group:-1001:topic:5", True),
        (PathMatch(key_prefix="Telegram:Group:-1001"), "agent:main:telegram:group:-1001:subagent:3", True),
        (PathMatch(key_prefix="telegram:group:-1001"), "agent:main:telegram:group:-1001987654321", False),
        (PathMatch(key_prefix="telegram:group:-1001"), "agent:main:telegram:group:-10012", False),
        (PathMatch(key_prefix="telegram:group:-100*"), "agent:main:telegram:group:-10012", True),
        (PathMatch(key_prefix="telegram:group:"), "agent:main:telegram:group:-10012", True),
        (PathMatch(raw_key_prefix="agent:main:main"), "agent:main:main", True),
        (PathMatch(raw_key_prefix="agent:main:main"), "agent:main:main:thread:4", True),
        (PathMatch(raw_key_prefix="agent:main:main"), "agent:main:mainframe:group:7", False),
        (PathMatch(raw_key_prefix="*"), "agent:main:mainframe:group:7", True),
    ],
)
def test_a_prefix_ends_with_a_word(match: PathMatch, key: str, allowed: bool) -> None:
    """A rule names a conversation with all that belongs to it, and none whose name only begins so."""
    scope = Scope(default="deny", rules=(ScopeRule(action="allow", match=match),))
    assert (asked(key, scope) is not None) is allowed


@pytest.mark.parametrize(("chat", "denied"), [("-10012", True), ("-100", True), ("-1012", False)])
def test_a_star_of_a_deny_rule_is_not_wider_for_a_misspelt_key(chat: str, denied: bool) -> None:
    """What stands before it is all there."""
    match = PathMatch(key_prefix="telegram:group:-100*")
    scope = Scope(default="allow", rules=(ScopeRule(action="deny", match=match),))
    assert (asked(f"agent:main: telegram:group:{chat}", scope) is None) is denied
