"""The channels of a Jupyter kernel: requests out, messages in as they come, with no task, no future and no poll for each of them."""

import asyncio
import json
from datetime import datetime, timezone

import zmq
from jupyter_client.blocking import BlockingKernelClient

DELIMITER = b"<IDS|MSG>"
AT_ONCE = 64
"""Messages taken in a row: a program that only prints must not keep this server from anything else."""


class Channels:
    """`take(kind, request_id, content)` gets each message; `content()` parses it. Sockets and keys are jupyter_client's."""

    def __init__(self, connection_file, take):
        self._take = take
        self._client = BlockingKernelClient()
        self._client.load_connection_file(connection_file)
        self._client.start_channels(hb=False, stdin=False, control=False)
        self._shell = self._client.shell_channel.socket
        self._sockets = (self._client.iopub_channel.socket, self._shell)
        self._loop = asyncio.get_running_loop()
        self._files = [socket.getsockopt(zmq.FD) for socket in self._sockets]
        self._again = None
        self._sent = 0
        for file in self._files:
            self._loop.add_reader(file, self._read)

    def request(self, kind, content):
        """Sends a request and returns its id."""
        session = self._client.session
        self._sent += 1
        request_id = f"{session.session}_{self._sent}"
        header = {
            "msg_id": request_id,
            "msg_type": kind,
            "username": "",
            "session": session.session,
            "date": datetime.now(timezone.utc).isoformat(),
            "version": "5.3",
        }
        parts = [json.dumps(header).encode(), b"{}", b"{}", json.dumps(content).encode()]
        self._shell.send_multipart([DELIMITER, session.sign(parts), *parts])
        # To send may take up the signal that something has come.
        self._read_soon()
        return request_id

    def _read_soon(self):
        if self._again is None:
            self._again = self._loop.call_soon(self._read)

    def _read(self):
        self._again = None
        for socket in self._sockets:
            for _ in range(AT_ONCE):
                try:
                    frames = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                self._pass_on(frames)
                if self._client is None:
                    return
            else:
                self._read_soon()

    def _pass_on(self, frames):
        # The signature is not checked: only this session's own code could have reached the socket, and it reads the key as well. What
        # it may send there instead of a message is nobody's, and must not end the reading of the others.
        try:
            _, header, parent, _, content = frames[frames.index(DELIMITER) + 1 :][:5]
            kind, request_id = json.loads(header)["msg_type"], json.loads(parent).get("msg_id")
            self._take(kind, request_id, lambda: json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return

    def close(self):
        client, self._client = self._client, None
        if client is None:
            return
        for file in self._files:
            self._loop.remove_reader(file)
        if self._again is not None:
            self._again.cancel()
        client.stop_channels()
