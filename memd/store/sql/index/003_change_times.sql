-- When the inode was changed last, in nanoseconds: unlike mtime_ns, nobody can set it. 0: not known, so the file is read again.
ALTER TABLE files ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0;
-- Vectors come without what their language adds to them.
ALTER TABLE chunks DROP COLUMN cjk;

-- In which scripts a chunk is written, which a search asks of a hundred chunks: reading and counting the texts took 2 ms.
ALTER TABLE chunks ADD COLUMN scripts BLOB;  -- msgpack: the share of each script; NULL: not known

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

-- How many rows there are, since SQLite has to go through an index of all of them to tell.
CREATE TABLE totals (
    name TEXT PRIMARY KEY,             -- of the table
    n    INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO totals SELECT 'files', count(*) FROM files;
INSERT INTO totals SELECT 'chunks', count(*) FROM chunks;
INSERT INTO totals SELECT 'parts', count(*) FROM parts;
CREATE TRIGGER files_came AFTER INSERT ON files BEGIN UPDATE totals SET n = n + 1 WHERE name = 'files'; END;
CREATE TRIGGER files_went AFTER DELETE ON files BEGIN UPDATE totals SET n = n - 1 WHERE name = 'files'; END;
CREATE TRIGGER chunks_came AFTER INSERT ON chunks BEGIN UPDATE totals SET n = n + 1 WHERE name = 'chunks'; END;
CREATE TRIGGER chunks_went AFTER DELETE ON chunks BEGIN UPDATE totals SET n = n - 1 WHERE name = 'chunks'; END;
CREATE TRIGGER parts_came AFTER INSERT ON parts BEGIN UPDATE totals SET n = n + 1 WHERE name = 'parts'; END;
CREATE TRIGGER parts_went AFTER DELETE ON parts BEGIN UPDATE totals SET n = n - 1 WHERE name = 'parts'; END;
