"""How much of an error is told."""

from .limits import STREAM_BYTES

HEAD = STREAM_BYTES // 2
TAIL = 64 * 1024


def bounded(text):
    """What is longer than all that is kept of a call's stderr is cut in its middle, which says so and leaves room for the traceback."""
    if len(text) <= STREAM_BYTES:
        return text
    return f"{text[:HEAD]}\n[{len(text) - HEAD - TAIL} characters of this error were cut]\n{text[-TAIL:]}"
