-- What a job's pages made; $1 = run; returns them by partition and page.
SELECT chain.kind, page.partition_id, page.page_offset, page.facts
FROM worker.pages AS page
JOIN worker.partition_progress AS chain USING (run_id, partition_id)
WHERE page.run_id = $1 AND chain.dropped_at IS NULL
ORDER BY page.partition_id, page.page_offset
