"""HTTP on the session's port, for the platform alone: `/ping`, and one route per kind of call."""

import asyncio
import json
import os

import tornado.web
from tornado.iostream import StreamClosedError

from . import files, limits, processes
from .call import Call
from .commands import Command, Tasks
from .jupyter_kernel import JupyterKernel, deno_or_problem, python_command
from .node_kernel import NodeKernel
from .problem import Problem
from .slot import Slot

MAX_BODY = 110 * 1024 * 1024
READ_CHUNK = 1024 * 1024
CROWDED_LOOKS = 2
KERNELS = {
    ("python", "python"): ("Python", lambda: JupyterKernel(python_command)),
    ("javascript", "nodejs"): ("JavaScript", lambda: NodeKernel("javascript")),
    ("typescript", "nodejs"): ("TypeScript", lambda: NodeKernel("typescript")),
    ("javascript", "deno"): ("Deno", deno_or_problem),
    ("typescript", "deno"): ("Deno", deno_or_problem),
}


class House:
    """What lives as long as the session: its kernels and its tasks."""

    def __init__(self):
        self._slots = {}
        self.tasks = Tasks()
        processes.when_cleared(self._lose_kernels)

    def _lose_kernels(self):
        for slot in self._slots.values():
            slot.kill()

    def slot(self, language, runtime):
        kind = KERNELS.get((language, runtime or ("python" if language == "python" else "nodejs")))
        if kind is None:
            raise Problem("invalid", f"There is no runtime {runtime} for {language}.")
        name, make = kind
        return self._slots.setdefault(name, Slot(name, make))

    @property
    def python_ready(self):
        return self.slot("python", None).ready

    async def watch(self):
        """Takes in orphans, and ends everything when the caller's processes leave no room for new ones."""
        crowded = 0
        while True:
            await asyncio.sleep(0.5)
            processes.reap()
            crowded = crowded + 1 if processes.crowded() else 0
            if crowded >= CROWDED_LOOKS:
                crowded = 0
                processes.clear()


class Base(tornado.web.RequestHandler):
    def initialize(self, house):
        self.house = house
        self.gone = asyncio.Event()

    def on_connection_close(self):
        self.gone.set()

    def arguments_of_body(self):
        try:
            value = json.loads(self.request.body)
        except ValueError as error:
            raise Problem("invalid", "The body is no JSON.") from error
        if not isinstance(value, dict):
            raise Problem("invalid", "The body is no JSON object.")
        return value

    def log_exception(self, typ, value, tb):
        if not isinstance(value, (Problem, StreamClosedError)):
            super().log_exception(typ, value, tb)

    def write_error(self, status_code, **kwargs):
        error = kwargs.get("exc_info", (None, None, None))[1]
        problem = error if isinstance(error, Problem) else None
        self.set_status(problem.status if problem else status_code)
        self.finish({"kind": problem.kind if problem else "failed", "message": str(problem or error or self._reason)})


class Ping(Base):
    def get(self):
        self.finish({"status": "Healthy", "pythonReady": self.house.python_ready})


class Execute(Base):
    async def post(self):
        args = self.arguments_of_body()
        slot = self.house.slot(args["language"], args.get("runtime"))
        call = Call(self, args.get("streamBytes", limits.STREAM_BYTES), limits.RICH_BYTES)
        outcome = await slot.execute(
            args["code"], call, clear=bool(args.get("clearContext")), seconds=args.get("seconds", limits.EXECUTION_SECONDS), gone=self.gone
        )
        await call.done(outcome["ok"], 0 if outcome["ok"] else 1, outcome["note"])


class RunCommand(Base):
    async def post(self):
        args = self.arguments_of_body()
        call = Call(self, args.get("streamBytes", limits.STREAM_BYTES), limits.RICH_BYTES)
        seconds = args.get("seconds", limits.EXECUTION_SECONDS)
        command = Command(args["command"], call.bytes)
        status = await command.wait(seconds, self.gone)
        note = f"The command ran for more than {seconds:g} s and was ended." if command.why == "timeout" else None
        await call.done(status == 0, status, note)


class StartTask(Base):
    def post(self):
        args = self.arguments_of_body()
        self.finish(self.house.tasks.start(args["command"], args.get("seconds", 28800)).view())


class OneTask(Base):
    def get(self, task_id):
        self.finish(self.house.tasks.get(task_id).view())

    async def delete(self, task_id):
        self.finish((await self.house.tasks.stop(task_id)).view())


@tornado.web.stream_request_body
class Files(Base):
    """The path is in the query: `/files?path=…`."""

    _writing = None
    _refused = None

    def prepare(self):
        self.path = self.get_query_argument("path", strip=False)
        if self.request.method == "PUT":
            self.request.connection.set_max_body_size(MAX_BODY)
            self._try(lambda: setattr(self, "_writing", files.Writing(self.path)))

    def data_received(self, chunk):
        if self._writing is not None and self._refused is None:
            self._try(lambda: self._writing.write(chunk))

    def _try(self, step):
        # The rest of the body is read all the same: an answer before its end would look like a broken connection.
        try:
            step()
        except Problem as problem:
            self._refused = problem

    def put(self):
        if self._refused is not None:
            raise self._refused
        self._writing.commit()
        self.finish({"size": self._writing.size})

    async def get(self):
        file, size = files.open_for_reading(self.path)
        with file:
            self.set_header("Content-Type", "application/octet-stream")
            self.set_header("Content-Length", str(size))
            left = size
            while left > 0:
                chunk = file.read(min(READ_CHUNK, left))
                if not chunk:
                    # It became shorter while it was read; a broken answer must not look like a whole one.
                    self.request.connection.stream.close()
                    return
                left -= len(chunk)
                self.write(chunk)
                await self.flush()

    def delete(self):
        files.remove(self.path)
        self.finish({})

    def on_finish(self):
        if self._writing is not None:
            self._writing.abandon()

    def on_connection_close(self):
        super().on_connection_close()
        if self._writing is not None:
            self._writing.abandon()


class Listing(Base):
    def get(self):
        self.finish(files.listing(self.get_query_argument("path", ".", strip=False)))


def application(house):
    with_house = {"house": house}
    return tornado.web.Application(
        [
            ("/ping", Ping, with_house),
            ("/execute", Execute, with_house),
            ("/command", RunCommand, with_house),
            ("/tasks", StartTask, with_house),
            ("/tasks/([0-9a-zA-Z-]{1,64})", OneTask, with_house),
            ("/files", Files, with_house),
            ("/list", Listing, with_house),
        ],
        log_function=lambda handler: None,
    )
