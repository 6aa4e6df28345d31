"""A pg-boss client for Python: `from worker.queue import PgBoss`."""

from worker.queue.claiming import Delivery
from worker.queue.client import PgBoss
from worker.queue.core import Fence
from worker.queue.options import QueueOptions, SendOptions
from worker.queue.queues import QueueRow

__all__ = ["Delivery", "Fence", "PgBoss", "QueueOptions", "QueueRow", "SendOptions"]
