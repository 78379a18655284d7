"""Turns what an entrypoint returned into what its caller gets."""

import codecs
import dataclasses
import json
import logging
import math
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

_log = logging.getLogger("agentplatform")


def respond(result: Any, accept: str | None) -> Response:
    """Bytes as they are, a response as it is, an asynchronous iterator as events, a string as plain text where the caller takes nothing but that, all else as JSON."""
    if isinstance(result, Response):
        return result
    if isinstance(result, (bytes, bytearray, memoryview)):
        return Response(bytes(result), media_type="application/octet-stream")
    if isinstance(result, AsyncIterable):
        return StreamingResponse(_events(result), media_type="text/event-stream", headers={"cache-control": "no-cache"})
    if isinstance(result, str) and _prefers_text(accept):
        # By way of UTF-16, which joins two halves of a character; one alone has no bytes in UTF-8.
        whole = result.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Response(whole, media_type="text/plain")
    return respond_json(result)


def respond_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON; the length and type of the content are set beside `headers`."""
    return Response(encode(value), status, headers, "application/json")


def encode(value: Any) -> bytes:
    """JSON of a value, models and dataclasses by their fields, what JSON has no form for by its text; numbers that are none become null."""
    # Half a character, as models stream them, has no bytes in UTF-8; Python's escape of it is that of JSON.
    return _json(value).encode(errors="backslashreplace")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError as error:
        if "ircular" in str(error):
            raise
        return json.dumps(_without_nan(value), ensure_ascii=False, default=lambda other: _without_nan(_plain(other)))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for method in ("model_dump", "to_dict", "_asdict"):
        dump = getattr(value, method, None)
        if callable(dump):
            return dump()
    if isinstance(value, (set, frozenset)):
        return list(value)
    return str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value


async def _events(source: AsyncIterable[Any]) -> AsyncIterator[bytes]:
    """One event a chunk; an error ends the stream with an event of that name."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        async for chunk in source:
            value = decoder.decode(bytes(chunk)) if isinstance(chunk, (bytes, bytearray, memoryview)) else chunk
            if value != "":
                yield b"data: %b\n\n" % encode(value)
    except Exception as error:
        _log.exception("the invocation failed in the middle of its stream")
        said = {"error": str(error), "error_type": type(error).__name__, "message": "An error occurred during streaming"}
        yield b"event: error\ndata: %b\n\n" % encode(said)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def _prefers_text(accept: str | None) -> bool:
    types = {part.split(";")[0].strip().lower() for part in (accept or "*/*").split(",")}
    return "text/plain" in types and not types & {"application/json", "application/*", "*/*"}
