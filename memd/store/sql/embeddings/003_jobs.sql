-- What is known of a job's texts without them: by this a vector that comes later is centred as if the text were there.
ALTER TABLE job_texts ADD COLUMN share REAL;  -- how much of the text is CJK, 0..1; NULL: nobody knows

-- Files of jobs at the provider's, with texts or vectors in them: until they are known to be deleted, whether or not the job is there.
CREATE TABLE job_files (
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    file         TEXT NOT NULL,          -- the provider's name; of one that is sought, the name under which it was uploaded
    job          TEXT NOT NULL,          -- ours
    at           REAL NOT NULL,          -- unix time at which its name came to be known
    is_sought    INTEGER NOT NULL DEFAULT 0, -- 1: no answer said under which name it is there, or that it is there
    old_since    REAL,                   -- as of jobs
    PRIMARY KEY (provider, model, provider_key, file)
) WITHOUT ROWID;

-- Unix time at which a row was first seen to be old enough to be forgotten; NULL: it is not. It is forgotten some days later.
ALTER TABLE jobs ADD COLUMN old_since REAL;
