-- Remember which job a schedule sent last; $1 = queue, $2 = key, $3 = job id; returns nothing.
UPDATE {queue}.schedule SET last_job_id = $3 WHERE name = $1 AND key = $2
