"""Facts that an index stores about itself: its fingerprint (the settings it was built with), mount points, roots and totals."""

from collections.abc import Sequence

import apsw
import msgspec

from memd.domain_types import Kind
from memd.store.errors import StoreDamaged

# To be raised whenever memd.chunk or memd.text.tokens.fts_text gives another result for the same file: indexes are then
# rebuilt.
CHUNKING = 7
TOKENIZER = 3
# To be raised whenever memd.sources.transcripts keeps other text, memd.chunk.turns cuts it otherwise, or
# memd.indexing.index_transcripts places it otherwise.
TURNS = 5
# To be raised whenever memd_client.note_encoding reads other text where it could not read all: such notes are then read again.
DECODING = 1


class Fingerprint(msgspec.Struct, frozen=True):
    """The settings that an index was built with; if they differ from the current ones, it is rebuilt.

    The text part always counts. The vector part counts only if a provider is available: an index is not discarded because a key
    or a package is missing today.
    """

    chunking: str  # version of the algorithm, and sizes of chunks
    tokenizer: str  # version of the normalised text
    sources: tuple[str, ...]
    provider: str | None = None  # None: without vectors
    model: str | None = None
    key: str | None = None
    dimensions: int | None = None
    redaction: str = ""  # version of the redaction of notes; "": none
    sessions: str = ""  # version of reading and redacting transcripts; "": none are read
    parts: bool = False  # parts of chunks have vectors too
    is_mixed: bool = False  # some files were indexed with other settings, before a rebuild that was due

    @property
    def text_part(self) -> tuple[object, ...]:
        """The settings that chunks and keywords depend on."""
        return self.chunking, self.tokenizer, self.sources, self.redaction, self.sessions

    @property
    def vector_part(self) -> tuple[object, ...]:
        """The settings that vectors depend on."""
        return self.provider, self.model, self.key, self.dimensions

    @property
    def space(self) -> tuple[str, str, str] | None:
        """The embedding space of the vectors; None: without vectors."""
        return None if self.provider is None else (self.provider, self.model or "", self.key or "")


def why_rebuild(stored: Fingerprint | None, wanted: Fingerprint) -> str | None:
    """Return why an index must be rebuilt; None: it need not be.

    An index built without a provider is not rebuilt for one; its missing vectors are added.
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
    """Return whether the indexes differ only in transcripts, which can be added."""
    if stored.sessions or not wanted.sessions:
        return False
    added = msgspec.structs.replace(stored, sources=wanted.sources, sessions=wanted.sessions)
    return set(stored.sources) < set(wanted.sources) and added.text_part == wanted.text_part


def usable_part(stored: Fingerprint | None, wanted: Fingerprint) -> Fingerprint:
    """Return the fingerprint under which an outdated index is used until it is rebuilt: its text, and its vectors if it has any.

    The old model may still embed questions. No new vector table is created. Files that change until the rebuild are indexed with
    the wanted settings, so the index is mixed: it fits no settings from now on.
    """
    usable = without_vectors(wanted) if stored is None else stored
    return msgspec.structs.replace(usable, is_mixed=True)


def with_vectors(text: Fingerprint, vectors: Fingerprint) -> Fingerprint:
    """Return the text part of one fingerprint with the vector part of another."""
    return msgspec.structs.replace(
        text,
        provider=vectors.provider,
        model=vectors.model,
        key=vectors.key,
        dimensions=vectors.dimensions,
        parts=vectors.parts,
    )


def without_vectors(fingerprint: Fingerprint) -> Fingerprint:
    """Return the text part of a fingerprint."""
    return msgspec.structs.replace(
        fingerprint, provider=None, model=None, key=None, dimensions=None, parts=False
    )


def get_fingerprint(connection: apsw.Connection) -> Fingerprint | None:
    """Return the stored fingerprint; None if there is no readable one."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
    if row is None:
        return None
    try:
        return msgspec.json.decode(row[0], type=Fingerprint)
    except msgspec.DecodeError:
        return None


def put_fingerprint(connection: apsw.Connection, fingerprint: Fingerprint) -> None:
    """Store the fingerprint."""
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('fingerprint', ?)",
        (msgspec.json.encode(fingerprint).decode(),),
    )


def forget_unread_text(connection: apsw.Connection) -> None:
    """Have notes read again in which bytes had no meaning, if they were read by older rules of decoding.

    Their chunks stay until then. Going through the text of 20,000 chunks takes some 50 ms, once for each version of the rules.
    """
    version = str(DECODING)
    if connection.execute("SELECT value FROM meta WHERE key = 'decoding'").get == version:
        return
    connection.execute(
        "UPDATE files SET mtime_ns = -1, hash = x'' WHERE kind IN (?, ?)"
        " AND id IN (SELECT file_id FROM chunks WHERE instr(text, char(65533)))",
        (Kind.NOTE, Kind.CURATED),
    )
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('decoding', ?)", (version,))


def get_mounts(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Return the mount points of the indexed files, each with the prefix of their paths; see put_mounts."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'mounts'").fetchone()
    if row is None:
        return []
    try:
        return msgspec.json.decode(row[0], type=list[tuple[str, str]])
    except msgspec.DecodeError:
        return []


def put_mounts(connection: apsw.Connection, mounts: Sequence[tuple[str, str]]) -> None:
    """Store mount points, all valid UTF-8.

    If one of them is not mounted after a restart, its disk is absent, and its files were not deleted.
    """
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('mounts', ?)",
        (msgspec.json.encode(mounts).decode(),),
    )


Origin = tuple[str, str, str | None]
"""A root of indexed files: the prefix of their paths, the configured path, and where that led; see sources.origins."""


def get_origins(connection: apsw.Connection) -> list[Origin] | None:
    """Return the roots that the indexed files came from; None: the index does not record them."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'origins'").fetchone()
    if row is None:
        return None
    try:
        return msgspec.json.decode(row[0], type=list[Origin])
    except msgspec.DecodeError:
        return None


def put_origins(connection: apsw.Connection, origins: Sequence[Origin]) -> None:
    """Store the roots that the indexed files came from, all valid UTF-8."""
    connection.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('origins', ?)",
        (msgspec.json.encode(origins).decode(),),
    )


def total(connection: apsw.Connection, table: str) -> int:
    """Return the number of rows in files, chunks or parts, which triggers maintain: counting 80,000 chunks takes 1 ms.

    Raises:
        StoreDamaged: the counter is missing.
    """
    row = connection.execute("SELECT n FROM totals WHERE name = ?", (table,)).fetchone()
    if row is None:
        raise StoreDamaged(f"the index does not tell how many {table} it has")
    n: int = row[0]
    return n


def miscounted(connection: apsw.Connection) -> tuple[str, ...]:
    """Return a message for each counter that differs from the number of rows."""
    return tuple(
        f"the number of {table} is not {n}"
        for table, n in connection.execute("SELECT name, n FROM totals")
        if connection.execute(f"SELECT count(*) FROM {table}").get != n
    )
