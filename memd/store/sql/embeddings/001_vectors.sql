-- Vectors by the text they stand for. This is what was paid for: it outlives every index.
-- With a rowid: without one, a row of this size would fill a page of its own, twice the file for a third of the speed.
CREATE TABLE cache (
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    hash         BLOB NOT NULL,          -- sha256 of the embedded text
    vector       BLOB NOT NULL,          -- float32, little-endian, of length 1
    used_at      REAL NOT NULL,          -- unix time of the last write or hit
    PRIMARY KEY (provider, model, provider_key, hash)
);
CREATE INDEX cache_by_age ON cache (used_at);

-- Texts that a provider refuses or dies of.
CREATE TABLE set_aside (
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    hash         BLOB NOT NULL,
    reason       TEXT NOT NULL,
    at           REAL NOT NULL,
    PRIMARY KEY (provider, model, provider_key, hash)
) WITHOUT ROWID;
