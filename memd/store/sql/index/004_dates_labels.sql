-- Of when a chunk is, both included, in seconds from 1970 as clocks on the wall count them, without zone and summer time.
-- NULL: nothing in the file says; then it is of when the file was written.
ALTER TABLE chunks ADD COLUMN first_s INTEGER;
ALTER TABLE chunks ADD COLUMN last_s INTEGER;

-- What a note says of itself: its tags, the notes that it links to, the properties of its front matter.
CREATE TABLE labels (
    file_id INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    kind    INTEGER NOT NULL,          -- memd.domain_types.LabelKind
    name    TEXT NOT NULL,             -- folded: a tag without #, the name of a linked note, the key of a property
    value   TEXT NOT NULL,             -- of a property its value, folded; else the name as it is written
    PRIMARY KEY (file_id, kind, name, value)
) WITHOUT ROWID;
CREATE INDEX labels_by_name ON labels (kind, name, value);
