"""The HTTP contract of the platform's Runtime around an entrypoint function."""

import functools
import inspect
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from .answer import respond, respond_json
from .context import InvocationContext, context_from, current
from .copies import reseed_if_copied
from .handler import Worker, call, takes_context
from .health import Health, PingHandler, PingStatus, RunningTask
from .no_exit import no_exit
from .payload import read_payload

_log = logging.getLogger("agentplatform")

Entrypoint = Callable[..., Any]
WebSocketHandler = Callable[[WebSocket, InvocationContext], Awaitable[None]]
E = TypeVar("E", bound=Entrypoint)
W = TypeVar("W", bound=WebSocketHandler)
G = TypeVar("G", bound=PingHandler)
P = ParamSpec("P")
R = TypeVar("R")

#: Largest payload of the platform, in bytes.
MAX_PAYLOAD_BYTES = 100_000_000


class AgentPlatformApp:
    """
    Serves `POST /invocations`, `GET /ping` and, with a handler, `/ws` (spec: Runtime container contract).

    Usable as the one decorator of an entrypoint function, or as an object with `@app.entrypoint`. It is an ASGI application.
    """

    def __init__(
        self,
        entrypoint: Entrypoint | None = None,
        *,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` gives Unix seconds."""
        self._entrypoint = entrypoint
        self._websocket: WebSocketHandler | None = None
        self._max_payload_bytes = max_payload_bytes
        self._health = Health(now)
        self._worker = Worker()
        self._starlette = Starlette(
            routes=[
                Route("/invocations", self._invoke, methods=["POST"]),
                Route("/ping", self._ping, methods=["GET"]),
                WebSocketRoute("/ws", self._talk),
            ],
            exception_handlers={HTTPException: _http_error},
        )
        if entrypoint is not None:
            functools.update_wrapper(self, entrypoint, updated=())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        reseed_if_copied()
        await self._starlette(scope, receive, send)

    def entrypoint(self, handler: E) -> E:
        """Sets the function that serves invocations."""
        self._entrypoint = handler
        return handler

    def websocket(self, handler: W) -> W:
        """Sets the coroutine that serves `/ws`; it gets a Starlette WebSocket, which it accepts itself, and the context."""
        self._websocket = handler
        return handler

    def ping(self, handler: G) -> G:
        """Sets the function that decides the ping status, above running tasks and below a forced status."""
        self._health.handler = handler
        return handler

    def force_ping_status(self, status: PingStatus | str) -> None:
        """Answers every ping with `status` until `clear_forced_ping_status`. Raises ValueError for what is no status."""
        self._health.forced = PingStatus(status)

    def clear_forced_ping_status(self) -> None:
        """Lets handler and tasks decide again."""
        self._health.forced = None

    async def get_current_ping_status(self) -> PingStatus:
        """What a ping would be answered now."""
        return await self._health.status()

    def add_async_task(self, name: str, metadata: dict[str, Any] | None = None) -> int:
        """Notes background work, so that the session counts as busy until `complete_async_task` is called with the id."""
        return self._health.add(name, metadata)

    def complete_async_task(self, task_id: int) -> bool:
        """Ends background work; False when no such work is known."""
        return self._health.complete(task_id)

    def async_tasks(self) -> list[RunningTask]:
        """Background work that is running."""
        return self._health.tasks()

    def async_task(self, work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Wraps a coroutine function so that the session counts as busy while a call of it runs. Raises ValueError for any other."""
        if not inspect.iscoroutinefunction(work):
            raise ValueError("@app.async_task takes functions defined with `async def`, without yield.")

        @functools.wraps(work)
        async def busy(*args: P.args, **kwargs: P.kwargs) -> R:
            task = self.add_async_task(work.__name__)
            try:
                return await work(*args, **kwargs)
            finally:
                self.complete_async_task(task)

        return busy

    def run(self, port: int | None = None, host: str | None = None, **options: Any) -> None:
        """
        Listens until SIGTERM or SIGINT. The port is by default the environment's PORT, else 8080; the host 0.0.0.0.
        `options` go to uvicorn. Raises RuntimeError when there is nothing to serve.
        """
        import uvicorn

        if self._entrypoint is None and self._websocket is None:
            raise RuntimeError("No entrypoint: decorate a function with @app.entrypoint or @AgentPlatformApp.")
        settings: dict[str, Any] = {
            "host": host or "0.0.0.0",
            "port": _port_from_environment() if port is None else port,
            "access_log": False,
            "log_level": "warning",
            "timeout_keep_alive": 75,
            "timeout_graceful_shutdown": 5,
        }
        uvicorn.run(self, **(settings | options))

    async def _ping(self, _request: Request) -> Response:
        return JSONResponse(await self._health.report())

    async def _invoke(self, request: Request) -> Response:
        context = context_from(request)
        payload = await read_payload(request, self._max_payload_bytes)
        handler = self._entrypoint
        if handler is None:
            raise HTTPException(500, "No entrypoint: decorate a function with @app.entrypoint.")
        current.set(context)
        try:
            result = await call(self._worker, handler, *((payload, context) if takes_context(handler) else (payload,)))
            return respond(result, request.headers.get("accept"))
        except HTTPException:
            raise
        except Exception as error:
            _log.exception("the invocation failed")
            return respond_json({"error": str(error) or type(error).__name__}, 500)

    async def _talk(self, websocket: WebSocket) -> None:
        handler = self._websocket
        if handler is None:
            refusal = JSONResponse({"error": "This agent has no WebSocket handler."}, status_code=404)
            await websocket.send_denial_response(refusal)
            return
        context = context_from(websocket)
        current.set(context)
        try:
            with no_exit():
                await handler(websocket, context)
        except WebSocketDisconnect:
            return
        except Exception:
            _log.exception("the WebSocket handler failed")
            await _close(websocket, 1011)
            return
        await _close(websocket, 1000)


async def _close(websocket: WebSocket, code: int) -> None:
    try:
        await websocket.close(code)
    except RuntimeError:
        # Closed already, by either side.
        return


async def _http_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return respond_json({"error": error.detail}, error.status_code, error.headers)


def _port_from_environment() -> int:
    text = os.environ.get("PORT", "8080")
    if not (text.isascii() and text.isdecimal()) or int(text) > 65_535:
        raise ValueError(f"PORT is {text!r}, not a port number between 0 and 65535.")
    return int(text)
