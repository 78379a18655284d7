"""The Python kernel's own process: IPython, whose errors are cut where they arise."""

import gc
import sys
import traceback

from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets import Type

from .error_text import bounded
from .figures import bring_figures_back


class Said:
    """An exception as far as a traceback tells of it."""

    def __init__(self, error):
        self._error = error

    def __str__(self):
        return bounded(str(self._error))

    @property
    def __notes__(self):
        notes = getattr(self._error, "__notes__", [])
        return [bounded(note) if isinstance(note, str) else note for note in notes] if isinstance(notes, list) else notes


def shortened(told):
    told._str = bounded(told._str)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            shortened(other)
    return told


class Shell(ZMQInteractiveShell):
    """A message of 50 MB is otherwise in memory ten times, coloured, joined, encoded and signed, before anything can cut it."""

    def init_traceback_handlers(self, custom_exceptions):
        super().init_traceback_handlers(custom_exceptions)
        whole = self.InteractiveTB.format_exception
        self.InteractiveTB.format_exception = lambda kind, error: whole(kind, Said(error))

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        kind, error, frames = exc_tuple or sys.exc_info()
        if not isinstance(error, BaseExceptionGroup):
            return super().showtraceback(exc_tuple, *args, **kwargs)
        # IPython has Python itself print a group, with the frames of IPython and at full length.
        told = shortened(traceback.TracebackException(kind, error, frames.tb_next if frames else None))
        self._showtraceback(kind, error, ["".join(told.format()).rstrip("\n")])

    def _format_exception_for_storage(self, exception, *args, **kwargs):
        """IPython keeps every error as long as it runs, for a notebook that nobody saves here."""
        return {"ename": type(exception).__name__, "evalue": "", "traceback": []}

    def _showtraceback(self, etype, evalue, stb):
        super()._showtraceback(etype, Said(evalue), [bounded(part) for part in stb])


class PythonKernel(IPythonKernel):
    shell_class = Type(Shell)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        bring_figures_back(self.shell)

    async def do_execute(self, *args, **kwargs):
        reply = await super().do_execute(*args, **kwargs)
        said = reply.get("evalue", "")
        if bounded(said) is not said:
            reply["evalue"] = bounded(said)
            # An error and its frames refer to each other, and the collector counts objects, not bytes: a few of 50 MB would pile up.
            gc.collect()
        return reply
