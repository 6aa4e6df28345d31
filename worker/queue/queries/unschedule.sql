-- Remove a schedule; $1 = queue, $2 = key; returns the queue's name if there was one.
DELETE FROM {queue}.schedule WHERE name = $1 AND key = $2 RETURNING name
