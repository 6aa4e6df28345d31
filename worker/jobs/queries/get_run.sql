-- How far the pages of a job are; $1 = the job; returns a row, or nothing when it was not split.
SELECT pages, finished_pages, percent::float8 AS percent, running_pages, waiting_pages, failed_pages, partitions, open_partitions,
       last_page_at, is_stuck
FROM worker.run_status WHERE run_id = $1
