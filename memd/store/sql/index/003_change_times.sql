-- When the inode was changed last, in nanoseconds: unlike mtime_ns, nobody can set it. 0: not known, so the file is read again.
ALTER TABLE files ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0;
-- Vectors come without what their language adds to them.
ALTER TABLE chunks DROP COLUMN cjk;

-- What a chunk says, piece by piece: each piece has a vector beside that of the whole.
CREATE TABLE parts (
    id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, as with chunks
    chunk_id INTEGER NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    first    INTEGER NOT NULL,         -- characters of the chunk's text, text[first:last]
    last     INTEGER NOT NULL,
    hash     BLOB NOT NULL,            -- sha256 of that
    vector   BLOB                      -- float16, little-endian; NULL waits; empty: the provider cannot embed it
);
CREATE INDEX parts_by_chunk ON parts (chunk_id);
CREATE INDEX parts_by_hash ON parts (hash);
CREATE INDEX parts_waiting ON parts (chunk_id) WHERE vector IS NULL;
