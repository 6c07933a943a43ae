import pytest

from memd.backends.scope import Denied, Granted, access
from memd.config import Match, Rule, Scope
from memd.model import Kind, Source

DEFAULT = Scope()
NOTES = frozenset({Kind.NOTE})
ALL = frozenset({Kind.NOTE, Kind.CURATED})


def asked(
    key: str | None,
    scope: Scope = DEFAULT,
    *,
    agent: str = "main",
    source: Source | None = None,
    sources: tuple[Source, ...] = ("memory",),
) -> frozenset[Kind] | None:
    """What may be seen, or None where all is denied."""
    decided = access(scope, key, agent=agent, source=source, sources=sources)
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
        Scope(default="deny", rules=(Rule(action="allow"),)),
        Scope(default="deny", rules=(Rule(action="allow", match=Match(key_prefix="")),)),
    ],
)
def test_transcripts_are_for_the_owner_alone(key: str | None, sees: bool, scope: Scope) -> None:
    """Whatever the rules allow, others see no transcript; asking for nothing else gives them nothing, not a denial."""
    both: tuple[Source, ...] = ("memory", "sessions")
    assert asked(key, scope, sources=both) == (ALL | {Kind.SESSION} if sees else NOTES)
    only = asked(key, scope, sources=both, source="sessions")
    assert only == (frozenset({Kind.SESSION}) if sees else frozenset())
    assert asked(key, scope, sources=("sessions",)) == only


def test_the_first_rule_that_matches_decides() -> None:
    """Rules are read in order; the default holds where none matches."""
    scope = Scope(
        default="allow",
        rules=(
            Rule(action="allow", match=Match(channel="slack", chat_type="group")),
            Rule(action="deny", match=Match(chat_type="group")),
            Rule(action="deny", match=Match(key_prefix="telegram:direct:666")),
            Rule(action="deny", match=Match(raw_key_prefix="agent:main:cron:")),
        ),
    )
    assert asked("agent:main:slack:group:g1", scope) == NOTES
    assert asked("agent:main:telegram:group:g1", scope) is None
    assert asked("agent:main:telegram:direct:6667", scope) is None
    assert asked("agent:main:telegram:direct:5", scope) == ALL
    assert asked("agent:main:cron:nightly", scope) is None
    assert asked("agent:main:main", scope) == ALL


def test_a_rule_without_a_match_is_for_everyone_with_a_key() -> None:
    """An empty match matches; the owner, who has no key, is asked by no rule."""
    scope = Scope(default="allow", rules=(Rule(action="deny"),))
    assert asked("agent:main:main", scope) is None
    assert asked(None, scope) == ALL


def test_the_source_narrows_what_is_seen() -> None:
    """Asking for sessions gives none of the notes, and none at all where the agent has no sessions."""
    assert asked(None, source="sessions") == frozenset()
    assert asked(None, source="sessions", sources=("memory", "sessions")) == frozenset({Kind.SESSION})
    assert asked(None, source="memory", sources=("memory", "sessions")) == ALL


def test_the_reason_names_channel_and_chat_type_only() -> None:
    """What is logged of a denial tells where it came from, and nothing of what was asked."""
    decided = access(
        DEFAULT, "agent:main:telegram:group:-100", agent="main", source=None, sources=("memory",)
    )
    assert decided == Denied("channel telegram, chat type group")
