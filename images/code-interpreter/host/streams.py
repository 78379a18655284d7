"""What a process of ours writes to its stdout and stderr, read from pipes as it comes."""

import asyncio
import os

CHUNK = 65536
FIRST_BYTES = 4096


class Streams:
    """
    Two pipes; `sink(name, bytes)` gets what comes. While there is none it is dropped, so that a program left in the background never
    blocks; the first of it is kept, for it says why a kernel did not start.
    """

    def __init__(self):
        self._open = {}
        self._write_ends = []
        for name in ("stdout", "stderr"):
            read, write = os.pipe()
            os.set_blocking(read, False)
            self._open[read] = name
            self._write_ends.append(write)
        self.sink = None
        self.first = b""

    @property
    def open(self):
        """Whether more may come."""
        return bool(self._open)

    @property
    def write_ends(self):
        """File descriptors for the process's stdout and stderr."""
        return self._write_ends

    def started(self):
        """To be called when the process has the write ends, or could not be started."""
        for fd in self._write_ends:
            os.close(fd)
        self._write_ends = []
        loop = asyncio.get_running_loop()
        for fd in self._open:
            loop.add_reader(fd, self._read, fd)

    def drain(self):
        """Takes what is in the pipes now: all that a process wrote before it said that it is done."""
        for fd in list(self._open):
            self._read(fd)

    def _read(self, fd):
        # At most so much at a time: a program that only prints must not keep this server from anything else.
        for _ in range(16):
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                return self._forget(fd)
            if self.sink is not None:
                self.sink(self._open[fd], chunk)
            elif len(self.first) < FIRST_BYTES:
                self.first += chunk[: FIRST_BYTES - len(self.first)]

    def _forget(self, fd):
        if self._open.pop(fd, None):
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)

    def close(self):
        for fd in list(self._open):
            self._forget(fd)
