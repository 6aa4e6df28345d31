-- After a job was put aside: write that it waits for its pages, and how far they are; $1 = job, $2 = progress, $3 = should it look again at once?; returns nothing.
WITH moved AS (
    UPDATE worker.jobs SET stage = 'pages', progress = $2 WHERE id = $1 AND status = 'queued'
)
SELECT worker.wake_run($1) WHERE $3
