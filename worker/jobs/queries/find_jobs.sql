-- Jobs whose id lies in a range, which is what a shortened id means; $1 = first id, $2 = last id, $3 = queues; returns up to two ids.
SELECT id FROM worker.jobs WHERE id BETWEEN $1 AND $2
UNION
SELECT id FROM {queue}.job WHERE name = ANY ($3::text[]) AND id BETWEEN $1 AND $2 AND state < 'active'
LIMIT 2
