-- The queues that want an event; $1 = event; returns their names.
SELECT name FROM {queue}.subscription WHERE event = $1 ORDER BY name
