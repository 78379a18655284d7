"""Reads what a caller sent."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request


async def read_payload(request: Request, limit: int) -> Any:
    """
    The body as JSON, whatever its content type claims; only a body of text/* that is no JSON is taken as the text that it is.
    Raises HTTPException: 413 past `limit` bytes, 400 for what can be neither.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    try:
        text = (await _whole(request, limit)).decode()
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"The payload is not valid UTF-8: {error}") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if request.headers.get("content-type", "").strip().lower().startswith("text/"):
            return text
        if not text.strip():
            raise HTTPException(400, 'The payload is empty; send a JSON object such as {"prompt":"hi"}.') from error
        raise HTTPException(400, f"The payload is not valid JSON: {error}") from error


async def _whole(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ClientDisconnect as error:
        # Nobody reads the answer; a traceback for each would fill the log of the session.
        raise HTTPException(400, "The caller went away before the payload was complete.") from error
    return b"".join(parts)


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"The payload is larger than {limit} bytes, the limit of this agent.")
