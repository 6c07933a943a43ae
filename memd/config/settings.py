"""The settings of the daemon: complete, validated and frozen."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memd.domain_types import Source

Share = Annotated[float, Meta(ge=0, le=1)]
# Every number has an upper bound: TOML allows inf and integers of any length, SQLite and sleep() do not.
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]

Embedder = Literal["local", "openai", "gemini", "voyage", "ollama", "openai-compatible"]
ProviderName = Literal["auto", Embedder, "none"]
FallbackName = Literal["none", Embedder]


LEAST_LIMIT_MB = 64
"""What memd holds before it has read a note, more or less: a smaller limit could never be kept."""
WORTH_READING = 0.35
"""The score from which on a hit is worth reading."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration file; unknown keys in it are errors."""


class DaemonSettings(_Section, frozen=True):
    """[daemon]: settings of the process."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    memory_limit_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 0  # 0: none, else LEAST_LIMIT_MB or more


class Chunking(_Section, frozen=True):
    """How a document is cut into chunks: a chunk ends at the limit that is reached first.

    Tokens are estimated: 4 ASCII characters or 1 CJK character per token.
    """

    tokens: Annotated[int, Meta(ge=1, le=8192)] = 400
    overlap: Annotated[int, Meta(ge=0, le=8191)] = 80  # less than tokens
    # As much as is shown of one hit. In a chunk of 1,600 characters the answer is outside of that window one
    # time in two, and its vector represents each part less well.
    max_chars: Annotated[int, Meta(ge=100, le=32768)] = 700
    # Whether parts are embedded, too; auto: only by the local model.
    parts: Literal["auto", "on", "off"] = "auto"


class Hybrid(_Section, frozen=True):
    """How keyword and vector scores are combined; the weights are normalised to sum to 1 when the file is read."""

    enabled: bool = True  # False: vectors only
    vector_weight: Share = 0.7
    text_weight: Share = 0.3
    candidate_multiplier: Annotated[int, Meta(ge=1, le=20)] = 4


class QuerySettings(_Section, frozen=True):
    """Defaults of a search request."""

    max_results: Annotated[int, Meta(ge=1, le=50)] = 6
    min_score: Share = WORTH_READING
    hybrid: Hybrid = Hybrid()


class SearchLimits(_Section, frozen=True):
    """Limits on the text of a reply."""

    max_snippet_chars: Annotated[int, Meta(ge=80, le=4000)] = 700
    max_injected_chars: Annotated[int, Meta(ge=200, le=1_000_000)] = 4000  # of all hits, footers included


class SyncSettings(_Section, frozen=True):
    """When the index follows the disk."""

    watch_debounce_ms: Annotated[int, Meta(ge=0, le=60_000)] = 1500
    watch_max_wait_ms: Annotated[int, Meta(ge=0, le=600_000)] = 6000
    interval_minutes: Annotated[float, Meta(ge=0, le=10_080)] = 10  # at most a week; 0: no scan on a timer
    wait_ms: Annotated[int, Meta(ge=0, le=10_000)] = 500


class CacheSettings(_Section, frozen=True):
    """The cache of vectors by text hash, shared by all agents."""

    enabled: bool = True
    max_entries: Count = 50_000


class BatchSettings(_Section, frozen=True):
    """The provider's batch API, which is cheaper and slower, for a first index."""

    enabled: bool = False
    min_chunks: Count = 500  # fewer waiting chunks than this are embedded by plain requests
    wait: bool = True  # False: submit a job and go on; its vectors are fetched when it is done
    concurrency: Annotated[int, Meta(ge=1, le=16)] = 2  # concurrent jobs
    poll_interval_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 2000
    timeout_minutes: Annotated[float, Meta(gt=0, le=10_080)] = 60


SECRETS = frozenset({"api_key", "headers"})
"""The keys of [remote] and [rerank] whose values are for the provider alone; a header may carry a key under any name."""


class Remote(_Section, frozen=True):
    """How the provider named by `provider` or, if that is local, by `fallback` is reached over HTTP."""

    base_url: str = ""  # "": the provider's default
    api_key: str = ""
    api_key_env: str = ""  # name of an environment variable
    api_key_file: str = ""  # absolute once it was read
    headers: dict[str, str] = {}
    dimensions: Annotated[int, Meta(ge=0, le=16_384)] = 0  # 0: the model's default
    query_prefix: str = ""  # put before each text, for models that expect one
    document_prefix: str = ""
    query_input_type: str = ""  # sent as input_type, for servers that accept one
    document_input_type: str = ""
    max_input_tokens: Annotated[int, Meta(ge=0, le=1_000_000)] = 0  # per text; 0: the model's limit
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 4  # concurrent requests
    query_timeout_ms: Annotated[int, Meta(ge=50, le=60_000)] = 2000
    confirm_above_chunks: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 20_000
    batch: BatchSettings = BatchSettings()

    def __repr__(self) -> str:
        """Return all fields that are not secret, so that printing settings never prints keys."""
        return f"Remote({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields that rich shows, also in tracebacks; msgspec's own method shows every field."""
        return [(name, value) for name, value in msgspec.structs.asdict(self).items() if name not in SECRETS]


class Rerank(_Section, frozen=True):
    """The reranker of the first candidates; over HTTP it receives questions and texts of memory."""

    provider: Literal["none", "cohere", "voyage", "compatible", "onnx"] = "none"
    model: str = ""  # "": the provider's default; for "onnx" a path, absolute once it was read
    base_url: str = ""  # "": the provider's default
    api_key: str = ""
    api_key_env: str = ""  # name of an environment variable
    api_key_file: str = ""  # absolute once it was read
    candidates: Annotated[int, Meta(ge=2, le=100)] = 30  # candidates sent with a question
    timeout_ms: Annotated[int, Meta(ge=10, le=10_000)] = 150  # longest time that a search waits

    @property
    def as_remote(self) -> Remote:
        """The address and key in the form of a provider's settings."""
        return Remote(
            base_url=self.base_url,
            api_key=self.api_key,
            api_key_env=self.api_key_env,
            api_key_file=self.api_key_file,
        )

    def __repr__(self) -> str:
        """Return all fields that are not secret; see Remote."""
        return f"Rerank({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields that rich shows, also in tracebacks."""
        return [(name, value) for name, value in msgspec.structs.asdict(self).items() if name not in SECRETS]


class PathMatch(_Section, frozen=True):
    """What a scope rule matches, ignoring case; absent fields match everything.

    A prefix must end at a colon or at the end of the key, unless it ends with a colon or a star itself.
    """

    channel: str | None = None
    chat_type: Literal["direct", "group", "channel"] | None = None
    key_prefix: str | None = None  # of the key without agent:<id>:
    raw_key_prefix: str | None = None  # of the whole key


class ScopeRule(_Section, frozen=True):
    """A scope rule; the first that matches decides."""

    action: Literal["allow", "deny"]
    match: PathMatch = PathMatch()


class Scope(_Section, frozen=True):
    """Which sessions may search; a request without a session key is the owner's, and always may."""

    default: Literal["allow", "deny"] = "deny"
    rules: tuple[ScopeRule, ...] = (ScopeRule(action="allow", match=PathMatch(chat_type="direct")),)


PresetName = Literal["openclaw", "claude-code", "codex", "gemini", "qwen", "opencode", "copilot"]


class SessionSettings(_Section, frozen=True):
    """Which transcripts are indexed, and when; nothing unless `sources` contains "sessions"."""

    presets: tuple[PresetName, ...] = ()
    paths: tuple[Path, ...] = ()  # files of transcripts, or directories
    # Growth in bytes that is indexed at once.
    delta_bytes: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 100_000
    delta_messages: Annotated[int, Meta(ge=0, le=1_000_000)] = 50  # growth in lines that is indexed at once
    # Any growth is indexed after so long without more.
    idle_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 120
    subagents: bool = False


class UserRule(_Section, frozen=True):
    """An additional rule for secrets."""

    name: str  # shown as [REDACTED:name]
    # A regular expression. Its group "secret" is replaced, else its first group, else the whole match.
    pattern: str


PersonalNumber = Literal["payment-card", "iban", "chinese-id", "chinese-mobile"]


class Redact(_Section, frozen=True):
    """What is removed from texts before anything else reads them."""

    mode: Literal["sessions", "all", "off"] = "sessions"
    extra: tuple[UserRule, ...] = ()
    allow: tuple[str, ...] = ()  # texts that are never secrets
    kinds: tuple[PersonalNumber, ...] = ()  # kinds of personal numbers that are removed, too


class Collection(_Section, frozen=True):
    """Files that qmd searches in addition to the agent's memory; memd must index them, too."""

    path: Path
    name: str = ""  # "": derived from the path
    pattern: str = "**/*.md"


class QmdSettings(_Section, frozen=True):
    """Settings of the external program qmd, for agents with backend = "qmd"."""

    command: str = "qmd"  # a name on PATH, or a path; ./ is relative to the workspace
    search_mode: Literal["search", "vsearch", "query"] = "search"
    collections: tuple[Collection, ...] = ()
    update_minutes: Annotated[float, Meta(ge=0, le=10_080)] = 5  # 0: no update on a timer
    debounce_seconds: Annotated[float, Meta(ge=0, le=3600)] = 15
    embed_minutes: Annotated[float, Meta(ge=0, le=10_080)] = 60  # 0: once, and on request
    timeout_ms: Annotated[int, Meta(ge=100, le=600_000)] = 4000  # for a search
    cooldown_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 60  # after a failure
    session_days: Annotated[int, Meta(ge=0, le=36_500)] = 0  # older transcripts are not exported; 0: all


class Publish(_Section, frozen=True):
    """Where an agent's memory is published."""

    to: str = ""  # name of a [shared.<name>]; "": nowhere
    memory: str = ""  # its name on the server, such as alice/main
    # memory: notes; curated: MEMORY.md and USER.md; sessions: transcripts.
    sources: tuple[Literal["memory", "curated", "sessions"], ...] = ("memory",)
    dsn_file: str = ""  # absolute once it was read; "": that of the server


class SharedMemory(_Section, frozen=True):
    """The published memory that an agent with backend = "postgres" searches."""

    server: str = ""  # name of a [shared.<name>]
    memory: str = ""  # its name on the server, such as alice/main
    dsn_file: str = ""  # see Publish


class IncludedMemory(_Section, frozen=True):
    """A published memory that is searched together with the agent's own; "team:alice/main" is a short form."""

    server: str  # name of a [shared.<name>]
    memory: str  # its name on the server, such as alice/main
    in_groups: bool = False  # conversations with other readers may see it, too
    dsn_file: str = ""  # see Publish

    @property
    def name(self) -> str:
        """The prefix of its paths in the agent's replies."""
        return f"{self.server}:{self.memory}"


def included_path(path: str, include: Iterable[IncludedMemory]) -> tuple[IncludedMemory, str] | None:
    """Return the included memory that a path begins with, and the rest of the path; None: it is the agent's own."""
    found = [one for one in include if path.startswith(f"{one.name}/")]
    if not found:
        return None
    longest = max(found, key=lambda one: len(one.name))
    return longest, path[len(longest.name) + 1 :]


class AgentSettings(_Section, frozen=True):
    """[agents.<id>]: one agent, merged over [defaults]."""

    workspace: Path
    extra_paths: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()  # globs, matched against paths in the index
    max_file_mb: Annotated[float, Meta(gt=0, le=1024)] = 16
    sources: tuple[Source, ...] = ("memory",)
    memory_presets: tuple[PresetName, ...] = ()  # agents whose own notes are searched, too
    backend: Literal["builtin", "qmd", "postgres"] = "builtin"
    citations: Literal["auto", "on", "off"] = "auto"
    timezone: str = ""  # of days and times, such as "Europe/Berlin"; "": the machine's
    provider: ProviderName = "auto"
    model: str = ""  # "": the provider's default
    fallback: FallbackName = "none"  # used with its default model
    chunking: Chunking = Chunking()
    query: QuerySettings = QuerySettings()
    limits: SearchLimits = SearchLimits()
    sync: SyncSettings = SyncSettings()
    sessions: SessionSettings = SessionSettings()
    redact: Redact = Redact()
    qmd: QmdSettings = QmdSettings()
    cache: CacheSettings = CacheSettings()
    remote: Remote = Remote()
    rerank: Rerank = Rerank()
    publish: Publish = Publish()
    shared: SharedMemory = SharedMemory()
    include: tuple[IncludedMemory, ...] = ()
    scope: Scope = Scope()


class SharedServer(_Section, frozen=True):
    """[shared.<name>]: a PostgreSQL server with memories of several machines."""

    dsn_file: Path  # readable by its owner only; one line, the DSN of a member


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All settings: of the daemon, of each agent, and of each shared server."""

    daemon: DaemonSettings
    agents: dict[str, AgentSettings]
    shared: dict[str, SharedServer] = {}
    file: Path | None  # None: there is no file, and built-in defaults apply


def differences(old: Mapping[str, AgentSettings], new: Mapping[str, AgentSettings]) -> frozenset[str]:
    """Return the ids of agents that were added, removed or changed."""
    return frozenset(agent for agent in old.keys() | new.keys() if old.get(agent) != new.get(agent))
