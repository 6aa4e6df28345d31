-- Keys of a key_strict_fifo queue that a failed job holds up; $1 = queue; returns them in order.
SELECT DISTINCT singleton_key FROM {queue}.job
WHERE name = $1 AND state = 'failed' AND policy = 'key_strict_fifo'
ORDER BY singleton_key
