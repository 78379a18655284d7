"""A real server on a free port, asked over real sockets."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn

from agentplatform import AgentPlatformApp


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        lines = self.body.decode().splitlines()
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@dataclass
class Server:
    port: int

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)

    def request(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def invoke(self, payload: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return self.request("POST", "/invocations", json.dumps(payload).encode(), headers)

    def ping(self) -> Any:
        return self.request("GET", "/ping").json


Serve = Callable[[AgentPlatformApp], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    stops: list[Callable[[], None]] = []

    def start(app: AgentPlatformApp) -> Server:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)

        def stop() -> None:
            server.should_exit = True
            thread.join(10)
            listener.close()

        stops.append(stop)
        return Server(listener.getsockname()[1])

    yield start
    for stop in stops:
        stop()
