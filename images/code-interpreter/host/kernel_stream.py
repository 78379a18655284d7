"""`sys.stdout` and `sys.stderr` of the Python kernel."""

from ipykernel.iostream import OutStream

from .error_text import sound


class KernelStream(OutStream):
    """
    The kernel flushes both streams three times a call, and each time its main thread waits for the thread that sends: most of what a
    short call takes. With nothing written there is nothing to wait for; what was written stays before all that is sent after it.
    """

    def write(self, string):
        written = super().write(sound(string) if isinstance(string, str) else string)
        return len(string) if isinstance(string, str) else written

    def flush(self):
        with self._buffer_lock:
            written = any(buffer.tell() for buffer in self._buffers.values())
        if written:
            super().flush()
