"""A pg-boss client for Python: `from worker.queue import PgBoss`."""

from worker.queue.client import Delivery, Fence, PgBoss, QueueRow
from worker.queue.options import QueueOptions, SendOptions

__all__ = ["Delivery", "Fence", "PgBoss", "QueueOptions", "QueueRow", "SendOptions"]
