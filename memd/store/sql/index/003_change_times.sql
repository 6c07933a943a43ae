-- When the inode was changed last, in nanoseconds: unlike mtime_ns, nobody can set it. 0: not known, so the file is read again.
ALTER TABLE files ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0;
-- Vectors come without what their language adds to them.
ALTER TABLE chunks DROP COLUMN cjk;
