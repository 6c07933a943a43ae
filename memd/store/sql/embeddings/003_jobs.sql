-- What is known of a job's texts without them: by this a vector that comes later is centred as if the text were there.
ALTER TABLE job_texts ADD COLUMN share REAL;  -- how much of the text is CJK, 0..1; NULL: nobody knows
