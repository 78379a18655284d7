"""What `GET /ping` answers."""

import asyncio
import inspect
import itertools
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .no_exit import no_exit

_log = logging.getLogger("agentplatform")

#: Seconds that a custom handler has.
_HANDLER_LIMIT = 2.0


class PingStatus(str, Enum):
    """`HEALTHY_BUSY` keeps a session alive though nobody calls it."""

    HEALTHY = "Healthy"
    HEALTHY_BUSY = "HealthyBusy"


PingHandler = Callable[[], PingStatus | str | Awaitable[PingStatus | str]]


@dataclass(frozen=True)
class RunningTask:
    """Background work that has not ended."""

    name: str
    #: Seconds since it began.
    duration: float
    metadata: dict[str, Any] = field(default_factory=dict)


class Health:
    """A forced status, else the custom handler's, else busy while tasks run. Safe to use from any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._tasks: dict[int, tuple[str, float, dict[str, Any]]] = {}
        self._last = PingStatus.HEALTHY
        self._changed_at = now()
        self._asking: asyncio.Task[PingStatus | str] | None = None
        self.forced: PingStatus | None = None
        self.handler: PingHandler | None = None

    def add(self, name: str, metadata: dict[str, Any] | None) -> int:
        """Notes background work and returns its id."""
        with self._lock:
            task = next(self._ids)
            self._tasks[task] = (name, time.monotonic(), dict(metadata or {}))
        return task

    def complete(self, task: int) -> bool:
        """False when no such work is known."""
        with self._lock:
            return self._tasks.pop(task, None) is not None

    def tasks(self) -> list[RunningTask]:
        """Background work that runs now."""
        with self._lock:
            known = list(self._tasks.values())
        return [RunningTask(name, time.monotonic() - since, metadata) for name, since, metadata in known]

    async def status(self) -> PingStatus:
        """The status now; never raises."""
        status = self.forced or await self._asked() or (PingStatus.HEALTHY_BUSY if self._tasks else PingStatus.HEALTHY)
        if status != self._last:
            self._last = status
            self._changed_at = self._now()
        return status

    async def report(self) -> dict[str, str | int]:
        """The body of the answer; the time is that of the last change, in Unix seconds."""
        return {"status": (await self.status()).value, "time_of_last_update": int(self._changed_at)}

    async def _asked(self) -> PingStatus | None:
        if self.handler is None:
            return None
        # One question at a time: a handler that hangs costs one thread, not one a ping.
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(_ask(self.handler))
        asking = self._asking
        try:
            return PingStatus(await asyncio.wait_for(asyncio.shield(asking), _HANDLER_LIMIT))
        except asyncio.TimeoutError:
            _log.warning("the ping handler gave no answer within %s s; answering by the running tasks instead", _HANDLER_LIMIT)
        except Exception:
            _log.warning("the ping handler failed; answering by the running tasks instead", exc_info=True)
        return None


async def _ask(handler: PingHandler) -> PingStatus | str:
    with no_exit():
        if inspect.iscoroutinefunction(handler):
            answer: PingStatus | str = await handler()
            return answer
        status = await asyncio.to_thread(handler)
        return await status if inspect.isawaitable(status) else status
