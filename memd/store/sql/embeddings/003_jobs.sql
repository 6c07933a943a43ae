-- What is known of a job's texts without them: by this a vector that comes later is centred as if the text were there.
ALTER TABLE job_texts ADD COLUMN share REAL;  -- how much of the text is CJK, 0..1; NULL: nobody knows

-- Files of jobs at the provider's, with texts or vectors in them: until they are known to be deleted, whether or not the job is there.
CREATE TABLE job_files (
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    file         TEXT NOT NULL,          -- the provider's name
    job          TEXT NOT NULL,          -- ours
    at           REAL NOT NULL,          -- unix time at which its name came to be known
    PRIMARY KEY (provider, model, provider_key, file)
) WITHOUT ROWID;
