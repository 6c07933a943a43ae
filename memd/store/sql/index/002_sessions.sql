-- What a transcript is beside a file.
CREATE TABLE sessions (
    file_id  INTEGER PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE,
    progress BLOB NOT NULL,              -- of memd.sources.transcripts: how far it has been read
    resume   INTEGER NOT NULL            -- the turn from which on chunks are cut again when more is said
);

CREATE TABLE turns (
    file_id    INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,         -- its place in the session, from 0, without gaps
    turn_id    TEXT NOT NULL,            -- of its format; may be empty
    role       TEXT NOT NULL,            -- memd.domain_types.Role
    at         REAL,                     -- unix time
    start_line INTEGER NOT NULL,         -- of the transcript
    end_line   INTEGER NOT NULL,
    text       TEXT NOT NULL,            -- redacted
    PRIMARY KEY (file_id, seq)
) WITHOUT ROWID;
CREATE INDEX turns_by_line ON turns (file_id, start_line);

-- What was counted while a file was read: what was taken out of it, lines that said nothing.
CREATE TABLE tallies (
    file_id INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (file_id, name)
) WITHOUT ROWID;

ALTER TABLE chunks ADD COLUMN numbers BLOB;  -- msgpack: the line of the file of each line of text; NULL: they follow start_line
ALTER TABLE chunks ADD COLUMN turn INTEGER;  -- of a session: the seq of the first turn in it
CREATE INDEX chunks_by_turn ON chunks (file_id, turn) WHERE turn IS NOT NULL;
