"""What a call prints: passed on as it comes, up to a limit, with a count of what was cut."""

import codecs


class CappedStream:
    """One of stdout and stderr. `take` gives the text to pass on, which is empty once the limit is reached."""

    def __init__(self, limit):
        self.limit = limit
        self.kept = 0
        self.cut = 0
        # Half a character at the end of a chunk waits for its other half; what is no UTF-8 becomes U+FFFD.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take_bytes(self, chunk):
        return self.take(self._decoder.decode(chunk))

    def end(self):
        return self.take(self._decoder.decode(b"", final=True))

    def take(self, text):
        # Lone surrogates are no text that the wire could carry.
        data = text.encode("utf-8", "replace")
        left = self.limit - self.kept
        if len(data) <= left:
            self.kept += len(data)
            return data.decode("utf-8")
        self.cut += len(data) - max(0, left)
        self.kept = self.limit
        return data[: max(0, left)].decode("utf-8", "ignore")


class CallOutput:
    """Sends the events of one call. `send` takes a dict and must not block."""

    def __init__(self, send, stream_bytes, rich_bytes):
        self._send = send
        self.streams = {"stdout": CappedStream(stream_bytes), "stderr": CappedStream(stream_bytes)}
        self._rich_left = rich_bytes
        self.rich_cut = 0

    def _pass_on(self, name, text):
        if text:
            self._send({"event": "output", "stream": name, "text": text})

    def text(self, name, text):
        self._pass_on(name, self.streams[name].take(text))

    def bytes(self, name, chunk):
        self._pass_on(name, self.streams[name].take_bytes(chunk))

    def end_streams(self):
        for name, stream in self.streams.items():
            self._pass_on(name, stream.end())

    def blocks(self, blocks):
        """Rich results; one that does not fit any more is left out and counted."""
        for block in blocks:
            size = sum(len(value.encode()) for value in block.values() if isinstance(value, str))
            if size > self._rich_left:
                self.rich_cut += size
                continue
            self._rich_left -= size
            self._send({"event": "block", "block": block})

    def cut(self):
        counts = {name: stream.cut for name, stream in self.streams.items()}
        return {**counts, "rich": self.rich_cut}
