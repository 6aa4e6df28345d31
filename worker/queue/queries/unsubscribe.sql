-- End a subscription; $1 = event, $2 = queue; returns the queue's name if it had one.
DELETE FROM {queue}.subscription WHERE event = $1 AND name = $2 RETURNING name
