-- What is remembered of a provider's model: what it is like, how its batch API did, whether it may be asked.
CREATE TABLE documents (
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    name         TEXT NOT NULL,
    content      BLOB NOT NULL,          -- JSON
    PRIMARY KEY (provider, model, provider_key, name)
) WITHOUT ROWID;

-- Jobs of batch APIs that have begun and not ended.
CREATE TABLE jobs (
    id           TEXT PRIMARY KEY,       -- ours; the job carries it as its label
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    texts        INTEGER NOT NULL,
    created_at   REAL NOT NULL,          -- unix time
    job          TEXT                    -- the provider's name; NULL until it is known that the job exists
);
CREATE TABLE job_texts (
    job  TEXT NOT NULL,
    hash BLOB NOT NULL,                  -- sha256 of the embedded text
    PRIMARY KEY (job, hash)
) WITHOUT ROWID;
