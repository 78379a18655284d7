"""What of a text is told: not more than is kept, and nothing that the wire could not carry."""

from .limits import STREAM_BYTES

HEAD = STREAM_BYTES // 2
TAIL = 64 * 1024


def sound(text):
    """With U+FFFD for lone surrogates: a message that holds one could not be sent, and all that stands in it would be lost."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def bounded(text):
    """What is longer than all that is kept of a call's stderr is cut in its middle, which says so and leaves room for the traceback."""
    text = sound(text)
    if len(text) <= STREAM_BYTES:
        return text
    return f"{text[:HEAD]}\n[{len(text) - HEAD - TAIL} characters of this error were cut]\n{text[-TAIL:]}"
