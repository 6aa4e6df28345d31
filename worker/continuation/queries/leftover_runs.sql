-- Runs that are over and whose pages' artifacts may still be there; $1 = seconds for which those of failed and cancelled jobs are kept, for a retry, $2 = how many; returns ids, specs and all chains of pages there ever were.
SELECT run.id, job.spec,
       (SELECT jsonb_agg(jsonb_build_object('kind', chain.kind, 'first', chain.first_offset, 'past', chain.past_offset, 'heights', chain.heights))
        FROM worker.partition_progress AS chain WHERE chain.run_id = run.id) AS chains
FROM worker.runs AS run JOIN worker.jobs AS job ON job.id = run.id
WHERE run.cleaned_at IS NULL
  AND (job.status = 'done'
    OR job.status IN ('failed', 'cancelled') AND (
        job.finished_at < clock_timestamp() - make_interval(secs => $1)
        -- given up: a retry would begin anew
        OR NOT EXISTS (SELECT FROM worker.partition_progress AS chain WHERE chain.run_id = run.id AND chain.dropped_at IS NULL)))
  -- who is still at work could store something behind our back
  AND NOT EXISTS (SELECT FROM worker.jobs AS page WHERE page.run_id = run.id AND page.status = 'processing')
ORDER BY run.created_at
LIMIT $2
