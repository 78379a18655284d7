"""How an item of a LangGraph store is a long-term record, and a record an item; the TypeScript SDK does the same."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: Metadata of a record that is an item.
KEY = "langgraph.key"
FIELD = "langgraph.field"
CREATED = "langgraph.created"
UNINDEXED = "langgraph.unindexed"

Namespace = tuple[str, ...]


def place_of(namespace: Namespace) -> str:
    """`("facts", "jane")` is `/facts/jane`; what a namespace cannot hold is escaped, so that no label reaches beyond its own."""
    return "/" + "/".join(_escaped(label, r"[^A-Za-z0-9_-]", "*") for label in namespace)


def namespace_of(place: str | None) -> Namespace:
    return tuple(_unescaped(label, "*") for label in (place or "").split("/") if label)


def key_text(key: str) -> str:
    """The key as metadata can hold it."""
    return _escaped(key, r"[^A-Za-z0-9 ._:/+@-]", "=")


def content_of(value: Mapping[str, Any]) -> tuple[str, str | None]:
    """The text of a record, and the field that it is of: a value of one text is that text, any other one is JSON."""
    if len(value) == 1:
        [(field, text)] = value.items()
        if isinstance(text, str) and text.strip() and "\0" not in text and re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", field):
            return text, field
    return json.dumps(value, ensure_ascii=False), None


def metadata_of(key: str, field: str | None, created: datetime, *, indexed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {KEY: {"stringValue": key_text(key)}, CREATED: {"dateTimeValue": created}}
    if field is not None:
        found[FIELD] = {"stringValue": field}
    if not indexed:
        found[UNINDEXED] = {"stringValue": "true"}
    return found


def item_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """
    The parts of an `Item`. A record that is no item – a strategy extracted it, or another client wrote it – has its id as key
    and its text as `text`.
    """
    metadata = record.get("metadata", {})
    text = record["content"]["text"]
    key = metadata.get(KEY, {}).get("stringValue")
    field = metadata.get(FIELD, {}).get("stringValue")
    value = None if key is None or field is not None else _object_of(text)
    return {
        "namespace": namespace_of(next(iter(record.get("namespaces", [])), None)),
        "key": record["memoryRecordId"] if key is None else _unescaped(key, "="),
        "value": {field or "text": text} if value is None else value,
        "created_at": metadata.get(CREATED, {}).get("dateTimeValue", record["createdAt"]),
        "updated_at": record["createdAt"],
    }


def _object_of(text: str) -> dict[str, Any] | None:
    """None for what is no JSON object: somebody has given the record another text since."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _escaped(text: str, refused: str, mark: str) -> str:
    return re.sub(refused, lambda found: "".join(f"{mark}{byte:02x}" for byte in found[0].encode()), text)


def _unescaped(text: str, mark: str) -> str:
    hexadecimal = re.compile(f"(?:{re.escape(mark)}[0-9a-f]{{2}})+")
    return hexadecimal.sub(lambda found: bytes.fromhex(found[0].replace(mark, "")).decode(errors="replace"), text)
