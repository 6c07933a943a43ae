-- Vectors are quantised to 16-bit integers: memd.store.int16_vectors. memd.store.migrations converts existing rows.
ALTER TABLE cache ADD COLUMN exponent INTEGER;  -- vector contains int16, little-endian, to be multiplied by 2^exponent; NULL: it contains float32
