-- Begin as a worker; $1 = version, $2 = seconds after which it is heard of again; returns its id.
SELECT worker._worker_start($1, make_interval(secs => $2))
