-- Say good-bye; $1 = worker; returns nothing.
UPDATE worker.worker_process SET stopped_at = clock_timestamp() WHERE id = $1
