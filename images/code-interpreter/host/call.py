"""One streaming call: lines of JSON, written as they come, ended by one line that says so."""

import asyncio
import json
import re
import time

from .output import CallOutput

FLUSH_SECONDS = 0.02
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Call(CallOutput):
    """The output of a call, on its way to the platform. `write` sends bytes and may be awaited for room."""

    def __init__(self, handler, stream_bytes, rich_bytes):
        super().__init__(self._queue, stream_bytes, rich_bytes)
        self._handler = handler
        self._began = time.monotonic()
        self._pending = []
        self._flush = None

    def _queue(self, event):
        last = self._pending[-1] if self._pending else None
        if last and event["event"] == "output" and last["event"] == "output" and last["stream"] == event["stream"]:
            last["text"] += event["text"]
        else:
            self._pending.append(event)
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._write_pending)

    def error(self, lines):
        """An error's traceback: on stderr."""
        text = COLOURS.sub("", "\n".join(lines))
        self.text("stderr", text if text.endswith("\n") else text + "\n")

    def _write_pending(self):
        self._flush = None
        if self._pending and not self._handler.gone.is_set():
            self._handler.write(self._text_of_pending())
            self._handler.flush()

    def _text_of_pending(self):
        pending, self._pending = self._pending, []
        return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in pending)

    async def done(self, ok, exit_code, note=None, **more):
        self.end_streams()
        if self._flush is not None:
            self._flush.cancel()
        event = {
            "event": "done",
            "ok": ok,
            "exitCode": exit_code,
            "seconds": time.monotonic() - self._began,
            "note": note,
            "cut": self.cut(),
            **more,
        }
        self._pending.append(event)
        if not self._handler.gone.is_set():
            # All at once where nothing was sent before: head, events and end in one packet.
            await self._handler.finish(self._text_of_pending())
