"""All structs that cross the socket; the only definition of the protocol.

A message is a msgpack map with its kind under ``type``. To change the protocol, add a field with a default:
readers skip fields that they do not know. Never rename, reorder or re-type a field. PROTOCOL.md describes the
frames.
"""

from typing import Literal

import msgspec

PROTOCOL = 2

Source = Literal["memory", "sessions"]
Mode = Literal["hybrid", "keyword", "vector"]
Sort = Literal["relevance", "time"]
FileSort = Literal["path", "time"]
PairReason = Literal["superseded", "copy"]
EmbedAction = Literal["pause", "resume", "confirm", "batch_on"]


class WireMessage(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=str.lower
):
    """Base of everything that is sent; ``type`` is the class name in lower case."""


class Hello(WireMessage, frozen=True):
    """The first frame in both directions; the client sends first."""

    protocol: int
    version: str


# --- requests
# ----------------------------------------------------------------------------------------------------


class Search(WireMessage, frozen=True):
    """Search memory for a question."""

    query: str
    max_results: int | None = None  # 1..50; None: as configured
    min_score: float | None = None  # 0..1; None: as configured
    source: Source | None = None  # None: all sources of the agent
    agent: str | None = None
    session_key: str | None = None  # None: the owner
    max_chars: int | None = None  # limit of all snippets together; None: as configured; 0: no limit
    now: str | None = None  # day or time at which the question is asked, in ISO 8601; None: the daemon's time
    strict: bool = False  # leave out weak hits
    mode: Mode | None = None  # how hits are found; None: in all ways available
    since: str | None = None  # a date, time or phrase such as "last week": nothing older is searched
    until: str | None = None  # likewise: nothing later than its end is searched
    sort: Sort = "relevance"  # time: newest hit first
    # Filters: all "tag:work" and "property:status=done" must match, one of "path:memory/**", and none of
    # "path:!old/".
    only: list[str] = []


class Get(WireMessage, frozen=True):
    """Read lines of an indexed file."""

    path: str  # as in a hit
    start_line: int = 1
    lines: int | None = None  # None: as many as fit into a reply
    agent: str | None = None
    session_key: str | None = None
    max_chars: int | None = None  # limit of the text, 100 or more; None: as much as fits into a reply


class Sync(WireMessage, frozen=True):
    """Bring the index up to date with the disk."""

    agent: str | None = None  # None: all agents
    force: bool = False  # read every file, even if size and time are unchanged
    wait: bool = True  # reply once all text that was on disk at the request can be searched
    vectors: bool = True  # also wait for vectors as long as they progress
    patience_ms: int | None = None  # longest wait, after which the reply says what is done
    session_key: str | None = None  # None: the owner; else only the agent of that key


class Reindex(WireMessage, frozen=True):
    """Rebuild the index beside the old one, and swap them."""

    agent: str | None = None
    force: bool = False  # embed all texts again, ignoring cached vectors
    dry_run: bool = False  # only estimate the cost
    session_key: str | None = None  # None: the owner; else only its agent, from a private conversation


class Explain(WireMessage, frozen=True):
    """Search, and explain how each candidate was ranked."""

    query: str
    max_results: int | None = None
    min_score: float | None = None
    source: Source | None = None
    agent: str | None = None
    session_key: str | None = None
    now: str | None = None
    since: str | None = None
    until: str | None = None
    sort: Sort = "relevance"
    only: list[str] = []


class Files(WireMessage, frozen=True):
    """List indexed files, page by page; for the owner only."""

    agent: str | None = None
    source: Source | None = None  # None: all sources of the agent
    folder: str | None = None  # with its final slash: only files directly in it; "": the top; None: all files
    since: str | None = None  # see Search: files with a chunk of this time
    until: str | None = None
    only: list[str] = []  # see Search
    sort: FileSort = "path"  # time: newest first; folders are always in the order of paths
    after: str | None = None  # `next` of the previous page
    max_files: int = 200  # 1..500, files and folders per page
    session_key: str | None = None  # requests with a session key are denied


class Chunks(WireMessage, frozen=True):
    """List the chunks of a file, page by page; for the owner only."""

    path: str
    agent: str | None = None
    skip: int = 0  # chunks before the page
    max_chunks: int = 50  # 1..200
    session_key: str | None = None  # requests with a session key are denied


class Turns(WireMessage, frozen=True):
    """List the turns of a transcript, page by page; for the owner only."""

    path: str
    agent: str | None = None
    skip: int = 0  # turns before the page
    max_turns: int = 50  # 1..200
    session_key: str | None = None  # requests with a session key are denied


class Duplicates(WireMessage, frozen=True):
    """List notes that are copies of each other or superseded; for the owner only."""

    agent: str | None = None
    session_key: str | None = None  # requests with a session key are denied


class Warm(WireMessage, frozen=True):
    """Bring the index up to date at the start of a session, once for each session key."""

    session_key: str
    agent: str | None = None


class Embed(WireMessage, frozen=True):
    """Pause or resume embedding, confirm the cost of what waits, or turn batch jobs on again."""

    action: EmbedAction
    agent: str | None = None  # None: all agents
    session_key: str | None = None  # None: the owner; else only its agent, from a private conversation


class Status(WireMessage, frozen=True):
    """Report the state of the daemon and its agents."""

    agent: str | None = None
    session_key: str | None = None  # None: the owner; else only the agent of that key


class RedactText(WireMessage, frozen=True, tag="redact"):
    """Redact a text before it is written to memory."""

    text: str
    agent: str | None = None
    session_key: str | None = None  # conversations with other readers are denied


class Reload(WireMessage, frozen=True):
    """Apply the whole configuration file."""

    session_key: str | None = None  # requests with a session key are denied


class Stop(WireMessage, frozen=True):
    """Stop the daemon."""

    session_key: str | None = None  # requests with a session key are denied


class Tags(WireMessage, frozen=True):
    """Count the tags of notes, and the notes that they link to."""

    agent: str | None = None  # None: all agents
    session_key: str | None = None  # None: the owner; else only its agent, and the notes that it may see


Request = (
    Search
    | Get
    | Sync
    | Reindex
    | Explain
    | Files
    | Chunks
    | Turns
    | Duplicates
    | Warm
    | Embed
    | Status
    | Reload
    | Stop
    | Tags
    | RedactText
)

# --- replies
# -----------------------------------------------------------------------------------------------------


class Hit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A search result; the lines are those of the snippet."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source = "memory"
    citation: str | None = None  # path#L3-L9, if citations are on
    own_scale: bool = False  # the score is the backend's, not memd's: min_score was not applied
    weak: bool = False  # nothing found is likely to answer the question; shown for lack of better hits
    # Its time: a day, or the first and the last with a slash between; None: unknown.
    date: str | None = None
    file_date: bool = False  # the date is the modification time of its file, as nothing in the file says
    superseded: bool = False  # its note says that it is no longer valid, or its lines are struck through
    superseded_by: str | None = None  # the replacement, as the note's front matter says
    copies: list[str] = []  # other places with the same text, at most five, each as path#L3-L9
    memory: str | None = None  # the included memory that it is from, SERVER:MEMORY; None: the agent's own


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A capability that was not available for this reply."""

    # keyword | vector | query_embedding | synonyms | rerank | watcher | provider | rebuild | store | included
    part: str
    reason: str


class Found(WireMessage, frozen=True):
    """The reply to Search."""

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
    stale: bool = False  # a recent change may be missing from these results
    degraded: list[Degraded] = []
    max_chars: int = 0  # limit of all snippets that was applied; 0: none
    omitted: int = 0  # hits that did not fit
    filtered: bool = False  # the request's filters and sort were applied; False: an older daemon ignored them


PLACES_FROM = 1_000_000_000
"""Numbers above are places within a line: what of it was read, in characters, times this, plus the number of the line."""


class Note(WireMessage, frozen=True):
    """The reply to Get. A denied path, one that is not indexed and a missing file give the same reply."""

    path: str
    text: str = ""
    missing: bool = False
    start_line: int = 1
    end_line: int = 0  # the last line in text; 0 if there is none
    # The start_line to continue with; None at the end of the file; above PLACES_FROM, within a line.
    next_line: int | None = None
    max_chars: int = 0  # configured limit of what an agent reads at once; the text may be longer
    # Lines of the file; for a transcript, and only if there is no text, the last line that has a turn.
    total_lines: int | None = None


class SyncReport(WireMessage, frozen=True):
    """The reply to Sync and Warm."""

    files: int = 0  # indexed files
    chunks: int = 0
    changed: int = 0  # files that this pass indexed again
    removed: int = 0
    took_s: float = 0.0
    vectors: str = "complete"  # complete | waiting
    waiting_chunks: int = 0
    reason: str | None = None  # why chunks wait
    missing: list[str] = []  # configured directories that do not exist
    left_out: dict[str, str] = {}  # agents that cannot run, and why
    timezone: str = ""  # of the agent of a Warm: in which its days begin; "": the machine's


class ReindexReport(WireMessage, frozen=True):
    """The reply to Reindex: started, or the estimated cost."""

    agents: list[str] = []
    dry_run: bool = False
    files: int = 0
    chunks: int = 0
    cached: int = 0  # chunks with a cached vector
    to_embed: int = 0
    tokens: int = 0  # estimate for the texts to embed
    asks: list[str] = []  # agents whose chunks would wait for Embed(action="confirm")


class ExplainedHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate of a search, and how it was ranked."""

    path: str
    start_line: int  # first line of the chunk
    end_line: int
    score: float
    cosine: float | None = None  # None: the chunk has no vector, or vectors are off
    part: float | None = None  # cosine of its best part; None: it has no parts with a vector
    keyword: float | None = None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None = None  # rank among the keyword candidates, from 1
    vector_rank: int | None = None
    terms: list[str] = []  # terms of the query that the window contains
    window: tuple[int, int] | None = None  # lines of the snippet, or of what it would have been
    # Why it is no hit: min_score | duplicate | overlap | joined | max_results; None: it is one.
    cut: str | None = None
    place: int = 0  # rank by score among all candidates, from 1
    share: float = 0.0  # 0..1: share of the weight of the query's words that it contains; 1: all of them
    meaning: float = 0.0  # contribution of its vectors to the score
    by_words: float = 0.0  # contribution of its words to the score
    places: dict[str, list[int]] = {}  # term -> lines of the window on which it begins
    # Why this window: whole | terms | part | synonyms | beginning | rest (not shown by `others`).
    chosen: str | None = None
    others: list[int] = []  # places of the candidates that show the same text, or some of its lines
    owed: bool = False  # ranked before better ones, because two hits of the other source precede it
    foreign: float = 0.0  # 0..1: share of it that is in other scripts than the query
    taken: float = 0.0  # 0..1: share of the query's words that it is assumed to contain as such a text
    # 0..1: the part of the query's words that it contains as they are, as synonyms or translated
    expanded: float = 0.0
    alternatives: float = 0.0  # what of expanded the synonyms and translations add
    # It is of a time that the query names, so that meaning and by_words are multiplied by time_factor.
    of_time: bool = False
    within: float = 0.0  # 0..1: the part of its time that the query names; 1: it is of no other time
    time_factor: float = 1.0
    repeats: bool = False  # it only repeats the question, for which its score was lowered
    superseded: bool = False  # it is no longer valid, for which its score was lowered
    # Place of an older chunk that this one replaces: this one is ranked before it, with its score.
    older: int | None = None


class Explanation(WireMessage, frozen=True):
    """The reply to Explain.

    The score of a candidate is tanh(meaning + by_words). Its closeness is .4 x cosine + .6 x part, or its
    cosine if it has no part, or assumed_cosine if it has no cosine. meaning is vector_share x (closeness - background - a) /
    (b - a), at least 0, with [a, b] = calibration. by_words is text_share x share_weight x share; to
    share is added (1 - foreign) x synonyms_weight x alternatives and, if it is more than 0, foreign x (the lesser of 1 and
    taken + translations_weight x expanded, less share). Both are multiplied by time_factor. min_score cuts candidates
    with a lower score.
    """

    found: Found
    terms: list[str] = []  # terms of the query that the keyword index was asked for
    match: str = ""  # the query to the keyword index
    vector_weight: float = 0.0  # as configured
    text_weight: float = 0.0
    min_score: float = 0.0
    candidates: list[ExplainedHit] = []  # the first candidates, and those of the others that are hits
    phrases: list[str] = []  # terms that are names or quotations
    left_out: list[str] = []  # words of the query that are not searched for
    vector_share: float = 0.0  # weight that was used, 1 by the default weights; 0: vectors found nothing
    text_share: float = 0.0
    share_weight: float = 0.0  # of the share of the query's words
    synonyms_weight: float = 0.0  # of what synonyms add to that share
    translations_weight: float = 0.0  # of what text in another script contains in any form
    assumed_cosine: float | None = None  # assumed for a chunk that has no vector yet
    calibration: tuple[float, float] | None = None  # cosines that count as 0 and as 1
    max_results: int = 0
    by_words: int = 0  # candidates found by keywords
    by_meaning: int = 0  # candidates found by vectors
    by_synonyms: int = 0  # candidates without a vector, found by synonyms and translations
    considered: int = 0  # all candidates
    background: float = 0.0  # subtracted from each cosine: how close the query is to the index as a whole
    share_taken: float = 0.0  # the largest `taken` of a candidate
    strength: float = 0.0  # of the best candidate; the hits are weak if it is below answers_from
    answers_from: float = 0.0
    missing: list[str] = []  # names in the query that occur in no text; each lowers the strength
    alternatives: dict[str, list[str]] = {}  # word of the query -> its synonyms and translations


class ListedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An indexed file."""

    path: str  # as in a hit
    source: Source = "memory"
    size: int = 0  # bytes
    modified: float = 0.0  # Unix time
    date: str | None = None  # as in a hit, of all its chunks together
    file_date: bool = False  # as in a hit
    chunks: int = 0
    tags: list[str] = []
    superseded: bool = False  # it says that it is no longer valid
    superseded_by: str | None = None  # its replacement


class FileList(WireMessage, frozen=True):
    """The reply to Files."""

    agent: str
    files: list[ListedFile] = []
    # Subfolders of the requested folder: path with its final slash -> files below it.
    folders: dict[str, int] = {}
    total: int = 0  # files in the folder and below that pass the filters
    next: str | None = None  # `after` of the next page; None: this was the last


class ListedChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk of a file."""

    start_line: int
    end_line: int
    text: str
    context: str = ""  # title and headings; searched with the text, never shown in a hit
    windows: list[tuple[int, int]] = []  # first and last line of each part that is embedded separately
    vector: str = "waiting"  # waiting | done | refused


class ChunkList(WireMessage, frozen=True):
    """The reply to Chunks."""

    path: str
    missing: bool = False
    source: Source = "memory"
    chunks: list[ListedChunk] = []  # in the order of their lines
    total: int = 0
    next: int | None = None  # `skip` of the next page; None: this was the last
    redacted: dict[str, int] = {}  # kind of secret -> how often it was redacted in the file


class ListedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of a transcript."""

    role: str  # user | assistant
    at: float | None = None  # Unix time; None: the transcript does not say
    start_line: int
    end_line: int
    text: str  # redacted
    cut: int = 0  # characters cut off at its end; Get returns them


class TurnList(WireMessage, frozen=True):
    """The reply to Turns."""

    path: str
    missing: bool = False
    turns: list[ListedTurn] = []  # in order
    total: int = 0
    next: int | None = None  # `skip` of the next page; None: this was the last


class NoteLines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines of a note."""

    path: str
    start_line: int | None = None  # None: the whole note
    end_line: int | None = None


class NotePair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two notes, one of which is a copy or superseded."""

    why: PairReason
    one: NoteLines  # the earlier copy, or the superseded note
    other: NoteLines | None = None  # None: the replacement is not named, or not indexed
    by: str | None = None  # name of the replacement, as the note says


class DuplicateList(WireMessage, frozen=True):
    """The reply to Duplicates: superseded notes first, in the order of paths."""

    agent: str = ""
    pairs: list[NotePair] = []
    more: bool = False  # there are more pairs


class Vectors(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of embedding, in chunks."""

    done: int = 0
    waiting: int = 0
    eta_s: float | None = None  # None: nothing waits, or the rate is not known yet
    note: str | None = None  # why none are made, if that is no failure
    resident_mb: float = 0.0  # memory that they and the keyword index take
    # Searches read them from disk, because their memory was given up to keep the limit.
    on_disk: bool = False


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """A sync pass."""

    at: float  # Unix time of its end
    took_s: float
    failed: str | None = None
    changed: int = 0  # files that were indexed again
    removed: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a sync pass or rebuild, in files."""

    done: int
    total: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a part works, and why not."""

    ok: bool = True
    reason: str | None = None


class VectorHealth(Health, frozen=True, kw_only=True):
    """The same for vector search, as it was last found to work."""

    enabled: bool = True  # by the configuration
    available: bool = True


class BackendFallback(msgspec.Struct, frozen=True, kw_only=True):
    """Says that the built-in backend answers in place of the configured one."""

    from_: str = msgspec.field(name="from")  # the configured one
    reason: str
    since: float | None = None  # Unix time of the first failure in a row; None: it is not ready yet
    retry_at: float | None = None  # Unix time from which a search tries it again


class QmdStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The qmd of an agent, while it answers."""

    command: str  # path or name of the program
    version: str | None = None  # None: unknown
    search_mode: str = "search"
    collections: list[str] = []
    files: int | None = None  # files in its collections; None: unknown
    exported: int = 0  # transcripts exported for it
    left_alone: int = 0  # files in the export directory that memd did not write
    updating: bool = False
    last_update: float | None = None  # Unix time of the last that succeeded
    update_failure: str | None = None  # why the last one failed
    last_embed: float | None = None  # Unix time of the last that succeeded
    warnings: list[str] = []  # parts of its configuration that are not used, and why


class PublishStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far an agent's memory is published."""

    to: str  # name of the server in the configuration
    memory: str  # name of the memory on the server
    files: int = 0  # files of which the server has the current version
    waiting: int = 0  # files that the server lacks or must drop
    reason: str | None = None  # why nothing is published now
    taken_back: int = 0  # vectors that the server had, which were not embedded again since the daemon began


class IncludedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A published memory that the agent searches together with its own."""

    memory: str  # SERVER:MEMORY, the prefix of its hits' paths
    reason: str | None = None  # why it is not searched now


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """State of the batch API of a provider."""

    enabled: bool = False  # by the configuration
    on: bool = True  # False: it failed too often, and plain requests are used instead
    failures: int = 0  # since the last success
    limit: int = 2  # failures that turn it off
    jobs: int = 0  # jobs in progress
    texts: int = 0  # texts in these jobs
    files_left: int = 0  # files of ended jobs that the provider still stores
    reason: str | None = None  # last failure, or why there are no jobs
    at: float | None = None  # Unix time of the last failure


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an agent's chunks are embedded, and if not, why."""

    # One of: working | backing_off | stopped | paused | waiting_for_confirmation | none (no provider).
    state: str = "working"
    reason: str | None = None  # with what to do about it
    next_try_s: float | None = None  # after a failure of the provider or the store
    chunks: int | None = None  # chunks to send, if confirmation is required
    tokens: int | None = None  # estimated tokens of these
    batch: BatchStatus | None = None  # None: the provider has no batch API


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """An embedding provider that was considered, and why it was not chosen."""

    provider: str
    reason: str


class FallbackStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The fallback embedding provider."""

    provider: str
    in_use: bool = False  # it answers in place of the first one
    instead_of: str | None = None  # name of the first one
    reason: str | None = None  # why it is in use, or why it is not available


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """The indexed transcripts of an agent."""

    files: int = 0
    turns: int = 0  # turns in them; those that a forked session shares count in both
    waiting: int = 0  # transcripts that have grown, and are indexed after more growth or a pause
    lines_skipped: dict[str, int] = {}  # broken | unknown | too_long -> lines without a turn


class Slowest(msgspec.Struct, frozen=True, kw_only=True):
    """The slowest of some searches, and where its time went."""

    at: float  # Unix time of its end
    took_ms: float
    parts: dict[str, float] = {}  # part -> ms, longest first; empty if it was fast


class Searches(msgspec.Struct, frozen=True, kw_only=True):
    """How long an agent's last searches took in the daemon, at most the last hundred."""

    count: int
    median_ms: float
    slowest: Slowest
    last_ms: list[float] = []  # of each, oldest first


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one agent."""

    workspace: str
    backend: str
    provider: str
    model: str
    files: int
    chunks: int
    vectors: Vectors
    dirty: int  # changed paths that are not indexed yet; a look at everything counts as one
    skipped: dict[str, int]  # reason -> number of files
    keyword: Health
    vector: VectorHealth
    watcher: Health
    provider_health: Health
    store_bytes: int
    last_pass: Pass | None = None
    # Passes that changed something or failed, newest first, at most 20.
    passes: list[Pass] = []
    rebuild: str | None = None  # why the index is being rebuilt; None: it is not
    sources: list[str] = []
    extra_paths: list[str] = []
    progress: Progress | None = None  # None: no files are being read
    store: Health = Health()  # whether the index can be opened, read and written
    damaged: list[str] = []  # its damaged files that were set aside, newest first
    embedding: Embedding | None = None  # None: nothing is embedded
    endpoint: str | None = None  # host that texts are sent to; None: they stay on this machine
    chosen: str = ""  # why this provider was chosen
    passed_over: list[PassedOver] = []  # providers that were considered first, in that order
    fallback: FallbackStatus | None = None  # None: none is configured
    sessions: Sessions | None = None  # None: transcripts are not among its sources
    redacted: dict[str, int] = {}  # kind of secret -> how often it was redacted in indexed text
    backend_fallback: BackendFallback | None = None  # None: the configured backend answers
    qmd: QmdStatus | None = None  # None: it does not answer now, or is not configured
    searches: Searches | None = None  # None: there were no searches since the daemon started
    publish: PublishStatus | None = None  # None: nothing is published
    included: list[IncludedStatus] = []  # memories of others that are searched, too


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory held by the processes of memd, in millions of bytes."""

    daemon_mb: float
    worker_mb: float = 0.0  # of processes that embed; 0: none is running
    limit_mb: int = 0  # of all processes together; 0: no limit
    trouble: str | None = None  # why the limit is exceeded, and what to do about it


class SentToProvider(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent to an embedding provider and answered, and therefore is paid for."""

    provider: str
    model: str
    texts: int
    tokens: int  # estimate


class EmbedReport(WireMessage, frozen=True):
    """The reply to Embed: the current state of the agents."""

    agents: dict[str, Embedding] = {}


class NameCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag, or the name of a note that others link to, with its count."""

    name: str  # as written; a tag without #
    notes: int  # number of notes with it
    missing: bool = False  # for a link: no note of that name is indexed, as far as the caller may see


class AgentTags(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tags and links of one agent's notes, most frequent first."""

    tags: list[NameCount] = []
    links: list[NameCount] = []
    omitted: int = 0  # names beyond the first thousand of either kind


class TagsReport(WireMessage, frozen=True):
    """The reply to Tags."""

    agents: dict[str, AgentTags] = {}


class StatusReport(WireMessage, frozen=True):
    """The reply to Status."""

    version: str
    protocol: int
    pid: int
    uptime_s: float
    socket: str
    config: str | None  # the file in use; None: built-in defaults
    agents: dict[str, AgentStatus]
    # Why the configuration file cannot be used; the previous configuration stays in use.
    config_error: str | None = None
    config_waiting: list[str] = []  # changed settings that wait for Reload
    config_digest: str = ""  # equal for equal settings of one version; "": unknown
    cache: Health = Health()  # the cache of vectors by text, without which texts may be embedded again
    synonyms: Health = Health()  # the thesaurus, without which notes are found by their own words alone
    # Background work of the daemon: listening, saving vectors, keeping the memory limit.
    daemon_health: Health = Health()
    damaged: list[str] = []  # damaged files of the cache that were set aside, newest first
    memory: Memory | None = None  # None: the system does not say
    sent: list[SentToProvider] = []  # since the cache of vectors was created, for all agents


class RedactedText(WireMessage, frozen=True, tag="redacted"):
    """The reply to RedactText."""

    text: str  # with as many line ends as before
    counts: dict[str, int] = {}  # kind of secret -> number of redactions
    agent: str = ""  # the agent whose rules were applied
    workspace: str = ""  # that agent's workspace
    timezone: str = ""  # in which its days begin, such as "Europe/Berlin"; "": the machine's


class Reloaded(WireMessage, frozen=True):
    """The reply to Reload: the file was applied, unless there is an error."""

    config: str | None = None  # the file; None: built-in defaults
    changed: list[str] = []  # settings that have changed
    error: str | None = None  # why the file cannot be used; the previous configuration stays in use


class Stopping(WireMessage, frozen=True):
    """The reply to Stop: the daemon ends."""

    pid: int  # as the daemon sees it; in another pid namespace the number differs


class Failure(WireMessage, frozen=True):
    """The request failed; the connection stays open unless the code is `protocol`."""

    code: str  # bad_request | unsupported | too_large | unknown_agent | denied | busy | timed_out | unavailable | internal | protocol
    message: str
    hint: str | None = None


Reply = (
    Found
    | Note
    | SyncReport
    | ReindexReport
    | Explanation
    | FileList
    | ChunkList
    | TurnList
    | DuplicateList
    | EmbedReport
    | StatusReport
    | RedactedText
    | Reloaded
    | Stopping
    | TagsReport
    | Failure
)
