CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE files (
    id         INTEGER PRIMARY KEY,
    path       TEXT NOT NULL UNIQUE,
    kind       INTEGER NOT NULL,         -- memd.domain_types.Kind
    size       INTEGER NOT NULL,
    mtime_ns   INTEGER NOT NULL,
    inode      INTEGER NOT NULL,
    hash       BLOB NOT NULL             -- sha256 of the bytes of the file
);

-- AUTOINCREMENT: an id is never given twice, so a vector that arrives late can only find its own chunk or none.
CREATE TABLE chunks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    file_id    INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line   INTEGER NOT NULL,
    text       TEXT NOT NULL,
    context    TEXT NOT NULL,
    hash       BLOB NOT NULL,            -- sha256 of the embedded text
    cjk        REAL NOT NULL,            -- the share of that text in a CJK script, 0..1: what a cosine is worth depends on it
    vector     INTEGER NOT NULL DEFAULT 0 -- 0 waits, 1 is in vectors, 2 set aside: the provider cannot embed it
);
CREATE INDEX chunks_by_file ON chunks (file_id);
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE INDEX chunks_waiting ON chunks (file_id) WHERE vector = 0;
CREATE INDEX chunks_set_aside ON chunks (file_id) WHERE vector = 2;

-- Contentless: the text is in chunks. The rows hold terms as memd.text.tokens.fts_text writes them.
CREATE VIRTUAL TABLE keywords USING fts5 (
    text, context,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
