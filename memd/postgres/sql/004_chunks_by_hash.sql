-- The vector of a text is asked for by the text's hash: by a publisher that has lost what it knew, before it embeds anew.

CREATE INDEX chunks_by_hash ON memd.chunks (tenant, hash);
