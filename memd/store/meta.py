"""Facts that an index stores about itself: its fingerprint (the settings it was built with), mount points and totals."""

from collections.abc import Sequence

import apsw
import msgspec

from memd.store.errors import StoreDamaged

# To be raised with each change of what memd.chunk or memd.text.tokens.fts_text gives for the same file: indexes are
# then rebuilt.
CHUNKING = 6
TOKENIZER = 2
# Raised likewise for what memd.sources.transcripts takes for speech, memd.chunk.turns makes of it, or memd.indexing.index_transcripts
# to place it.
TURNS = 3


class Fingerprint(msgspec.Struct, frozen=True):
    """What decides whether an index fits the settings, or must be built anew.

    The text part always counts. The vector part counts only when a provider is there: an index is not thrown away
    because a key or a package is missing today.
    """

    chunking: str  # version and sizes of the chunks
    tokenizer: str  # version of the keyword text
    sources: tuple[str, ...]
    provider: str | None = None  # None: built without one
    model: str | None = None
    key: str | None = None
    dimensions: int | None = None
    redaction: str = ""  # what is taken out of notes; empty: nothing
    sessions: str = ""  # how transcripts are read, and what is taken out of them; empty: none are read
    parts: bool = False  # parts of chunks have vectors, too
    is_mixed: bool = False  # some of it was made for other settings, for which it was to be built anew

    @property
    def text_part(self) -> tuple[object, ...]:
        """What the chunks and keywords depend on."""
        return self.chunking, self.tokenizer, self.sources, self.redaction, self.sessions

    @property
    def vector_part(self) -> tuple[object, ...]:
        """What the vectors depend on."""
        return self.provider, self.model, self.key, self.dimensions

    @property
    def space(self) -> tuple[str, str, str] | None:
        """The embedding space that the vectors belong to; None where there are none."""
        return None if self.provider is None else (self.provider, self.model or "", self.key or "")


def why_rebuild(stored: Fingerprint | None, wanted: Fingerprint) -> str | None:
    """Why an index cannot serve as it is, or None.

    An index that never had a provider only lacks vectors: they are added to it.
    """
    if stored is None:
        return "it does not say what it was built for"
    if stored.text_part != wanted.text_part and not _only_lacks_sessions(stored, wanted):
        changed = [
            name
            for name in ("chunking", "tokenizer", "sources", "redaction", "sessions")
            if getattr(stored, name) != getattr(wanted, name)
        ]
        return f"{' and '.join(changed)} changed"
    if stored.is_mixed:
        return "the settings changed, and changed back before it was built anew"
    if None not in (stored.provider, wanted.provider) and stored.vector_part != wanted.vector_part:
        return f"the embedding model changed from {stored.provider}/{stored.model} to {wanted.provider}/{wanted.model}"
    return None


def _only_lacks_sessions(stored: Fingerprint, wanted: Fingerprint) -> bool:
    """Whether transcripts are all that is missing: they are added to what there is."""
    if stored.sessions or not wanted.sessions:
        return False
    added = msgspec.structs.replace(stored, sources=wanted.sources, sessions=wanted.sessions)
    return set(stored.sources) < set(wanted.sources) and added.text_part == wanted.text_part


def usable_part(stored: Fingerprint | None, wanted: Fingerprint) -> Fingerprint:
    """What an index that does not fit may be used for until it is rebuilt: its text, and its vectors if it has any.

    Whoever made these may still embed questions. What is not there is not begun. Files that change until then are
    indexed for what is wanted: from now on it fits neither, whatever is wanted next.
    """
    usable = without_vectors(wanted) if stored is None else stored
    return msgspec.structs.replace(usable, is_mixed=True)


def with_vectors(text: Fingerprint, vectors: Fingerprint) -> Fingerprint:
    """The text part of one fingerprint with the vector part of another."""
    return msgspec.structs.replace(
        text,
        provider=vectors.provider,
        model=vectors.model,
        key=vectors.key,
        dimensions=vectors.dimensions,
        parts=vectors.parts,
    )


def without_vectors(fingerprint: Fingerprint) -> Fingerprint:
    """The text part alone."""
    return msgspec.structs.replace(
        fingerprint, provider=None, model=None, key=None, dimensions=None, parts=False
    )


def get_fingerprint(connection: apsw.Connection) -> Fingerprint | None:
    """The fingerprint that was stored, or None where there is none that can be read."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
    if row is None:
        return None
    try:
        return msgspec.json.decode(row[0], type=Fingerprint)
    except msgspec.DecodeError:
        return None


def put_fingerprint(connection: apsw.Connection, fingerprint: Fingerprint) -> None:
    """Store it."""
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('fingerprint', ?)",
        (msgspec.json.encode(fingerprint).decode(),),
    )


def get_mounts(connection: apsw.Connection) -> list[tuple[str, str]]:
    """The mount points that files of the index lie below, each with the prefix of their names; see put_mounts."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'mounts'").fetchone()
    if row is None:
        return []
    try:
        return msgspec.json.decode(row[0], type=list[tuple[str, str]])
    except msgspec.DecodeError:
        return []


def put_mounts(connection: apsw.Connection, mounts: Sequence[tuple[str, str]]) -> None:
    """Store them, all UTF-8: after a restart, one that is no mount point any more means that a disk is away, and not that files are gone."""
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('mounts', ?)",
        (msgspec.json.encode(mounts).decode(),),
    )


def total(connection: apsw.Connection, table: str) -> int:
    """How many rows files, chunks or parts has, which triggers keep count of: at 80,000 chunks SQLite takes 1 ms to count them.

    Raises:
        StoreDamaged: it is not known.
    """
    row = connection.execute("SELECT n FROM totals WHERE name = ?", (table,)).fetchone()
    if row is None:
        raise StoreDamaged(f"the index does not tell how many {table} it has")
    n: int = row[0]
    return n


def miscounted(connection: apsw.Connection) -> tuple[str, ...]:
    """Which totals are not those of their tables."""
    return tuple(
        f"the number of {table} is not {n}"
        for table, n in connection.execute("SELECT name, n FROM totals")
        if connection.execute(f"SELECT count(*) FROM {table}").get != n
    )
