-- Memories of so many vectors that an approximate index finds the nearest; an administrator makes it, see administration.index_steps.

CREATE TABLE memd.vector_indexes (
    tenant     bigint NOT NULL REFERENCES memd.memories ON DELETE CASCADE,
    kind       smallint NOT NULL,        -- of the files
    dimensions integer NOT NULL,
    count      bigint NOT NULL,          -- of vectors when the index was made
    mean       vector NOT NULL,          -- of them: a search takes off how close a question is to a memory as a whole
    PRIMARY KEY (tenant, kind)
);
GRANT SELECT ON memd.vector_indexes TO memd_member;
ALTER TABLE memd.vector_indexes ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.vector_indexes FORCE ROW LEVEL SECURITY;
CREATE POLICY granted ON memd.vector_indexes FOR SELECT TO memd_member
    USING (tenant = ANY (ARRAY(SELECT m.tenant FROM memd.members m WHERE m.member = current_user)));
CREATE POLICY administered ON memd.vector_indexes TO memd_owner USING (true) WITH CHECK (true);
-- To compute the mean.
CREATE POLICY administered ON memd.vectors FOR SELECT TO memd_owner USING (true);
