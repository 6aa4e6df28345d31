-- Write where a worker runs; $1 = worker, $2 = host, $3 = pid, $4 = jobs at once; returns nothing.
UPDATE worker.worker_process SET host = $2, pid = $3, slots = $4 WHERE id = $1
