-- Cancel a job that was put aside although somebody wants its end: its worker would never hear of it; $1 = job; returns the status it then has, or nothing.
SELECT worker.cancel(id) FROM worker.jobs WHERE id = $1 AND status = 'queued' AND cancel_requested_at IS NOT NULL
