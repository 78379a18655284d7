"""Display data of a Jupyter kernel as blocks that the platform turns into the wire's content blocks."""

import json

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def blocks_of(data):
    """`data`: MIME type -> value, as in `display_data` and `execute_result`. Text of a picture is left out: it only names it."""
    found = []
    for mime in IMAGES:
        if mime in data:
            found.append({"kind": "image", "mimeType": mime, "base64": "".join(_text(data[mime]).split())})
            break
    svg = data.get("image/svg+xml")
    if svg is not None and not found:
        found.append({"kind": "svg", "mimeType": "image/svg+xml", "text": _text(svg)})
    if "text/plain" in data and not found:
        found.append({"kind": "text", "mimeType": "text/plain", "text": _text(data["text/plain"])})
    for mime in ("text/html", "text/markdown", "text/latex"):
        if mime in data:
            found.append({"kind": "resource", "mimeType": mime, "text": _text(data[mime])})
            break
    for mime, value in data.items():
        if mime == "application/json" or mime.endswith("+json"):
            text = value if isinstance(value, str) else json.dumps(value)
            found.append({"kind": "resource", "mimeType": mime, "text": _text(text)})
    return found


def _text(value):
    text = "".join(value) if isinstance(value, list) else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")
