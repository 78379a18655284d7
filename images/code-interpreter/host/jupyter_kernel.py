"""A real Jupyter kernel, spoken to as jupyter_client does."""

import asyncio
import os
import signal
import sys
import tempfile
import time

from jupyter_client.connect import write_connection_file

from . import limits, processes
from .channels import Channels
from .kernel import Kernel, KernelDied
from .output import CappedStream
from .problem import Problem
from .rich import blocks_of
from .streams import Streams

POLL_SECONDS = 0.25
DENO = "/opt/python/bin/deno"
LATE_SECONDS = 1.0
"""After the reply, how long the kernel's last outputs may take."""

ANSWER_SECONDS = 5.0
LATE_BYTES = 64 * 1024
"""Of what threads print between two calls, so much is kept for the next; of each stream."""

QUIET_SECONDS = 0.02
"""Without a message for so long, a kernel that mixes up their order has sent them all."""


def python_command(connection_file):
    return [
        *[sys.executable, "-m", "ipykernel_launcher", "-f", connection_file],
        # Its database of history would be written to disk with every call; `In` and `Out` are there without it.
        "--HistoryManager.enabled=False",
        # What is written past `sys.stdout`, e.g. by a child, comes through our own pipes: none of it is late or lost.
        "--IPKernelApp.capture_fd_output=False",
        # A rest before each reply, for clients that do not wait for `idle`; we do.
        "--IPythonKernel._execute_sleep=0",
        "--IPKernelApp.outstream_class=host.kernel_stream.KernelStream",
        "--IPKernelApp.kernel_class=host.python_kernel.PythonKernel",
    ]


def deno_command(connection_file):
    return ["/usr/bin/env", "NO_COLOR=1", DENO, "jupyter", "--kernel", "--conn", connection_file]


class Execution:
    """One request to run code, and how far its answers have come."""

    def __init__(self, output):
        self.id = None
        self.output = output
        self.failed = False
        self.idle = False
        self.reply = None
        self.replied_at = None


class JupyterKernel(Kernel):
    """`disorderly`: it may say that it is idle before the last outputs are sent."""

    def __init__(self, command, transport="ipc", disorderly=False):
        self._command = command
        self._transport = transport
        self._disorderly = disorderly
        self._channels = None
        self._directory = None
        self._streams = None
        self._execution = None
        self._heard = False
        self._answered = None
        self._heard_at = 0.0
        self._news = None
        self._late = {}

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
        self._channels = Channels(file, self._take)
        await self._until_it_answers()

    async def _until_it_answers(self):
        """Both channels must work: a kernel that answers before its outputs are subscribed to would lose the first of them."""
        deadline = time.monotonic() + limits.START_SECONDS
        self._ask()
        while not (self._answered and self._heard):
            if not self.alive:
                raise KernelDied(f"ended {processes.describe_status(self.process.poll())} while it started{self._said()}")
            if time.monotonic() > deadline:
                raise KernelDied(f"did not answer within {limits.START_SECONDS} s")
            await self._wait(POLL_SECONDS)
            if self._answered and not self._heard:
                self._ask()

    def _ask(self):
        return self._channels.request("kernel_info_request", {})

    def _said(self):
        self._streams.drain()
        text = self._streams.first.decode("utf-8", "replace").strip()
        return f", having written: {text[-1000:]}" if text else ""

    async def run(self, code, output):
        # Its own name: a kernel that is ended meanwhile has no streams any more.
        streams = self._streams
        streams.sink = output.bytes
        execution = self._execution = Execution(output)
        self._give_late(output)
        try:
            execution.id = self._channels.request(
                "execute_request",
                {
                    "code": code,
                    "silent": False,
                    "store_history": True,
                    "user_expressions": {},
                    "allow_stdin": False,
                    "stop_on_error": True,
                },
            )
            await self._until_over(execution)
            if self._disorderly:
                await self._until_quiet()
        finally:
            self._execution = None
            streams.drain()
            streams.sink = None
        reply = execution.reply
        if reply["status"] != "ok" and not execution.failed:
            execution.failed = True
            output.error(reply.get("traceback") or [f"{reply.get('ename', 'Error')}: {reply.get('evalue', '')}"])
        return not execution.failed

    async def _until_over(self, execution):
        """Nothing tells of a kernel that died, so it is looked at now and then."""
        idle_since = None
        while not (execution.idle and execution.reply):
            await self._wait(POLL_SECONDS)
            now = time.monotonic()
            # A flood of output can push the last message out of the queue.
            if execution.reply and now - execution.replied_at > LATE_SECONDS:
                return
            if execution.idle and not execution.reply:
                idle_since = idle_since or now
                if now - idle_since > ANSWER_SECONDS:
                    raise KernelDied("did not say how the code ended")
            if not self.alive and not (execution.idle and execution.reply):
                raise KernelDied(f"ended {processes.describe_status(self.process.poll())}")

    async def _until_quiet(self):
        """Asks once more, which takes the kernel through all that it has under way, and then listens until no more comes."""
        end = time.monotonic() + LATE_SECONDS
        self._answered, asked = None, self._ask()
        while time.monotonic() < end:
            left = QUIET_SECONDS - (time.monotonic() - self._heard_at)
            if self._answered == asked and left <= 0:
                return
            await self._wait(left if left > 0 else QUIET_SECONDS)

    async def _wait(self, seconds):
        """Until messages have come that were waited for, or so long."""
        self._news = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._news}, timeout=seconds)

    def _take(self, kind, request_id, content):
        if kind == "kernel_info_reply":
            self._answered = request_id
            return self._tell()
        if kind != "execute_reply" and not self._heard:
            self._heard = True
            self._tell()
        self._heard_at = time.monotonic()
        execution = self._execution
        if execution is not None and request_id == execution.id:
            self._take_of(execution, kind, content)
        elif kind == "stream":
            self._take_late(content())

    def _take_late(self, said):
        """What a thread prints once the call that began it is over goes to the call that runs, or waits for the next."""
        name = "stderr" if said["name"] == "stderr" else "stdout"
        if self._execution is not None:
            return self._execution.output.text(name, said["text"])
        stream, texts = self._late.setdefault(name, (CappedStream(LATE_BYTES), []))
        if taken := stream.take(said["text"]):
            texts.append(taken)

    def _give_late(self, output):
        late, self._late = self._late, {}
        for name, (stream, texts) in late.items():
            output.text(name, "".join(texts))
            if stream.cut:
                output.text(name, f"\n[{stream.cut} bytes that were printed between the calls were cut]\n")

    def _take_of(self, execution, kind, content):
        output = execution.output
        if kind == "stream":
            said = content()
            output.text("stderr" if said["name"] == "stderr" else "stdout", said["text"])
        elif kind in ("display_data", "execute_result"):
            output.blocks(blocks_of(content()["data"]))
        elif kind == "error":
            said = content()
            execution.failed = True
            output.error(said.get("traceback") or [f"{said.get('ename')}: {said.get('evalue')}"])
        elif kind == "status" and content()["execution_state"] == "idle":
            execution.idle = True
        elif kind == "execute_reply":
            execution.reply = content()
            execution.replied_at = time.monotonic()
        if execution.idle and execution.reply:
            self._tell()

    def _tell(self):
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def interrupt(self):
        processes.signal_group(self.process, signal.SIGINT)

    def kill(self):
        if self._channels is not None:
            self._channels.close()
            self._channels = None
        if self.process is not None:
            processes.finish(self.process)
        if self._streams is not None:
            self._streams.close()
            self._streams = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


def deno_or_problem():
    if not os.path.exists(DENO):
        raise Problem("invalid", "This session has no Deno, which only the full image brings; use runtime nodejs.")
    return JupyterKernel(deno_command, transport="tcp", disorderly=True)
