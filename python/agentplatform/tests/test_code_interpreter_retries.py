"""A client that gives up must not run the code a second time, which boto3 would do unasked."""

import socket
import threading

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from agentplatform import CodeInterpreter

#: As little as a test can wait for; a later answer would change nothing.
IMPATIENT = Config(read_timeout=1, retries={"total_max_attempts": 2})
CODE = {"language": "python", "code": "1"}


class Silent:
    """A platform that answers nothing. It reads one connection after the other, in the order in which they came."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._requests = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        # They stay open: who closes one answers, in a way.
        connections = []
        while True:
            connection, _ = self._listener.accept()
            connections.append(connection)
            path = connection.makefile("rb").readline().split()[1].decode()
            if path == "/end":
                break
            self._requests.append(path.rsplit("/", 1)[1])
        self._listener.close()
        for connection in connections:
            connection.close()

    def requests(self):
        """The last part of the path of each request that has come; ends the server."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"GET /end HTTP/1.1\r\n\r\n")
            self._thread.join(60)
        assert not self._thread.is_alive()
        return self._requests


@pytest.fixture
def silent(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    return Silent()


def test_a_call_is_never_said_twice(silent, monkeypatch):
    interpreter = CodeInterpreter("us-east-1", endpoint_url=f"http://127.0.0.1:{silent.port}", config=IMPATIENT)
    monkeypatch.setattr(interpreter, "start", lambda: "s")
    with pytest.raises(ReadTimeoutError):
        interpreter.invoke("executeCode", CODE)
    assert silent.requests() == ["invoke"]


def test_a_call_of_boto3_is_said_twice(silent):
    """The control: what the client above is kept from."""
    plain = boto3.client("bedrock-agentcore", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{silent.port}", config=IMPATIENT)
    with pytest.raises(ReadTimeoutError):
        plain.invoke_code_interpreter(codeInterpreterIdentifier="i", sessionId="s", name="executeCode", arguments=CODE)
    assert silent.requests() == ["invoke", "invoke"]
