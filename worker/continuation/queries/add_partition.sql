-- Add a chain of pages to a run; $1 = run, $2 = partition, $3 = kind, $4 = first page, $5 = behind the last, $6 = heights; returns nothing.
INSERT INTO worker.partition_progress (run_id, partition_id, kind, first_offset, past_offset, next_offset, heights)
VALUES ($1, $2, $3, $4, $5, $4, $6)
