-- Let nobody else finish a page of a run, so that the next statement sees what all others have finished; $1 = run; returns it.
SELECT id FROM worker.runs WHERE id = $1 FOR UPDATE
