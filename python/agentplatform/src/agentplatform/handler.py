"""Calls the agent's own function so that nothing it does holds up the server's event loop, and with it `/ping`."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from .no_exit import no_exit

T = TypeVar("T")


class Worker:
    """A second event loop in a thread of its own, for handlers that are asynchronous in name and block all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Runs what `work` gives there, in the caller's context variables; cancelling the future cancels the work."""

        async def run() -> T:
            with no_exit():
                return await work()

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_keep_running, args=(self._loop,), daemon=True, name="agentplatform-worker").start()
        return asyncio.run_coroutine_threadsafe(run(), self._loop)


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    # A task that the agent starts besides, and exits in, ends the loop, as does `stop()`: what else runs there goes on.
    while True:
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


def takes_context(handler: Callable[..., Any]) -> bool:
    """Whether a handler wants the context beside the payload: a second positional parameter named so, or one without default."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        return False
    return positional[1].name == "context" or positional[1].default is inspect.Parameter.empty


async def call(worker: Worker, handler: Callable[..., Any], *args: Any) -> Any:
    """What the handler returns or raises; a generator or an asynchronous iterable comes back as an asynchronous iterator."""
    function = handler if inspect.isroutine(handler) else getattr(handler, "__call__", handler)
    if inspect.isasyncgenfunction(function):
        return _from_worker(worker, handler(*args))
    if inspect.iscoroutinefunction(function):
        result = await asyncio.wrap_future(worker.submit(lambda: handler(*args)))
    else:
        result = await run_in_threadpool(no_exit()(handler), *args)
        if inspect.iscoroutine(coroutine := result):
            result = await asyncio.wrap_future(worker.submit(lambda: coroutine))
    if isinstance(result, AsyncIterable) and not isinstance(result, Response):
        return _from_worker(worker, result)
    if inspect.isgenerator(result):
        return _from_threads(result)
    return result


async def _from_worker(worker: Worker, source: AsyncIterable[Any]) -> AsyncIterator[Any]:
    """Items of a source that runs on the worker, one at a time; it is cancelled when its reader goes away."""
    here = asyncio.get_running_loop()
    items: asyncio.Queue[tuple[Any]] = asyncio.Queue(maxsize=1)

    async def pump() -> None:
        try:
            async for item in source:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(items.put((item,)), here))
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    # One task for the whole source, so that what it sets in context variables stays set for it.
    pumping = worker.submit(pump)
    done = asyncio.ensure_future(asyncio.wrap_future(pumping))
    try:
        while True:
            getting = asyncio.ensure_future(items.get())
            await asyncio.wait((getting, done), return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                getting.cancel()
                break
            yield getting.result()[0]
        while not items.empty():
            yield items.get_nowait()[0]
        await done
    finally:
        pumping.cancel()
        done.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await done


async def _from_threads(source: Iterator[Any]) -> AsyncIterator[Any]:
    """Items of a plain generator, each made in a thread, all in one context."""
    context = copy_context()
    end = object()

    def step() -> Any:
        with no_exit():
            return context.run(lambda: next(source, end))

    try:
        while (item := await run_in_threadpool(step)) is not end:
            yield item
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            # A thread may still be inside it, when its reader went away meanwhile: then it ends with that step.
            with suppress(ValueError), no_exit():
                close()
