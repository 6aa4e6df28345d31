-- Send a page, once; $1 = run, $2 = the page's job, $3 = its message; returns the job's id, or null when it was sent before.
SELECT worker.send_page($1, $2, $3)
