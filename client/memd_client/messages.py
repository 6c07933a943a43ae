"""Every struct that crosses the socket; the only definition of the protocol.

A message is a msgpack map with its kind under ``type``. To change the protocol, add a field with a default:
a reader skips fields it does not know. Never rename, reorder or re-type one. PROTOCOL.md describes the frames.
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
    """The first frame in both directions, the client first."""

    protocol: int
    version: str


# --- what a client asks ------------------------------------------------------------------------------------------


class Search(WireMessage, frozen=True):
    """Find what memory says about a question."""

    query: str
    max_results: int | None = None  # 1..50; None: the configured number
    min_score: float | None = None  # 0..1, the least score of a hit; None: the configured one
    source: Source | None = None  # None: every source the agent has
    agent: str | None = None
    session_key: str | None = None  # None: the owner
    max_chars: int | None = None  # of all snippets; None: the configured number; 0: as many as there are
    now: str | None = None  # the day or moment at which it is asked, in ISO 8601; None: that of the daemon
    strict: bool = False  # no weak hits
    mode: Mode | None = None  # what hits are found by; None: by all there is
    since: str | None = None  # a date, a time or a phrase such as "last week": nothing older takes part
    until: str | None = None  # likewise: nothing that is later than its end
    sort: Sort = "relevance"  # time: the newest hit first
    # What takes part: "tag:work" and "property:status=done", each of them; "path:memory/**", one of them, none of "path:!old/".
    only: list[str] = []


class Get(WireMessage, frozen=True):
    """Read lines of an indexed file."""

    path: str  # as a hit gave it
    start_line: int = 1
    lines: int | None = None  # None: as many as one reply holds
    agent: str | None = None
    session_key: str | None = None
    max_chars: int | None = None  # of the text, 100 or more; None: as many as one reply holds


class Sync(WireMessage, frozen=True):
    """Bring the index up to date with the disk."""

    agent: str | None = None  # None: all
    force: bool = False  # look into every file, whatever its size and time say
    wait: bool = True  # answer when all text that was on disk at the request is searchable
    vectors: bool = True  # and wait on for vectors while they progress
    patience_ms: int | None = None  # answer after this long at the latest, with what is done by then
    session_key: str | None = None  # None: the owner; else the agent of that key alone


class Reindex(WireMessage, frozen=True):
    """Build the index anew beside the old one, and swap."""

    agent: str | None = None
    force: bool = False  # embed again too: cached vectors are not used
    dry_run: bool = False  # only tell what it would cost
    session_key: str | None = None  # None: the owner; else its agent alone, if nobody else reads along


class Explain(WireMessage, frozen=True):
    """Search, and tell how each hit came to its place."""

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
    """Which files are indexed? Told to the owner alone, a page at a time."""

    agent: str | None = None
    source: Source | None = None  # None: every source the agent has
    folder: str | None = None  # with its last slash: what lies in it alone; "": at the top; None: every file
    since: str | None = None  # as of Search: files of which a chunk is of this time
    until: str | None = None
    only: list[str] = []  # as of Search
    sort: FileSort = "path"  # time: the newest first; a folder is always in the order of paths
    after: str | None = None  # the next of the page before
    max_files: int = 200  # 1..500, files and folders of the page
    session_key: str | None = None  # a session is denied


class Chunks(WireMessage, frozen=True):
    """How is a file cut into chunks? Told to the owner alone, a page at a time."""

    path: str
    agent: str | None = None
    skip: int = 0  # chunks before the page
    max_chunks: int = 50  # 1..200
    session_key: str | None = None  # a session is denied


class Turns(WireMessage, frozen=True):
    """What was said in a transcript? Told to the owner alone, a page at a time."""

    path: str
    agent: str | None = None
    skip: int = 0  # turns before the page
    max_turns: int = 50  # 1..200
    session_key: str | None = None  # a session is denied


class Duplicates(WireMessage, frozen=True):
    """Which notes say the same, or are replaced by others? Told to the owner alone."""

    agent: str | None = None
    session_key: str | None = None  # a session is denied


class Warm(WireMessage, frozen=True):
    """A session begins: bring the index up to date, once for each session key."""

    session_key: str
    agent: str | None = None


class Embed(WireMessage, frozen=True):
    """Have embedding pause or go on, pay for what waits, or have batch jobs again."""

    action: EmbedAction
    agent: str | None = None  # None: all
    session_key: str | None = None  # None: the owner; else its agent alone, if nobody else reads along


class Status(WireMessage, frozen=True):
    """How is everything?"""

    agent: str | None = None
    session_key: str | None = None  # None: the owner; else the agent of that key alone


class RedactText(WireMessage, frozen=True, tag="redact"):
    """Take out of a text what is secret, before somebody writes it down."""

    text: str
    agent: str | None = None
    session_key: str | None = None  # a conversation that others read along is denied


class Reload(WireMessage, frozen=True):
    """Bring all that the configuration file says into force."""

    session_key: str | None = None  # a session is denied


class Stop(WireMessage, frozen=True):
    """End the daemon."""

    session_key: str | None = None  # a session is denied


class Tags(WireMessage, frozen=True):
    """Which tags do notes have, and to which notes do they link?"""

    agent: str | None = None  # None: all
    session_key: str | None = None  # None: the owner; else its agent alone, and the notes that it may see


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
    own_scale: bool = False  # the score is the backend's, not memd's: min_score did not cut it
    weak: bool = False  # shown for want of better: nothing that was found is likely to answer
    # Of when it is: a day, or the first and the last with a slash between; None: not known.
    date: str | None = None
    file_date: bool = False  # that is when its file was written: nothing in it says
    superseded: bool = False  # its note says that it holds no more, or its lines are struck through
    superseded_by: str | None = None  # what replaced that note, by its front matter
    copies: list[str] = []  # where else the same is said, at most five places, each as path#L3-L9
    memory: str | None = None  # the included memory that it is from, SERVER:MEMORY; None: the agent's own


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A capability that was missing for this reply."""

    part: str  # keyword | vector | query_embedding | watcher | provider | rebuild | store | included
    reason: str


class Found(WireMessage, frozen=True):
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
    stale: bool = False  # something written is not in these results yet, or may not be
    degraded: list[Degraded] = []
    max_chars: int = 0  # of all snippets, as was asked or is configured; 0: as many as there are
    omitted: int = 0  # hits that had no room
    filtered: bool = False  # the filters of the request, and its sort, are known; False: an older daemon has passed them over


PLACES_FROM = 1_000_000_000
"""Numbers above are places within a line: what of it was read, in characters, times this, plus the number of the line."""


class Note(WireMessage, frozen=True):
    """The answer to Get. A denied path, one that is not indexed and a missing file look the same."""

    path: str
    text: str = ""
    missing: bool = False
    start_line: int = 1
    end_line: int = 0  # of the last line in text; 0 where there is none
    # Where to read on; None at the end of the file; above PLACES_FROM, within a line.
    next_line: int | None = None
    max_chars: int = 0  # what an agent is to read at once, as is configured; the text may have more
    # Of the file; of a transcript, and only where there is no text, the last on which something is said.
    total_lines: int | None = None


class SyncReport(WireMessage, frozen=True):
    """The answer to Sync and Warm."""

    files: int = 0  # indexed now
    chunks: int = 0
    changed: int = 0  # files indexed again by this pass
    removed: int = 0
    took_s: float = 0.0
    vectors: str = "complete"  # complete | waiting
    waiting_chunks: int = 0
    reason: str | None = None  # why chunks wait


class ReindexReport(WireMessage, frozen=True):
    """The answer to Reindex: started, or what it would cost."""

    agents: list[str] = []
    dry_run: bool = False
    files: int = 0
    chunks: int = 0
    cached: int = 0  # chunks whose vector is already there
    to_embed: int = 0
    tokens: int = 0  # estimate for the chunks to embed
    asks: list[str] = []  # agents whose chunks would wait for Embed(action="confirm")


class ExplainedHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One candidate of a search, and how it came to its place."""

    path: str
    start_line: int  # of the chunk
    end_line: int
    score: float
    cosine: float | None = None  # None: the chunk has no vector, or vectors are off
    part: float | None = None  # the cosine of its best part; None: it has no parts with a vector
    keyword: float | None = None  # r = -bm25; None: no keyword matched
    keyword_rank: int | None = None  # 1-based place among the keyword candidates
    vector_rank: int | None = None
    terms: list[str] = []  # the query's terms that the window holds
    window: tuple[int, int] | None = None  # lines of the snippet, or of what it would have been
    # None: it is a hit; else what cut it: min_score | duplicate | overlap | joined | max_results.
    cut: str | None = None
    place: int = 0  # by its score among all candidates, from 1
    share: float = 0.0  # 0..1, of what the question's words tell: 1 where it holds each of them
    meaning: float = 0.0  # what its vectors give to the score
    by_words: float = 0.0  # what its words give to the score
    places: dict[str, list[int]] = {}  # term -> the lines of the window that it begins on
    chosen: str | None = None  # why this window: whole | terms | part | beginning | rest (not in others)
    others: list[int] = []  # places of those that show the same text, or some of its lines
    owed: bool = False  # it comes before better ones, because two hits of the other source stand before it
    foreign: float = 0.0  # 0..1, how much of it is written in other scripts than the query
    # It is of a time that the query names, so that meaning and by_words are 1.5 times as much.
    of_time: bool = False
    repeats: bool = False  # it only repeats the question, so that its score was lowered
    superseded: bool = False  # it holds no more, so that its score was lowered
    # The place of what says the same earlier: it is in front of that, with its score.
    older: int | None = None


class Explanation(WireMessage, frozen=True):
    """The answer to Explain.

    The score of a candidate is tanh(meaning + by_words). Where its closeness is .35 x cosine + .65 x part, or its cosine
    where it has no part, or assumed_cosine where it has no cosine, meaning is vector_share x (closeness - background - a)
    / (b - a), at least 0, with [a, b] = calibration; by_words is text_share x .8 x share, and of a share below
    share_taken, foreign of what is missing to that is added to it. Both are 1.5 times as much of a candidate that is of_time.
    min_score cuts what scores less.
    """

    found: Found
    terms: list[str] = []  # of the query, as the keyword index is asked
    match: str = ""  # the expression the keyword index got
    vector_weight: float = 0.0  # as configured
    text_weight: float = 0.0
    min_score: float = 0.0
    candidates: list[ExplainedHit] = []  # the first of all, and of the others the hits
    phrases: list[str] = []  # those of the terms that are names or quotations
    left_out: list[str] = []  # words of the query that are not looked for
    vector_share: float = 0.0  # as it counted, 1 by the default weights; 0: it has found nothing
    text_share: float = 0.0
    assumed_cosine: float | None = None  # of a chunk that has no vector yet
    calibration: tuple[float, float] | None = None  # the cosines that mean 0 and 1
    max_results: int = 0
    by_words: int = 0  # candidates that keywords proposed
    by_meaning: int = 0  # candidates that vectors proposed
    considered: int = 0  # candidates in all
    background: float = 0.0  # a cosine: how close the query is to all of the index counts that much less
    share_taken: float = 0.0  # of the query's words that text in another script is taken to hold
    strength: float = 0.0  # of the strongest candidate; the hits are weak where it is below answers_from
    answers_from: float = 0.0
    missing: list[str] = []  # names that are asked for, and that no text holds: each takes off some strength


class ListedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An indexed file."""

    path: str  # as a hit has it
    source: Source = "memory"
    size: int = 0  # bytes
    modified: float = 0.0  # unix time
    date: str | None = None  # as of a hit, of all its chunks together
    file_date: bool = False  # as of a hit
    chunks: int = 0
    tags: list[str] = []
    superseded: bool = False  # it says that it holds no more
    superseded_by: str | None = None  # what replaced it


class FileList(WireMessage, frozen=True):
    """The answer to Files."""

    agent: str
    files: list[ListedFile] = []
    # Of the folder that was asked for: path, with its last slash -> files below it.
    folders: dict[str, int] = {}
    total: int = 0  # files that the filters let through, in the folder and below
    next: str | None = None  # where to read on; None: this was the last page


class ListedChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk of a file."""

    start_line: int
    end_line: int
    text: str
    context: str = ""  # what places it: titles, headings; searched with it, never shown in a hit
    windows: list[tuple[int, int]] = []  # first and last line of each part with a vector of its own
    vector: str = "waiting"  # waiting | done | refused


class ChunkList(WireMessage, frozen=True):
    """The answer to Chunks."""

    path: str
    missing: bool = False
    source: Source = "memory"
    chunks: list[ListedChunk] = []  # in the order of their lines
    total: int = 0
    next: int | None = None  # the skip of the next page; None: this was the last
    redacted: dict[str, int] = {}  # kind of secret -> how often it was taken out of the file


class ListedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of a transcript."""

    role: str  # user | assistant
    at: float | None = None  # unix time; None: the transcript does not say
    start_line: int
    end_line: int
    text: str  # redacted
    cut: int = 0  # characters at its end that had no room: Get reads them


class TurnList(WireMessage, frozen=True):
    """The answer to Turns."""

    path: str
    missing: bool = False
    turns: list[ListedTurn] = []  # in order
    total: int = 0
    next: int | None = None  # the skip of the next page; None: this was the last


class NoteLines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines of a note."""

    path: str
    start_line: int | None = None  # None: all of it is meant
    end_line: int | None = None


class NotePair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two notes of which one is needless, or replaced."""

    why: PairReason
    one: NoteLines  # the earlier, or the one that holds no more
    other: NoteLines | None = None  # None: no such note is indexed, or it does not say what replaced it
    by: str | None = None  # what replaced it, as it says


class DuplicateList(WireMessage, frozen=True):
    """The answer to Duplicates: what is superseded first, in the order of paths."""

    agent: str = ""
    pairs: list[NotePair] = []
    more: bool = False  # there are others


class Vectors(msgspec.Struct, frozen=True, kw_only=True):
    """How far embedding is, in chunks."""

    done: int = 0
    waiting: int = 0
    eta_s: float | None = None  # None: nothing waits, or no rate is known yet
    note: str | None = None  # why none are made, where that is no trouble
    resident_mb: float = 0.0  # of memory that they take, and the keyword index with them
    # A search reads them from the index: their memory was given up, to keep below the limit.
    on_disk: bool = False


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """A sync pass."""

    at: float  # unix time of its end
    took_s: float
    failed: str | None = None
    changed: int = 0  # files that were indexed anew
    removed: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a sync pass, or a rebuild, is with its files."""

    done: int
    total: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a part works, and why not."""

    ok: bool = True
    reason: str | None = None


class VectorHealth(Health, frozen=True, kw_only=True):
    """The same of search by meaning, and whether there is any: as it was found, not as it was hoped."""

    enabled: bool = True  # by the configuration
    available: bool = True


class BackendFallback(msgspec.Struct, frozen=True, kw_only=True):
    """That the built-in engine answers in the place of the one that was chosen."""

    from_: str = msgspec.field(name="from")  # the one that was chosen
    reason: str
    since: float | None = None  # unix time of the first failure in a row; None: it is not ready yet
    retry_at: float | None = None  # unix time; the first search from then on tries it again


class QmdStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The engine qmd of an agent, while it answers."""

    command: str  # that is run
    version: str | None = None  # None: it does not tell
    search_mode: str = "search"
    collections: list[str] = []
    files: int | None = None  # that it has; None: it does not tell
    exported: int = 0  # transcripts that were written out for it
    left_alone: int = 0  # files in the directory of these that memd did not write
    updating: bool = False
    last_update: float | None = None  # unix time of the last that succeeded
    update_failure: str | None = None  # why the last one did not
    last_embed: float | None = None  # unix time of the last that succeeded
    warnings: list[str] = []  # what of its configuration is not used, and why


class PublishStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far the notes of an agent are published."""

    to: str  # the server, as the configuration calls it
    memory: str  # their name there
    files: int = 0  # that the server has as they are here
    waiting: int = 0  # files that it is to have, or not to have any more
    reason: str | None = None  # why nothing is published just now
    taken_back: int = 0  # vectors that the server had, which were not embedded again since the daemon began


class IncludedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A published memory that the agent searches together with its own."""

    memory: str  # SERVER:MEMORY, which the paths of its hits begin with
    reason: str | None = None  # why it takes no part just now


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the batch API of a provider does."""

    enabled: bool = False  # by the configuration
    on: bool = True  # False: it failed too often, and plain requests do its work
    failures: int = 0  # since the last success
    limit: int = 2  # so many turn it off
    jobs: int = 0  # under way
    texts: int = 0  # in them
    files_left: int = 0  # of jobs that have ended, and could not be deleted at the provider's yet
    reason: str | None = None  # of the last failure, or why there are no jobs
    at: float | None = None  # unix time of the last failure


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an agent's chunks get their vectors, and if not, why."""

    # One of: working | backing_off | stopped | paused | waiting_for_confirmation | none (no provider).
    state: str = "working"
    reason: str | None = None  # with what to do about it
    next_try_s: float | None = None  # of a provider, or a store, that failed
    chunks: int | None = None  # that would be sent, where a confirmation is waited for
    tokens: int | None = None  # estimate for them
    batch: BatchStatus | None = None  # None: there is no batch API


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """An embedding provider that was considered, and why it was not taken."""

    provider: str
    reason: str


class FallbackStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The second embedding provider."""

    provider: str
    in_use: bool = False  # it stands in for the first one
    instead_of: str | None = None  # that one
    reason: str | None = None  # why it stands in, or why it cannot be had


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of an agent, as the index has them."""

    files: int = 0
    turns: int = 0  # in them; of a session that was forked, what both have counts in each
    waiting: int = 0  # have grown, and are indexed once more has come or they are quiet
    lines_skipped: dict[str, int] = {}  # broken | unknown | too_long -> lines that said nothing


class Slowest(msgspec.Struct, frozen=True, kw_only=True):
    """The slowest of some searches, and where its time went."""

    at: float  # unix time of its end
    took_ms: float
    parts: dict[str, float] = {}  # part -> ms, the longest first; empty where it was quick


class Searches(msgspec.Struct, frozen=True, kw_only=True):
    """How long the last searches of an agent took in the daemon, the last hundred at most."""

    count: int
    median_ms: float
    slowest: Slowest
    last_ms: list[float] = []  # of each, the oldest first


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
    vector: VectorHealth
    watcher: Health
    provider_health: Health
    store_bytes: int
    last_pass: Pass | None = None
    # Those that changed something or failed, the newest first, 20 at most.
    passes: list[Pass] = []
    rebuild: str | None = None  # what is being rebuilt, and why; None: nothing
    sources: list[str] = []
    extra_paths: list[str] = []
    progress: Progress | None = None  # None: nothing is read just now
    store: Health = Health()  # whether the index can be opened, read and written
    damaged: list[str] = []  # files of it that were damaged and are kept, the newest first
    embedding: Embedding | None = None  # None: nothing embeds
    endpoint: str | None = None  # the host that texts are sent to; None: they stay on this machine
    chosen: str = ""  # why it is this provider
    passed_over: list[PassedOver] = []  # providers that were considered before it, in that order
    fallback: FallbackStatus | None = None  # None: none is configured
    sessions: Sessions | None = None  # None: transcripts are not among its sources
    redacted: dict[str, int] = {}  # kind of secret -> how often it was taken out of what is indexed
    backend_fallback: BackendFallback | None = None  # None: what was chosen answers
    qmd: QmdStatus | None = None  # None: it does not answer just now, or was not chosen
    searches: Searches | None = None  # None: nobody has asked it anything since the daemon began
    publish: PublishStatus | None = None  # None: its notes are published nowhere
    included: list[IncludedStatus] = []  # memories of others that it searches together with its own


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that the processes of memd hold."""

    daemon_mb: float  # million bytes, as everywhere
    worker_mb: float = 0.0  # of what embeds beside the daemon; 0: nothing does just now
    limit_mb: int = 0  # of both together; 0: none
    trouble: str | None = None  # why they hold more, and what to do about it


class SentToProvider(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider of embeddings was sent and has answered: what it is paid for."""

    provider: str
    model: str
    texts: int
    tokens: int  # estimated


class EmbedReport(WireMessage, frozen=True):
    """The answer to Embed: how the agents stand now."""

    agents: dict[str, Embedding] = {}


class NameCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag, or the name of a note that others link to."""

    name: str  # as it is written, of a tag without #
    notes: int  # that have it
    missing: bool = False  # of a link: no note of that name is indexed, as far as the caller may see


class AgentTags(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tags and links of one agent's notes, the most frequent first."""

    tags: list[NameCount] = []
    links: list[NameCount] = []
    omitted: int = 0  # names beyond the first thousand of either


class TagsReport(WireMessage, frozen=True):
    """The answer to Tags."""

    agents: dict[str, AgentTags] = {}


class StatusReport(WireMessage, frozen=True):
    """The answer to Status."""

    version: str
    protocol: int
    pid: int
    uptime_s: float
    socket: str
    config: str | None  # the file in use; None: built-in defaults
    agents: dict[str, AgentStatus]
    # Why what the file says cannot be used; the configuration before is in force.
    config_error: str | None = None
    config_waiting: list[str] = []  # settings that the file has otherwise, and that wait for Reload
    config_digest: str = ""  # the same for configurations that say the same, of one version; "": not told
    cache: Health = Health()  # of the vectors by text: without it, what is embedded may be embedded again
    # Of what the daemon does beside answering: listening, saving vectors, keeping to its memory limit.
    daemon_health: Health = Health()
    damaged: list[str] = []  # files of the cache that were damaged and are kept, the newest first
    memory: Memory | None = None  # None: the system does not tell
    sent: list[SentToProvider] = []  # since memd keeps its cache of vectors, for all agents


class RedactedText(WireMessage, frozen=True, tag="redacted"):
    """The answer to RedactText."""

    text: str  # with as many line ends as before
    counts: dict[str, int] = {}  # of what was taken out, by its kind
    agent: str = ""  # whose rules these were
    workspace: str = ""  # of that agent
    timezone: str = ""  # in which its days begin, such as "Europe/Berlin"; "": that of the machine


class Reloaded(WireMessage, frozen=True):
    """The answer to Reload: the file is in force, unless there is an error."""

    config: str | None = None  # the file; None: built-in defaults
    changed: list[str] = []  # settings that were not in force before
    error: str | None = None  # why the file cannot be used; the configuration before stays in force


class Stopping(WireMessage, frozen=True):
    """The answer to Stop: the daemon ends."""

    pid: int  # as the daemon knows itself; in another pid namespace that is another number


class Failure(WireMessage, frozen=True):
    """The request could not be answered; the connection lives unless the code is about the protocol."""

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
