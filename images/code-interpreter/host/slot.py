"""The place of one kernel: started when needed, one call after the other, ended and replaced when it does not obey."""

import asyncio

from . import limits
from .kernel import KernelDied
from .problem import Problem


class Slot:
    def __init__(self, name, make):
        self.name = name
        self._make = make
        self._kernel = None
        self._lock = asyncio.Lock()
        self._calls = 0
        self._lost = None

    @property
    def ready(self):
        return self._kernel is not None and self._kernel.alive

    async def warm(self):
        """Starts the kernel ahead of its first call; what goes wrong is told to that call, which tries again."""
        async with self._lock:
            try:
                await self._ready()
            except (KernelDied, Problem):
                pass

    async def execute(self, code, output, *, clear, seconds, gone):
        """Runs code and returns `{"ok", "note"}`. `gone` is an event that is set when nobody waits for the result any more."""
        if self._calls >= limits.WAITING_CALLS:
            raise Problem("busy", f"{self._calls} calls wait for the {self.name} kernel already.")
        self._calls += 1
        try:
            await self._until_free(gone)
            try:
                if clear:
                    self._discard(None)
                return await self._execute(code, output, seconds, gone)
            finally:
                self._lock.release()
        finally:
            self._calls -= 1

    async def _until_free(self, gone):
        if not self._lock.locked():
            await self._lock.acquire()
            return
        acquire = asyncio.ensure_future(self._lock.acquire())
        leave = asyncio.ensure_future(gone.wait())
        await asyncio.wait({acquire, leave}, return_when=asyncio.FIRST_COMPLETED)
        leave.cancel()
        if acquire.done():
            return
        acquire.cancel()
        try:
            await acquire
        except asyncio.CancelledError:
            raise Problem("busy", "The caller went away before its turn came.") from None

    async def _execute(self, code, output, seconds, gone):
        lost, self._lost = self._lost, None
        try:
            kernel = await self._ready()
            if gone.is_set():
                return {"ok": False, "note": "The caller went away before its code ran."}
            run = asyncio.ensure_future(kernel.run(code, output))
            why = await self._wait(run, seconds, gone)
            if why is None:
                return {"ok": run.result(), "note": lost}
            if await self._interrupt(kernel, run):
                run.exception()
                if kernel.alive:
                    return {"ok": False, "note": f"{why} The code was interrupted; variables are kept."}
            else:
                run.cancel()
            self._discard(None)
            return {"ok": False, "note": f"{why} The code did not stop when interrupted, so its kernel was ended: variables are lost, files are kept."}
        except KernelDied as error:
            self._discard(None)
            return {
                "ok": False,
                "note": f"The {self.name} kernel {error}. Variables are lost, files are kept; the next call starts a new kernel.",
            }

    async def _interrupt(self, kernel, run):
        """Whether it obeyed. Said again and again: the first may come before the kernel has begun with the code."""
        for _ in range(limits.INTERRUPTS):
            kernel.interrupt()
            if await self._wait(run, limits.INTERRUPT_SECONDS / limits.INTERRUPTS, None) is None:
                return True
        return False

    async def _wait(self, run, seconds, gone):
        """None when `run` is done, else why it was not waited for any longer."""
        leave = asyncio.ensure_future(gone.wait()) if gone is not None else None
        await asyncio.wait({run, leave} - {None}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        left = leave is not None and leave.done()
        if leave is not None:
            leave.cancel()
        if run.done():
            return None
        return "The caller went away." if left else f"The code ran for more than {seconds:g} s."

    async def _ready(self):
        if self.ready:
            return self._kernel
        if self._kernel is not None:
            self._discard(None)
        kernel = self._make()
        try:
            await kernel.start()
        except BaseException:
            kernel.kill()
            raise
        self._kernel = kernel
        return kernel

    def _discard(self, lost):
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            kernel.kill()
        self._lost = lost and f"The {self.name} kernel {lost} before this call: it started without variables."

    def kill(self):
        """For a kernel whose process was ended from outside; the call under way, if any, notices by itself."""
        if not self._lock.locked():
            self._discard("was ended with all processes of the session")
