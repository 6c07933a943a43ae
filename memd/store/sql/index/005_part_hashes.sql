-- An index of the first 8 bytes takes less than half the space; queries compare the whole hash besides.
DROP INDEX parts_by_hash;
CREATE INDEX parts_by_hash ON parts (substr(hash, 1, 8));
