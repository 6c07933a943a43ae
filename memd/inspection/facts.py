"""What the probes of an installation find."""

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all facts; a fact holds counts, paths and faults, never the text of a note."""


class Engine(Fact, frozen=True):
    """SQLite as it is here; a fault is None where the part works."""

    sqlite: str  # version
    apsw: str
    keywords: str | None
    vectors: str | None
    vec: str | None  # version of sqlite-vec


class Model(Fact, frozen=True):
    """The bundled model, tried on sentences in English and Chinese."""

    fault: str | None = None  # why it could not be tried
    version: str = ""
    dimensions: int = 0
    finite: bool = True
    length: float = 0.0  # of the vector that strays furthest from 1, as the engine gives it
    related: float = 0.0  # cosine of a question with its answer, in the worse of the two languages
    unrelated: float = 0.0  # cosine of that question with a text that has nothing to do with it
    load_ms: float = 0.0
    embed_ms: float = 0.0  # of one sentence


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """One path that an agent is configured to index."""

    path: str  # as configured, made absolute
    resolved: str  # symlinks followed
    is_workspace: bool
    fault: str | None  # None: it can be read
    remote: str | None = None  # its file system, where other machines can change files


class PresetNotes(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of another program that an agent is configured to search."""

    directory: str  # symlinks followed
    way: tuple[str, ...] = ()  # they lie below these directories alone
    file: str | None = None  # this one alone


class Disk(Fact, frozen=True):
    """The file system that the state directory is on, or will be."""

    kind: str
    point: str
    is_remote: bool


class RootsScan(Fact, frozen=True):
    """Everything below the roots of an agent, as the daemon would scan it."""

    agent: str
    roots: tuple[Root, ...] = ()
    presets: tuple[PresetNotes, ...] = ()
    notes: int = 0
    transcript_roots: tuple[Root, ...] = ()  # where transcripts are, or will be
    transcripts: int = 0
    unread: tuple[str, ...] = ()  # databases of transcripts that are not read
    # Files and directories, a few of them, as the index calls them; what belongs to transcripts by its absolute path.
    unreadable: tuple[str, ...] = ()
    unreadable_count: int = 0
    skipped: dict[str, int] = {}  # reason -> files
    future: tuple[str, ...] = ()  # files that say they were written later than now, a few of them
    future_count: int = 0
    directories: int = 0  # to be watched


class KeptBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a database as it was before it was brought up to date."""

    name: str
    bytes: int
    schema: int  # that it has
    made_at: float  # Unix time


class Store(Fact, frozen=True):
    """The index of one agent."""

    agent: str
    file: str
    configured: bool  # False: left over from an agent that the configuration does not have
    exists: bool = True
    bytes: int = 0  # its log included
    unchecked: str | None = None  # why it was left alone
    closed: str | None = None  # why it cannot be opened
    faults: tuple[str, ...] = ()
    schema: int = 0
    known_schema: int = 0
    files: int = 0
    chunks: int = 0
    rebuild: str | None = None  # why the configuration asks for a new one
    damaged: tuple[str, ...] = ()  # names of files that were set aside
    copies: tuple[KeptBackup, ...] = ()  # the one of the newest schema first


class Cache(Fact, frozen=True):
    """The cache of vectors, embeddings.sqlite."""

    file: str
    exists: bool = True
    bytes: int = 0
    unchecked: str | None = None
    closed: str | None = None
    faults: tuple[str, ...] = ()
    schema: int = 0
    known_schema: int = 0
    rows: int = 0
    files: tuple[str, ...] = ()  # of batch jobs that have ended, at their providers
    damaged: tuple[str, ...] = ()
    copies: tuple[KeptBackup, ...] = ()


class Program(Fact, frozen=True):
    """The program that an agent is configured to search with."""

    agent: str
    file: str = ""
    version: str = ""  # as it says
    fault: str | None = None  # why it is not found, or does not run
