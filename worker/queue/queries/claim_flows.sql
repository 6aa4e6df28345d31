-- Take the right to resolve flows for five seconds, from Node as well; returns true or nothing.
UPDATE {queue}.version SET flow_on = now()
WHERE flow_on IS NULL OR flow_on <= now() - interval '5 seconds'
RETURNING true
