-- Subscribe a queue to an event; $1 = event, $2 = queue; returns the queue's name, or nothing when there is no such queue.
INSERT INTO {queue}.subscription (event, name)
SELECT $1, queue.name FROM {queue}.queue AS queue WHERE queue.name = $2
ON CONFLICT (event, name) DO UPDATE SET updated_on = now()
RETURNING name
