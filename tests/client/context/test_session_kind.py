from memd_client.context.session_kind import SessionKind, session_kind
from tests.table import table

KINDS: list[tuple[str | None, SessionKind]] = [
    (None, "main"),
    ("main", "main"),
    ("agent:main:main", "main"),
    ("agent:work:main:thread:5", "main"),
    ("agent:main:dashboard:3f6e", "main"),
    ("agent:main:explicit:mine", "main"),
    ("agent:main:telegram:direct:4711", "direct"),
    ("agent:main:slack:dm:U0AB", "direct"),
    ("agent:main:telegram:direct:group", "direct"),
    ("agent:main:telegram:group:-100", "group"),
    ("agent:main:discord:channel:5", "channel"),
    ("agent:main:matrix:room:!a:example.org", "channel"),
    ("agent:main:cron:nightly:run:7", "cron"),
    ("cron:nightly", "cron"),
    ("agent:main:cron:group:5", "group"),
    ("agent:main:subagent:3f6e", "subagent"),
    ("agent:main:main:subagent:3f6e", "subagent"),
    ("agent:main:telegram:group:5:subagent:3f6e", "subagent"),
    ("agent:main:hook:github", "unknown"),
    ("agent:main:acp:3f6e", "unknown"),
    ("agent:main:global", "unknown"),
    ("", "unknown"),
    ("agent:main:MAIN", "unknown"),
    ("agent:main:main:group:5", "group"),
]


@table(("key", "kind"), KINDS)
def test_a_key_names_a_kind_of_session(key: str | None, kind: SessionKind) -> None:
    """Only what shows word by word that nobody else reads along is private."""
    assert session_kind(key) == kind
