"""What LangGraph agents know beyond one thread, as long-term records of a memory."""

import asyncio
import operator
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from ..client import MemoryClient
from .item_record import KEY, UNINDEXED, Namespace, content_of, item_of, key_text, metadata_of, namespace_of, place_of

#: A search by a query ranks so many records at most.
MOST_RANKED = 100


class MemoryStore(BaseStore):
    """
    A store for `graph.compile(store=MemoryStore(memory_id))`. The namespace `("facts", "jane")` is the memory's `/facts/jane`, an
    item one record there: what strategies extracted is found, too, with its record's id as key and `{"text": …}` as value. A
    search by a `query` ranks the best 100. An item is JSON of at most 16,000 characters; a key at most 256.
    """

    __slots__ = ("_client", "_memory_id")

    def __init__(self, memory_id: str, *, client: MemoryClient | None = None) -> None:
        self._client = client or MemoryClient()
        self._memory_id = memory_id

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """One after the other. Raises what boto3 raises, and NotImplementedError for a put with a list of fields as `index`."""
        return [self._perform(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _perform(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            record = self._find(op.namespace, op.key)
            return None if record is None else Item(**item_of(record))
        if isinstance(op, PutOp):
            self._put(op)
            return None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _find(self, namespace: Namespace, key: str) -> dict[str, Any] | None:
        return next(self._all(namespace, key), None) or self._extracted(namespace, key)

    def _all(self, namespace: Namespace, key: str) -> Iterator[dict[str, Any]]:
        """Two that put the same new key at once make two records of it."""
        only = {"left": {"metadataKey": KEY}, "operator": "EQUALS_TO", "right": {"metadataValue": {"stringValue": key_text(key)}}}
        return self._client.list_records(self._memory_id, place_of(namespace), metadata_filters=[only])

    def _extracted(self, namespace: Namespace, key: str) -> dict[str, Any] | None:
        if not key.startswith("mem-"):
            return None
        try:
            record = self._client.get_record(self._memory_id, key, namespace=place_of(namespace))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("ResourceNotFoundException", "ValidationException"):
                return None
            raise
        # One that is an item is known by its own key only.
        return None if KEY in record.get("metadata", {}) else record

    def _put(self, op: PutOp) -> None:
        if op.value is None:
            extracted = self._extracted(op.namespace, op.key)
            for record in [*self._all(op.namespace, op.key), *([] if extracted is None else [extracted])]:
                self._client.delete_record(self._memory_id, record["memoryRecordId"])
            return
        if op.index:
            raise NotImplementedError("a record is searched as a whole or, with index=False, not at all")
        now = datetime.now(timezone.utc)
        known = self._find(op.namespace, op.key)
        text, field = content_of(op.value)
        created = now if known is None else item_of(known)["created_at"]
        metadata = metadata_of(op.key, field, created, indexed=op.index is not False)
        if known is None:
            self._client.create_record(self._memory_id, place_of(op.namespace), text, metadata=metadata, timestamp=now)
        else:
            self._client.update_record(self._memory_id, known["memoryRecordId"], text, metadata=metadata, timestamp=now)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        place = place_of(op.namespace_prefix)
        if op.query:
            searched = {"left": {"metadataKey": UNINDEXED}, "operator": "NOT_EXISTS"}
            most = MOST_RANKED if op.filter else min(MOST_RANKED, op.offset + op.limit)
            records: Iterable[dict[str, Any]] = self._client.search_records(
                self._memory_id, op.query, namespace_path=place, top_k=most, metadata_filters=[searched]
            )
        else:
            records = self._client.list_records(self._memory_id, namespace_path=place)
        found = (SearchItem(**item_of(record), score=record.get("score")) for record in records)
        fitting = (item for item in found if all(_fits(item.value.get(key), wish) for key, wish in (op.filter or {}).items()))
        return list(islice(fitting, op.offset, op.offset + op.limit))

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """Reads every record below the prefix, since a memory keeps no list of its namespaces."""
        wishes = op.match_conditions or ()
        prefixes = [tuple(wish.path) for wish in wishes if wish.match_type == "prefix" and "*" not in wish.path]
        records = self._client.list_records(self._memory_id, namespace_path=place_of(max(prefixes, key=len, default=())))
        there = {namespace_of(next(iter(record.get("namespaces", [])), None)) for record in records}
        fitting = {namespace for namespace in there if all(_matches(wish, namespace) for wish in wishes)}
        cut = {namespace if op.max_depth is None else namespace[: op.max_depth] for namespace in fitting}
        return sorted(cut)[op.offset : op.offset + op.limit]


def _matches(wish: MatchCondition, namespace: Namespace) -> bool:
    if len(wish.path) > len(namespace):
        return False
    part = namespace[: len(wish.path)] if wish.match_type == "prefix" else namespace[len(namespace) - len(wish.path) :]
    return all(wanted in ("*", label) for wanted, label in zip(wish.path, part, strict=True))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _fits(value: Any, wish: Any) -> bool:
    """A wish is a value or operators such as `{"$gt": 4}`; what cannot be compared does not fit."""
    if not isinstance(wish, dict) or not any(key.startswith("$") for key in wish):
        return bool(value == wish)
    unknown = next((key for key in wish if key not in _COMPARISONS), None)
    if unknown is not None:
        raise ValueError(f"Unsupported operator: {unknown}")
    try:
        return all(_COMPARISONS[key](value, wanted) for key, wanted in wish.items())
    except TypeError:
        return False
