"""A real Jupyter kernel, driven through jupyter_client."""

import asyncio
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

POLL_SECONDS = 0.25
LATE_SECONDS = 1.0
"""After the reply, how long the kernel's last outputs may take."""


def python_command(connection_file):
    return [sys.executable, "-m", "ipykernel_launcher", "-f", connection_file]


def deno_command(connection_file):
    return ["deno", "jupyter", "--kernel", "--conn", connection_file]


class JupyterKernel(Kernel):
    def __init__(self, command, transport="ipc"):
        self._command = command
        self._transport = transport
        self._client = None
        self._directory = None

    async def start(self):
        self._directory = tempfile.TemporaryDirectory(prefix="kernel-", dir="/tmp")
        file = os.path.join(self._directory.name, "connection.json")
        ip = os.path.join(self._directory.name, "socket") if self._transport == "ipc" else "127.0.0.1"
        write_connection_file(file, transport=self._transport, ip=ip, key=os.urandom(16).hex().encode())
        log = open(os.path.join(self._directory.name, "log"), "wb")
        try:
            self.process = processes.start(self._command(file), cwd=processes.WORKSPACE, stdout=log, stderr=log)
        except OSError as error:
            raise KernelDied(f"could not be started: {error}") from error
        finally:
            log.close()
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
        with open(os.path.join(self._directory.name, "log"), "rb") as log:
            text = log.read(4096).decode("utf-8", "replace").strip()
        return f", having written: {text[-1000:]}" if text else ""

    async def run(self, code, output):
        client = self._client
        message_id = client.execute(code, store_history=True, allow_stdin=False, stop_on_error=True)
        reply = asyncio.ensure_future(self._reply(message_id))
        try:
            return await self._outputs(message_id, reply, output)
        finally:
            reply.cancel()

    async def _reply(self, message_id):
        while True:
            try:
                message = await self._client.get_shell_msg(timeout=POLL_SECONDS)
            except Exception as error:
                _only_empty(error)
                continue
            if message["parent_header"].get("msg_id") == message_id:
                return message["content"]

    async def _outputs(self, message_id, reply, output):
        idle = False
        replied_at = None
        failed = False
        while not idle:
            try:
                message = await self._client.get_iopub_msg(timeout=POLL_SECONDS)
            except Exception as error:
                _only_empty(error)
                if not self.alive:
                    raise KernelDied(f"ended {processes.describe_status(self.process.poll())}") from None
                if reply.done():
                    # A flood of output can push the last message out of the queue.
                    replied_at = replied_at or time.monotonic()
                    if time.monotonic() - replied_at > LATE_SECONDS:
                        break
                continue
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                output.text("stderr" if content["name"] == "stderr" else "stdout", content["text"])
            elif kind in ("display_data", "execute_result"):
                output.blocks(blocks_of(content["data"]))
            elif kind == "error":
                failed = True
                output.error(content.get("traceback") or [f"{content.get('ename')}: {content.get('evalue')}"])
            elif kind == "status":
                idle = content["execution_state"] == "idle"
        content = await asyncio.wait_for(asyncio.shield(reply), LATE_SECONDS * 5)
        if content["status"] != "ok" and not failed:
            failed = True
            output.error(content.get("traceback") or [f"{content.get('ename', 'Error')}: {content.get('evalue', '')}"])
        return not failed

    def interrupt(self):
        processes.signal_group(self.process, signal.SIGINT)

    def kill(self):
        if self._client is not None:
            self._client.stop_channels()
            self._client = None
        if self.process is not None:
            processes.finish(self.process)
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


def _only_empty(error):
    if type(error).__name__ != "Empty":
        raise error


def deno_or_problem(find):
    if find("deno") is None:
        raise Problem("invalid", "This image has no Deno; use runtime nodejs.")
    return JupyterKernel(deno_command, transport="tcp")
