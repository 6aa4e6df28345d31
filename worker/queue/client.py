"""A pg-boss client: queues, sending, claiming and settling, on PostgreSQL alone."""

from worker.queue.changing import Changing
from worker.queue.claiming import Claiming
from worker.queue.cron import Cron
from worker.queue.finding import Finding
from worker.queue.listening import Listening
from worker.queue.pubsub import PubSub
from worker.queue.queues import Queues
from worker.queue.reviving import Reviving
from worker.queue.sending import Sending
from worker.queue.settling import Settling
from worker.queue.supervision import Supervision


class PgBoss(Cron, Supervision, PubSub, Listening, Queues, Changing, Sending, Claiming, Settling, Reviving, Finding):
    """Speaks pg-boss's words: what it sends, Node works on, and the other way round."""
