"""Every struct that crosses the socket; the only definition of the protocol.

A message is a msgpack map with its kind under ``type``. To change the protocol, add a field with a default:
a reader skips fields it does not know. Never rename, reorder or re-type one. PROTOCOL.md describes the frames.
"""

from typing import Literal

import msgspec

PROTOCOL = 1

Source = Literal["memory", "sessions"]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=str.lower):
    """Base of everything that is sent; ``type`` is the class name in lower case."""


class Hello(Message, frozen=True):
    """The first frame in both directions, the client first."""

    protocol: int
    version: str


# --- what a client asks ------------------------------------------------------------------------------------------


class Search(Message, frozen=True):
    """Find what memory says about a question."""

    query: str
    max_results: int | None = None  # 1..50; None: the configured number
    min_score: float | None = None  # 0..1, against the calibrated cosine; None: the configured one
    source: Source | None = None  # None: every source the agent has
    agent: str | None = None
    session_key: str | None = None  # None: the owner


class Get(Message, frozen=True):
    """Read lines of an indexed file."""

    path: str  # as a hit gave it
    start_line: int = 1
    lines: int | None = None  # None: as many as one reply holds
    agent: str | None = None
    session_key: str | None = None


class Sync(Message, frozen=True):
    """Bring the index up to date with the disk."""

    agent: str | None = None  # None: all
    force: bool = False  # look into every file, whatever its size and time say
    wait: bool = True  # answer when all text that was on disk at the request is searchable
    vectors: bool = True  # and wait on for vectors while they progress
    patience_ms: int | None = None  # answer after this long at the latest, with what is done by then


class Reindex(Message, frozen=True):
    """Build the index anew beside the old one, and swap."""

    agent: str | None = None
    force: bool = False  # embed again too: cached vectors are not used
    dry_run: bool = False  # only tell what it would cost


class Explain(Message, frozen=True):
    """Search, and tell how each hit came to its place."""

    query: str
    max_results: int | None = None
    min_score: float | None = None
    source: Source | None = None
    agent: str | None = None
    session_key: str | None = None


class Warm(Message, frozen=True):
    """A session begins: bring the index up to date, once for each session key."""

    session_key: str
    agent: str | None = None


class Status(Message, frozen=True):
    """How is everything?"""

    agent: str | None = None


Request = Search | Get | Sync | Reindex | Explain | Warm | Status

# --- what the daemon answers -------------------------------------------------------------------------------------


class Hit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One search result; the lines are those of the snippet."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source = "memory"
    citation: str | None = None  # path#L3-L9, where citations are on


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A capability that was missing for this reply."""

    part: str  # keyword | vector | query_embedding | watcher | provider | rebuild
    reason: str


class Found(Message, frozen=True):
    """The answer to Search."""

    results: list[Hit] = []
    backend: str = "builtin"
    provider: str = "none"
    model: str = ""
    mode: str = "hybrid"  # hybrid | keyword | vector
    fallback: bool = False
    fallback_from: str | None = None
    fallback_reason: str | None = None
    citations: bool = False
    scope_denied: bool = False
    stale: bool = False  # something written is not in these results yet
    degraded: list[Degraded] = []


class Note(Message, frozen=True):
    """The answer to Get. A denied path, one that is not indexed and a missing file look the same."""

    path: str
    text: str = ""
    missing: bool = False
    start_line: int = 1
    end_line: int = 0  # of the last line in text; 0 where there is none
    next_line: int | None = None  # where to read on; None at the end of the file


class SyncReport(Message, frozen=True):
    """The answer to Sync and Warm."""

    files: int = 0  # indexed now
    chunks: int = 0
    changed: int = 0  # files indexed again by this pass
    removed: int = 0
    took_s: float = 0.0
    vectors: str = "complete"  # complete | waiting
    waiting_chunks: int = 0
    reason: str | None = None  # why chunks wait


class ReindexReport(Message, frozen=True):
    """The answer to Reindex: started, or what it would cost."""

    agents: list[str] = []
    dry_run: bool = False
    files: int = 0
    chunks: int = 0
    cached: int = 0  # chunks whose vector is already there
    to_embed: int = 0
    tokens: int = 0  # estimate for the chunks to embed


class ExplainedHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One candidate of a search, and how it came to its place."""

    path: str
    start_line: int  # of the chunk
    end_line: int
    score: float
    cosine: float | None = None  # None: the chunk has no vector, or vectors are off
    calibrated: float | None = None  # 0..1; what min_score is compared with
    keyword: float | None = None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None = None  # 1-based place among the keyword candidates
    vector_rank: int | None = None
    terms: list[str] = []  # the query's terms that the window holds
    window: tuple[int, int] | None = None  # lines of the snippet
    cut: str | None = (
        None  # None: it is a hit; else what cut it: min_score | duplicate | overlap | max_results
    )


class Explanation(Message, frozen=True):
    """The answer to Explain."""

    found: Found
    terms: list[str] = []  # of the query, as the keyword index is asked
    match: str = ""  # the expression the keyword index got
    vector_weight: float = 0.0
    text_weight: float = 0.0
    min_score: float = 0.0
    candidates: list[ExplainedHit] = []


class Vectors(msgspec.Struct, frozen=True, kw_only=True):
    """How far embedding is, in chunks."""

    done: int = 0
    waiting: int = 0
    eta_s: float | None = None  # None: nothing waits, or no rate is known yet


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """The last sync pass."""

    at: float  # unix time of its end
    took_s: float
    failed: str | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a part works, and why not."""

    ok: bool = True
    reason: str | None = None


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One agent at a glance."""

    workspace: str
    backend: str
    provider: str
    model: str
    files: int
    chunks: int
    vectors: Vectors
    dirty: int  # paths that changed and wait for a pass
    skipped: dict[str, int]  # reason -> files
    keyword: Health
    vector: Health
    watcher: Health
    provider_health: Health
    store_bytes: int
    last_pass: Pass | None = None
    rebuild: str | None = None  # what is being rebuilt, and why; None: nothing
    sources: list[str] = []
    extra_paths: list[str] = []


class StatusReport(Message, frozen=True):
    """The answer to Status."""

    version: str
    protocol: int
    pid: int
    uptime_s: float
    socket: str
    config: str | None  # the file in use; None: built-in defaults
    agents: dict[str, AgentStatus]
    config_error: str | None = None  # why the last reload kept the old configuration


class Failure(Message, frozen=True):
    """The request could not be answered; the connection lives unless the code is about the protocol."""

    code: str  # bad_request | unsupported | too_large | unknown_agent | busy | timed_out | unavailable | internal | protocol
    message: str
    hint: str | None = None


Reply = Found | Note | SyncReport | ReindexReport | Explanation | StatusReport | Failure
