-- The keyword index in segments: memd.postgres.packed_postings says how they are packed.

DROP TABLE memd.postings;

CREATE TABLE memd.segments (
    tenant bigint NOT NULL REFERENCES memd.memories ON DELETE CASCADE,
    first  bigint NOT NULL,              -- of the ids of its chunks; no file has chunks in two segments
    last   bigint NOT NULL,
    kind   smallint NOT NULL,            -- of the files of its chunks
    bits   smallint NOT NULL,            -- so many of the highest bits of a term tell its bucket
    chunks integer NOT NULL,             -- of which postings are in it
    gone   bigint[] NOT NULL DEFAULT '{}', -- chunks that are not in the memory any more
    PRIMARY KEY (tenant, first)
);

CREATE TABLE memd.postings (
    tenant  bigint NOT NULL,
    segment bigint NOT NULL,             -- its first
    bucket  integer NOT NULL,
    terms   bytea NOT NULL,              -- with the chunks that hold them
    places  bytea NOT NULL,              -- of the terms in their chunks
    PRIMARY KEY (tenant, segment, bucket),
    FOREIGN KEY (tenant, segment) REFERENCES memd.segments ON DELETE CASCADE
);

-- All files are published once more: meanwhile those that have not been yet are found by meaning alone.
-- (The policies of members also hold for the owner, but for this moment.)
ALTER TABLE memd.files NO FORCE ROW LEVEL SECURITY;
UPDATE memd.files SET digest = '';
ALTER TABLE memd.files FORCE ROW LEVEL SECURITY;

DO $rights$
DECLARE
    may_read CONSTANT text := 'tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user))';
    may_write CONSTANT text :=
        'tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user AND m.may_write))';
    held text;
BEGIN
    FOREACH held IN ARRAY ARRAY['segments', 'postings'] LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON memd.%I TO memd_member', held);
        EXECUTE format('ALTER TABLE memd.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE memd.%I FORCE ROW LEVEL SECURITY', held);
        EXECUTE format('CREATE POLICY granted ON memd.%I FOR SELECT TO memd_member USING (%s)', held, may_read);
        EXECUTE format('CREATE POLICY came ON memd.%I FOR INSERT TO memd_member WITH CHECK (%s)', held, may_write);
        EXECUTE format(
            'CREATE POLICY changed ON memd.%I FOR UPDATE TO memd_member USING (%s) WITH CHECK (%s)',
            held, may_write, may_write
        );
        EXECUTE format('CREATE POLICY went ON memd.%I FOR DELETE TO memd_member USING (%s)', held, may_write);
    END LOOP;
END
$rights$;
