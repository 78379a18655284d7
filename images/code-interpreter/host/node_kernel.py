"""JavaScript and TypeScript on Node: requests and answers on two pipes of their own, so that what code prints stays apart."""

import asyncio
import json
import os
import signal

from . import limits, processes
from .kernel import Kernel, KernelDied

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node-kernel.mjs")
CHUNK = 65536
MAX_ANSWER = 64 * 1024 * 1024


class NodeKernel(Kernel):
    def __init__(self, language):
        self._language = language
        self._requests = None
        self._answers = None
        self._streams = {}
        self._buffer = b""
        self._output = None
        self._done = None

    async def start(self):
        request_read, self._requests = os.pipe()
        self._answers, answer_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self.process = processes.start(
                ["node", "--disable-warning=ExperimentalWarning", SCRIPT, self._language, str(request_read), str(answer_write)],
                cwd=processes.WORKSPACE,
                stdout=out_write,
                stderr=err_write,
                pass_fds=(request_read, answer_write),
            )
        except OSError as error:
            raise KernelDied(f"could not be started: {error}") from error
        finally:
            for fd in (request_read, answer_write, out_write, err_write):
                os.close(fd)
        loop = asyncio.get_running_loop()
        self._streams = {out_read: "stdout", err_read: "stderr"}
        for fd in (*self._streams, self._answers, self._requests):
            os.set_blocking(fd, False)
        for fd in self._streams:
            loop.add_reader(fd, self._read_stream, fd)
        self._done = loop.create_future()
        loop.add_reader(self._answers, self._read_answers)
        await self._answer(limits.START_SECONDS)

    async def run(self, code, output):
        self._output = output
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
            for fd in list(self._streams):
                self._read_stream(fd)
            self._output = None
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

    def _read_stream(self, fd):
        # At most so much at a time: a program that only prints must not keep this server from anything else.
        for _ in range(16):
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                return self._forget(fd)
            if self._output is not None:
                self._output.bytes(self._streams[fd], chunk)

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

    def _forget(self, fd):
        if self._streams.pop(fd, None):
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def kill(self):
        for fd in list(self._streams):
            self._forget(fd)
        if self._answers is not None:
            asyncio.get_running_loop().remove_reader(self._answers)
            os.close(self._answers)
            os.close(self._requests)
            self._answers = self._requests = None
        if self.process is not None:
            processes.finish(self.process)
