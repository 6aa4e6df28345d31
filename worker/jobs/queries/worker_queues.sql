-- Make a worker's rows of these queues, with nothing counted yet; $1 = worker, $2 = queues; returns nothing of use.
SELECT worker._worker_progress($1, queue, 0, NULL) FROM unnest($2::text[]) AS queue
