"""JavaScript and TypeScript on Node: requests and answers on two pipes of their own, so that what code prints stays apart."""

import asyncio
import json
import os
import signal

from . import limits, processes
from .kernel import Kernel, KernelDied
from .streams import CHUNK, Streams

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node-kernel.mjs")
MAX_ANSWER = 64 * 1024 * 1024


class NodeKernel(Kernel):
    def __init__(self, language):
        self._language = language
        self._requests = None
        self._answers = None
        self._streams = None
        self._buffer = b""
        self._done = None

    async def start(self):
        request_read, self._requests = os.pipe()
        self._answers, answer_write = os.pipe()
        self._streams = Streams()
        stdout, stderr = self._streams.write_ends
        try:
            self.process = processes.start(
                ["node", "--disable-warning=ExperimentalWarning", SCRIPT, self._language, str(request_read), str(answer_write)],
                cwd=processes.WORKSPACE,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(request_read, answer_write),
            )
        except OSError as error:
            raise KernelDied(f"could not be started: {error}") from error
        finally:
            for fd in (request_read, answer_write):
                os.close(fd)
            self._streams.started()
        loop = asyncio.get_running_loop()
        for fd in (self._answers, self._requests):
            os.set_blocking(fd, False)
        self._done = loop.create_future()
        loop.add_reader(self._answers, self._read_answers)
        await self._answer(limits.START_SECONDS)

    async def run(self, code, output):
        self._streams.sink = output.bytes
        self._done = asyncio.get_running_loop().create_future()
        request = json.dumps({"code": code}).encode() + b"\n"
        try:
            await self._send(request)
            answer = await self._answer(None)
        except BrokenPipeError:
            await asyncio.sleep(0.05)
            raise KernelDied(f"ended {processes.describe_status(self.process.poll())}") from None
        finally:
            # Written before the answer, so it is in the pipes by now.
            self._streams.drain()
            self._streams.sink = None
        if "error" in answer:
            output.error([answer["error"]])
            return False
        if answer.get("text") is not None:
            output.blocks([{"kind": "text", "mimeType": "text/plain", "text": answer["text"]}])
        if answer.get("html") is not None:
            output.blocks([{"kind": "resource", "mimeType": "text/html", "text": answer["html"]}])
        return True

    async def _send(self, request):
        view = memoryview(request)
        while view:
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                if not self.alive:
                    raise BrokenPipeError from None
                await asyncio.sleep(0.005)

    async def _answer(self, seconds):
        waited = 0.0
        while True:
            done, _ = await asyncio.wait({self._done}, timeout=0.25)
            if done:
                return self._done.result()
            waited += 0.25
            if not self.alive:
                raise KernelDied(f"ended {processes.describe_status(self.process.poll())}")
            if seconds is not None and waited > seconds:
                raise KernelDied(f"did not answer within {seconds} s")

    def _read_answers(self):
        try:
            chunk = os.read(self._answers, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._answers)
            return
        self._buffer += chunk
        if len(self._buffer) > MAX_ANSWER:
            self.kill()
            return
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            if not self._done.done():
                try:
                    self._done.set_result(json.loads(line))
                except ValueError:
                    self.kill()
                    return

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def kill(self):
        if self._streams is not None:
            self._streams.close()
        if self._answers is not None:
            asyncio.get_running_loop().remove_reader(self._answers)
            os.close(self._answers)
            os.close(self._requests)
            self._answers = self._requests = None
        if self.process is not None:
            processes.finish(self.process)
