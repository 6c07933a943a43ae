from typing import get_args

import msgspec

from memd_client.messages import (
    PROTOCOL,
    AgentStatus,
    BackendFallback,
    Degraded,
    ExplainedHit,
    Health,
    Hello,
    Hit,
    ListedChunk,
    ListedFile,
    ListedTurn,
    Pass,
    QmdStatus,
    Reply,
    Request,
    VectorHealth,
    Vectors,
)
from tests.table import table

MESSAGES: list[type[msgspec.Struct]] = [Hello, *get_args(Request), *get_args(Reply)]
PARTS: list[type[msgspec.Struct]] = [
    Hit,
    Degraded,
    ExplainedHit,
    ListedChunk,
    ListedFile,
    ListedTurn,
    AgentStatus,
    Vectors,
    Pass,
    Health,
    VectorHealth,
    BackendFallback,
    QmdStatus,
]

# What a sender of protocol 2 must give. A field that comes later needs a default, or older peers are shut out.
REQUIRED = {
    "Hello": {"protocol", "version"},
    "Search": {"query"},
    "Get": {"path"},
    "Explain": {"query"},
    "Chunks": {"path"},
    "Turns": {"path"},
    "FileList": {"agent"},
    "ListedFile": {"path"},
    "ChunkList": {"path"},
    "ListedChunk": {"start_line", "end_line", "text"},
    "TurnList": {"path"},
    "ListedTurn": {"role", "start_line", "end_line", "text"},
    "NotePair": {"why", "one"},
    "NoteLines": {"path"},
    "Warm": {"session_key"},
    "Embed": {"action"},
    "Note": {"path"},
    "RedactText": {"text"},
    "RedactedText": {"text"},
    "Stopping": {"pid"},
    "Explanation": {"found"},
    "StatusReport": {"version", "protocol", "pid", "uptime_s", "socket", "config", "agents"},
    "Failure": {"code", "message"},
    "Hit": {"path", "start_line", "end_line", "score", "snippet"},
    "Degraded": {"part", "reason"},
    "ExplainedHit": {"path", "start_line", "end_line", "score"},
    "AgentStatus": {
        "workspace",
        "backend",
        "provider",
        "model",
        "files",
        "chunks",
        "vectors",
        "dirty",
        "skipped",
        "keyword",
        "vector",
        "watcher",
        "provider_health",
        "store_bytes",
    },
    "Pass": {"at", "took_s"},
    "BackendFallback": {"from_", "reason"},
    "QmdStatus": {"command"},
}


@table("message", [*MESSAGES, *PARTS])
def test_required_fields(message: type[msgspec.Struct]) -> None:
    """The fields without a default are those of the first version of the protocol."""
    required = {field.name for field in msgspec.structs.fields(message) if field.required}
    assert PROTOCOL == 2
    assert required == REQUIRED.get(message.__name__, set())


@table("message", [*MESSAGES, *PARTS])
def test_messages_are_values(message: type[msgspec.Struct]) -> None:
    """Messages are frozen, name their fields on the wire, and skip what they do not know."""
    config = message.__struct_config__
    assert config.frozen
    assert not config.array_like
    assert not config.forbid_unknown_fields


@table("message", MESSAGES)
def test_type_is_the_name(message: type[msgspec.Struct]) -> None:
    """The type of a message on the wire is the name of its class in lower case; a redactor has a Redact and a Redacted, too."""
    assert message.__struct_config__.tag_field == "type"
    other = {"RedactText": "redact", "RedactedText": "redacted"}
    assert message.__struct_config__.tag == other.get(message.__name__, message.__name__.lower())
