"""An agent of the SDK on a free port, and the words of a client that keeps to nothing."""

import logging
import socket
import struct
import threading
import time

import pytest
import uvicorn


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(self.format(record))


class Agent:
    def __init__(self, port, log):
        self.port = port
        self.log = log

    def dial(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return connection

    def ask(self, text):
        """All that comes back until the agent hangs up, for bytes as they are."""
        with self.dial() as connection:
            connection.sendall(text)
            return read_all(connection)

    def invoke(self, body, *headers):
        lines = ["POST /invocations HTTP/1.1", "host: a", "connection: close", f"content-length: {len(body)}", *headers]
        return self.ask("\r\n".join([*lines, "", ""]).encode() + body)

    def alive(self):
        return b'"status":"Healthy' in self.ask(b"GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").replace(b" ", b"")


def read_all(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def reset(connection):
    """Hangs up without a goodbye."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.01)


@pytest.fixture
def serve():
    stops = []

    def start(app, **options):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=1, **({"log_level": "warning"} | options)))
        log = Records()
        for name in ("uvicorn.error", "agentplatform"):
            logging.getLogger(name).addHandler(log)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        until(lambda: server.started)

        def stop():
            server.should_exit = True
            thread.join(10)
            listener.close()

        stops.append(stop)
        return Agent(listener.getsockname()[1], log.texts)

    yield start
    for stop in stops:
        stop()
