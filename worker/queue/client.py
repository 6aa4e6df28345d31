"""A pg-boss client: queues, sending, claiming and settling, on PostgreSQL alone."""

from worker.queue.claiming import Claiming
from worker.queue.queues import Queues
from worker.queue.sending import Sending
from worker.queue.settling import Settling


class PgBoss(Queues, Sending, Claiming, Settling):
    """Speaks pg-boss's words: what it sends, Node works on, and the other way round."""
