"""A real Jupyter kernel, driven through jupyter_client."""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import write_connection_file

from . import limits, processes
from .kernel import Kernel, KernelDied
from .problem import Problem
from .rich import blocks_of
from .streams import Streams

POLL_SECONDS = 0.25
DELIMITER = b"<IDS|MSG>"
DENO = "/opt/python/bin/deno"
LATE_SECONDS = 1.0
"""After the reply, how long the kernel's last outputs may take."""


def python_command(connection_file):
    return [
        *[sys.executable, "-m", "ipykernel_launcher", "-f", connection_file],
        # Its database of history would be written to disk with every call; `In` and `Out` are there without it.
        "--HistoryManager.enabled=False",
        # What is written past `sys.stdout`, e.g. by a child, comes through our own pipes: none of it is late or lost.
        "--IPKernelApp.capture_fd_output=False",
        # A rest before each reply, for clients that do not wait for `idle`; we do.
        "--IPythonKernel._execute_sleep=0",
    ]


def deno_command(connection_file):
    return ["/usr/bin/env", "NO_COLOR=1", DENO, "jupyter", "--kernel", "--conn", connection_file]


class JupyterKernel(Kernel):
    def __init__(self, command, transport="ipc"):
        self._command = command
        self._transport = transport
        self._client = None
        self._directory = None
        self._streams = None

    async def start(self):
        self._directory = tempfile.TemporaryDirectory(prefix="kernel-", dir="/tmp")
        file = os.path.join(self._directory.name, "connection.json")
        ip = os.path.join(self._directory.name, "socket") if self._transport == "ipc" else "127.0.0.1"
        write_connection_file(file, transport=self._transport, ip=ip, key=os.urandom(16).hex().encode())
        self._streams = Streams()
        stdout, stderr = self._streams.write_ends
        try:
            self.process = processes.start(self._command(file), cwd=processes.WORKSPACE, stdout=stdout, stderr=stderr)
        except OSError as error:
            raise KernelDied(f"could not be started: {error}") from error
        finally:
            self._streams.started()
        client = AsyncKernelClient()
        client.load_connection_file(file)
        client.start_channels(hb=False, stdin=False)
        self._client = client
        await self._until_it_answers(time.monotonic() + limits.START_SECONDS)

    async def _until_it_answers(self, deadline):
        """Both channels must work: a kernel that answers before its outputs are subscribed to would lose the first of them."""
        answered = heard = False
        self._client.kernel_info()
        while not (answered and heard):
            if not self.alive:
                raise KernelDied(f"ended {processes.describe_status(self.process.poll())} while it started{self._said()}")
            if time.monotonic() > deadline:
                raise KernelDied(f"did not answer within {limits.START_SECONDS} s")
            if not heard:
                try:
                    await self._client.get_iopub_msg(timeout=POLL_SECONDS)
                    heard = True
                except Exception as error:  # queue.Empty: nothing yet
                    _only_empty(error)
            try:
                await self._client.get_shell_msg(timeout=0.01 if not answered else 0)
                answered = True
            except Exception as error:
                _only_empty(error)
            if answered and not heard:
                self._client.kernel_info()

    def _said(self):
        self._streams.drain()
        text = self._streams.first.decode("utf-8", "replace").strip()
        return f", having written: {text[-1000:]}" if text else ""

    async def run(self, code, output):
        # Its own name: a kernel that is ended meanwhile has no streams any more.
        streams = self._streams
        streams.sink = output.bytes
        message_id = self._client.execute(code, store_history=True, allow_stdin=False, stop_on_error=True)
        outputs = asyncio.ensure_future(self._outputs(message_id, output))
        try:
            failed = await self._until_idle(outputs)
            reply = await asyncio.wait_for(self._reply(message_id), LATE_SECONDS * 5)
        finally:
            outputs.cancel()
            streams.drain()
            streams.sink = None
        if reply["status"] != "ok" and not failed:
            failed = True
            output.error(reply.get("traceback") or [f"{reply.get('ename', 'Error')}: {reply.get('evalue', '')}"])
        return not failed

    async def _until_idle(self, outputs):
        """Whether an error was among the outputs. Nothing tells of a kernel that died, so it is looked at now and then."""
        replied_at = None
        while not (await asyncio.wait({outputs}, timeout=POLL_SECONDS))[0]:
            if not self.alive:
                raise KernelDied(f"ended {processes.describe_status(self.process.poll())}")
            if await self._client.shell_channel.socket.poll(0):
                # A flood of output can push the last message out of the queue.
                replied_at = replied_at or time.monotonic()
                if time.monotonic() - replied_at > LATE_SECONDS:
                    return False
        return outputs.result()

    async def _receive(self, channel):
        """A message: its type, the id of the request that it belongs to, and its content."""
        # Not the client's own way, which asks whether there is a message before it takes it, and looks for dates in all of it. Nor
        # is the signature checked: only this session's own code could have reached the socket, and it reads the key as well.
        frames = await channel.socket.recv_multipart()
        _, header, parent, _, content = frames[frames.index(DELIMITER) + 1 :][:5]
        return json.loads(header)["msg_type"], json.loads(parent).get("msg_id"), json.loads(content)

    async def _reply(self, message_id):
        while True:
            _, parent, content = await self._receive(self._client.shell_channel)
            if parent == message_id:
                return content

    async def _outputs(self, message_id, output):
        """Passes outputs on until the kernel says that it is idle again; whether an error was among them."""
        failed = False
        while True:
            kind, parent, content = await self._receive(self._client.iopub_channel)
            if parent != message_id:
                continue
            if kind == "stream":
                output.text("stderr" if content["name"] == "stderr" else "stdout", content["text"])
            elif kind in ("display_data", "execute_result"):
                output.blocks(blocks_of(content["data"]))
            elif kind == "error":
                failed = True
                output.error(content.get("traceback") or [f"{content.get('ename')}: {content.get('evalue')}"])
            elif kind == "status" and content["execution_state"] == "idle":
                return failed

    def interrupt(self):
        processes.signal_group(self.process, signal.SIGINT)

    def kill(self):
        if self._client is not None:
            self._client.stop_channels()
            self._client = None
        if self.process is not None:
            processes.finish(self.process)
        if self._streams is not None:
            self._streams.close()
            self._streams = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


def _only_empty(error):
    if type(error).__name__ != "Empty":
        raise error


def deno_or_problem():
    if not os.path.exists(DENO):
        raise Problem("invalid", "This session has no Deno, which only the full image brings; use runtime nodejs.")
    return JupyterKernel(deno_command, transport="tcp")
