-- Create a queue; an existing one is left as it is; $1 = name, $2 = options; returns nothing.
SELECT {queue}.create_queue($1, $2::jsonb)
