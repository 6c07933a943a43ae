-- Run as memd_owner, which cannot log in. Every key begins with the tenant: one published memory.

CREATE TABLE memd.version (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL,            -- of these tables
    least   integer NOT NULL             -- a memd that knows this version, or a later one, may use them
);

CREATE TABLE memd.memories (
    tenant       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL UNIQUE,   -- as members know it: alice/main
    publisher    text,                   -- the installation that publishes it; NULL: whichever comes first
    published_at timestamptz,            -- when it was changed last
    next_id      bigint NOT NULL DEFAULT 1, -- of a file or chunk: never given twice within a memory
    terms        integer,                -- version of the terms in postings
    provider     text,                   -- the space of its vectors; NULL: it has none
    model        text,
    space_key    text,
    dimensions   integer,
    has_parts    boolean NOT NULL DEFAULT false,
    chunks       bigint NOT NULL DEFAULT 0,
    tokens       bigint NOT NULL DEFAULT 0  -- in all chunks
);

-- Who may use which memory. No member may write here: current_user is compared with it.
CREATE TABLE memd.members (
    tenant    bigint NOT NULL REFERENCES memd.memories ON DELETE CASCADE,
    member    name NOT NULL,
    may_write boolean NOT NULL,
    PRIMARY KEY (tenant, member)
);
CREATE INDEX members_by_member ON memd.members (member);

CREATE TABLE memd.files (
    tenant     bigint NOT NULL REFERENCES memd.memories ON DELETE CASCADE,
    id         bigint NOT NULL,
    path       text NOT NULL,
    kind       smallint NOT NULL,        -- memd.domain_types.Kind
    written_ns bigint NOT NULL,          -- unix time
    superseded text,                     -- its front matter says that it holds no more: what by, maybe empty
    digest     bytea NOT NULL,           -- of all that is published of it
    content    text NOT NULL,            -- all lines, without secrets
    PRIMARY KEY (tenant, id)
);
-- By a hash: a path may be longer than an entry of an index.
CREATE UNIQUE INDEX files_by_path ON memd.files (tenant, md5(path));

CREATE TABLE memd.labels (
    tenant  bigint NOT NULL,
    file_id bigint NOT NULL,
    seq     integer NOT NULL,
    kind    smallint NOT NULL,           -- memd.domain_types.LabelKind
    name    text NOT NULL,
    value   text NOT NULL,
    PRIMARY KEY (tenant, file_id, seq),
    FOREIGN KEY (tenant, file_id) REFERENCES memd.files ON DELETE CASCADE
);

CREATE TABLE memd.chunks (
    tenant     bigint NOT NULL,
    id         bigint NOT NULL,
    file_id    bigint NOT NULL,
    kind       smallint NOT NULL,        -- of its file
    start_line integer NOT NULL,
    end_line   integer NOT NULL,
    text       text NOT NULL,
    context    text NOT NULL,
    hash       bytea NOT NULL,           -- sha256 of the embedded text
    numbers    bytea,                    -- msgpack: the line of each line of text; NULL: they follow start_line
    scripts    bytea,                    -- msgpack: the share of each script
    first_s    bigint,                   -- of when it is, as clocks on the wall count seconds; NULL: its file does not say
    last_s     bigint,
    tokens     integer NOT NULL,         -- in text and context
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, file_id) REFERENCES memd.files ON DELETE CASCADE
);
CREATE INDEX chunks_by_file ON memd.chunks (tenant, file_id);

-- The keyword index: which chunk holds which term how often.
CREATE TABLE memd.postings (
    tenant   bigint NOT NULL,
    term     bigint NOT NULL,            -- a hash of a stem, or of a pair of CJK characters
    chunk_id bigint NOT NULL,
    often    integer NOT NULL,
    tokens   integer NOT NULL,           -- of the chunk
    places   bytea NOT NULL,             -- of a stem: where, each a number of two bytes, ascending
    PRIMARY KEY (tenant, term, chunk_id)
);
CREATE INDEX postings_by_chunk ON memd.postings (tenant, chunk_id);

CREATE TABLE memd.vectors (
    tenant   bigint NOT NULL,
    chunk_id bigint NOT NULL,
    kind     smallint NOT NULL,          -- of its file
    vector   vector NOT NULL,            -- of length 1
    PRIMARY KEY (tenant, chunk_id),
    FOREIGN KEY (tenant, chunk_id) REFERENCES memd.chunks ON DELETE CASCADE
);

CREATE TABLE memd.parts (
    tenant   bigint NOT NULL,
    chunk_id bigint NOT NULL,
    seq      integer NOT NULL,
    first    integer NOT NULL,           -- characters of the chunk's text
    last     integer NOT NULL,
    vector   bytea,                      -- float16, little-endian; NULL: it has none
    PRIMARY KEY (tenant, chunk_id, seq),
    FOREIGN KEY (tenant, chunk_id) REFERENCES memd.chunks ON DELETE CASCADE
);

-- Rights. Row-level security also holds for the owner, and looks at nothing that a client can set.
GRANT USAGE ON SCHEMA memd TO memd_member;
GRANT SELECT ON memd.version, memd.memories, memd.members TO memd_member;
GRANT UPDATE (publisher, published_at, next_id, terms, provider, model, space_key, dimensions, has_parts, chunks,
    tokens) ON memd.memories TO memd_member;

ALTER TABLE memd.members ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.members FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memd.members FOR SELECT TO memd_member USING (member = current_user);
CREATE POLICY administered ON memd.members TO memd_owner USING (true) WITH CHECK (true);

ALTER TABLE memd.memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.memories FORCE ROW LEVEL SECURITY;
CREATE POLICY administered ON memd.memories TO memd_owner USING (true) WITH CHECK (true);
CREATE POLICY granted ON memd.memories FOR SELECT TO memd_member
    USING (tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user)));
CREATE POLICY published ON memd.memories FOR UPDATE TO memd_member
    USING (tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user AND m.may_write)))
    WITH CHECK (tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user AND m.may_write)));

DO $rights$
DECLARE
    may_read CONSTANT text := 'tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user))';
    may_write CONSTANT text :=
        'tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user AND m.may_write))';
    held text;
BEGIN
    FOREACH held IN ARRAY ARRAY['files', 'labels', 'chunks', 'postings', 'vectors', 'parts'] LOOP
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
