"""Many machines: a queue of runs on the journal's PostgreSQL, and the workers that take runs from it.

A job of the queue is a wake: "somebody look at this run". It says nothing else, so that a lost or doubled one
does no harm: whoever takes it resumes the run as any process would, and the lease decides who may write.
"""

from shiftbook.workers.queue import Queue, open_queue
from shiftbook.workers.worker import Settings, Worker

__all__ = ["Queue", "Settings", "Worker", "open_queue"]
