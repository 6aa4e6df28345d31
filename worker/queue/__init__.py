"""A pg-boss client for Python: `from worker.queue import PgBoss`."""

from worker.queue.changing import UNCHANGED, Upserted
from worker.queue.claiming import Delivery, FetchOptions, GroupConcurrency
from worker.queue.client import PgBoss
from worker.queue.core import Fence
from worker.queue.cron import CronForwards, CronPass
from worker.queue.finding import JobRow
from worker.queue.flows import FlowJob
from worker.queue.listening import Wakeups
from worker.queue.options import JobChanges, NewJob, QueueChanges, QueueOptions, SendOptions
from worker.queue.queues import QueueRow, QueueStats
from worker.queue.reviving import Redriven
from worker.queue.schedules import Schedule
from worker.queue.supervision import Expired, Supervised

__all__ = [
    "UNCHANGED",
    "CronForwards",
    "CronPass",
    "Delivery",
    "Expired",
    "Fence",
    "FetchOptions",
    "FlowJob",
    "GroupConcurrency",
    "JobChanges",
    "JobRow",
    "NewJob",
    "PgBoss",
    "QueueChanges",
    "QueueOptions",
    "QueueRow",
    "QueueStats",
    "Redriven",
    "Schedule",
    "SendOptions",
    "Supervised",
    "Upserted",
    "Wakeups",
]
