"""Shell commands: one that is waited for, or a task that is asked about later."""

import asyncio
import signal
import time
import uuid

from . import limits, processes
from .output import CappedStream
from .problem import Problem
from .streams import Streams

GRACE_SECONDS = 1.0
DRAIN_SECONDS = 0.2
"""How long output may follow after the command itself ended: a program left in the background keeps the pipes open."""


class Command:
    """A running `bash -c`. `sink(stream, bytes)` gets what it prints."""

    def __init__(self, command, sink):
        self.why = None
        self._streams = Streams()
        self._streams.sink = sink
        stdout, stderr = self._streams.write_ends
        try:
            self._process = processes.start(
                ["/bin/bash", "-c", command], cwd=processes.WORKSPACE, stdout=stdout, stderr=stderr
            )
        except (OSError, ValueError) as error:
            self._streams.close()
            raise Problem("invalid", f"The command could not be started: {error}.") from error
        finally:
            self._streams.started()

    async def wait(self, seconds, gone):
        """Its exit status, 124 when its time ran out, 130 when it was stopped. Always ends."""
        deadline = time.monotonic() + seconds
        pause = 0.002
        killed = None
        while self._process.poll() is None:
            if self.why is None and gone.is_set():
                self.why = "stopped"
            if self.why is None and time.monotonic() > deadline:
                self.why = "timeout"
            if self.why is not None and killed is None:
                processes.signal_group(self._process, signal.SIGTERM)
                killed = time.monotonic()
            if killed is not None and time.monotonic() - killed > GRACE_SECONDS:
                processes.signal_group(self._process, signal.SIGKILL)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        end = time.monotonic() + DRAIN_SECONDS
        while self._streams.open and time.monotonic() < end:
            self._streams.drain()
            if self._streams.open:
                await asyncio.sleep(0.005)
        self._streams.close()
        status = self._process.poll()
        if self.why is not None:
            processes.finish(self._process)
        else:
            processes.release(self._process)
        if self.why == "timeout":
            return 124
        if self.why == "stopped":
            return 130
        return status if status >= 0 else 128 - status


class Task:
    def __init__(self, command, seconds):
        self.id = uuid.uuid4().hex
        self.status = "submitted"
        self.exit_code = None
        self.stopping = asyncio.Event()
        self._began = time.monotonic()
        self._ended = None
        self._texts = {"stdout": [], "stderr": []}
        self._streams = {name: CappedStream(limits.STREAM_BYTES) for name in self._texts}
        self._command = Command(command, self._take)
        self.status = "working"
        self.over = asyncio.ensure_future(self._run(seconds))

    def _take(self, stream, chunk):
        text = self._streams[stream].take_bytes(chunk)
        if text:
            self._texts[stream].append(text)

    async def _run(self, seconds):
        self.exit_code = await self._command.wait(seconds, self.stopping)
        self._ended = time.monotonic()
        stopped = self._command.why == "stopped"
        self.status = "canceled" if stopped else "completed" if self.exit_code == 0 else "failed"

    def view(self):
        return {
            "taskId": self.id,
            "taskStatus": self.status,
            "stdout": "".join(self._texts["stdout"]),
            "stderr": "".join(self._texts["stderr"]),
            "exitCode": self.exit_code,
            "seconds": (self._ended or time.monotonic()) - self._began,
            "cut": {name: stream.cut for name, stream in self._streams.items()},
        }


class Tasks:
    """The oldest task that has ended makes room for a new one; as long as all of them run, a new one is refused."""

    def __init__(self):
        self._tasks = {}

    def start(self, command, seconds):
        if len(self._tasks) >= limits.TASKS:
            over = next((task for task in self._tasks.values() if task.exit_code is not None), None)
            if over is None:
                raise Problem("busy", f"{limits.TASKS} commands run in the background already; stop one with stopTask.")
            del self._tasks[over.id]
        task = Task(command, seconds)
        self._tasks[task.id] = task
        return task

    def get(self, task_id):
        task = self._tasks.get(task_id)
        if task is None:
            raise Problem("not-found", f"There is no task {task_id[:100]} in this session.")
        return task

    async def stop(self, task_id):
        task = self.get(task_id)
        task.stopping.set()
        await asyncio.wait({task.over}, timeout=GRACE_SECONDS * 3)
        return task
