-- Which queues share a table; returns each table's name and its queues.
SELECT table_name, array_agg(name ORDER BY name) AS names FROM {queue}.queue GROUP BY table_name ORDER BY table_name
