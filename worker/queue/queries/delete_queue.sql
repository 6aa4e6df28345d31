-- Delete a queue with its jobs; $1 = name; returns nothing.
SELECT {queue}.delete_queue($1)
