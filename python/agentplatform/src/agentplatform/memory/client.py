"""Events of sessions and the long-term records that are made of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

#: The events of a session that are on no branch.
MAIN = "main"


@dataclass(frozen=True)
class RetrievedMemory:
    """A record that a search found; the score is from 0 to 1, higher is better. `str()` gives its text."""

    id: str
    text: str
    score: float
    namespace: str | None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TurnMessage:
    """One message as it was kept; `role` is USER, ASSISTANT, TOOL or OTHER."""

    text: str
    role: str


class MemoryClient:
    """
    `create_event` appends to a session's log, `retrieve_memories` searches what was made of it; it gives text back and puts
    nothing into any prompt (spec: Memory operations). May be used by several threads. Methods raise the errors of boto3
    (`botocore.exceptions.ClientError`).
    """

    def __init__(self, region: str | None = None, *, boto3_session: Any = None, **client_options: Any) -> None:
        """
        Region, endpoint and credentials may come from the environment, as for every boto3 client; `client_options` go to
        `boto3.client`, e.g. `endpoint_url`. Raises ImportError without boto3.
        """
        try:
            import boto3
        except ImportError as error:
            raise ImportError("MemoryClient needs boto3: pip install boto3") from error
        maker = boto3_session or boto3
        self._data = maker.client("bedrock-agentcore", region_name=region, **client_options)
        self._control = maker.client("bedrock-agentcore-control", region_name=region, **client_options)

    def create_memory(
        self,
        name: str,
        strategies: Sequence[Mapping[str, Any]] = (),
        *,
        event_expiry_days: int = 90,
        **more: Any,
    ) -> str:
        """
        Makes a memory and gives its id. `strategies` are those of the wire, e.g. `{"semanticMemoryStrategy": {"name": "facts"}}`;
        `more` goes to CreateMemory, e.g. `namespaceKeys`.
        """
        answer = self._control.create_memory(
            name=name, eventExpiryDuration=event_expiry_days, memoryStrategies=[dict(one) for one in strategies], **more
        )
        return str(answer["memory"]["id"])

    def delete_memory(self, memory_id: str) -> None:
        """Deletes a memory with everything in it."""
        self._control.delete_memory(memoryId=memory_id)

    def create_event(
        self,
        memory_id: str,
        actor_id: str,
        session_id: str,
        messages: Iterable[tuple[str, str]] = (),
        *,
        blob: Any = None,
        timestamp: datetime | None = None,
        branch: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        extract: bool = True,
        namespace_variables: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """
        Appends `messages`, pairs of text and role, as one event, and gives it; it is durable then. `blob` is kept beside them,
        anything JSON can hold. `extract=False`: nothing long-term is made of it. A new branch needs its `rootEventId`.
        """
        payload: list[dict[str, Any]] = [
            {"conversational": {"role": role.upper(), "content": {"text": text}}} for text, role in messages
        ]
        if blob is not None:
            payload.append({"blob": blob})
        wish = {
            "branch": None if branch is None else dict(branch),
            "metadata": None if metadata is None else {key: {"stringValue": value} for key, value in metadata.items()},
            "extractionMode": None if extract else "SKIP",
            "extractionConfig": None if namespace_variables is None else {"namespaceVariables": dict(namespace_variables)},
        }
        answer = self._data.create_event(
            memoryId=memory_id,
            actorId=actor_id,
            sessionId=session_id,
            payload=payload,
            eventTimestamp=timestamp or datetime.now(timezone.utc),
            **{key: value for key, value in wish.items() if value is not None},
        )
        return dict(answer["event"])

    def list_events(
        self,
        memory_id: str,
        actor_id: str,
        session_id: str,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
        page_size: int = 100,
    ) -> Iterator[dict[str, Any]]:
        """
        The events of a session, newest first, page after page; of one `branch` with the lines it grew from; only those with all
        of `metadata`, at most five. A session that nobody wrote to is empty.
        """
        wish: dict[str, Any] = {}
        if branch is not None:
            wish["branch"] = {"name": branch, "includeParentBranches": True}
        if metadata:
            wish["eventMetadata"] = [
                {
                    "left": {"metadataKey": key},
                    "operator": "EQUALS_TO",
                    "right": {"metadataValue": {"stringValue": value}},
                }
                for key, value in metadata.items()
            ]
        request: dict[str, Any] = {"memoryId": memory_id, "actorId": actor_id, "sessionId": session_id, "maxResults": page_size}
        if wish:
            request["filter"] = wish
        yield from _pages(self._data.list_events, "events", request)

    def delete_event(self, memory_id: str, actor_id: str, session_id: str, event_id: str) -> None:
        """Deletes one event; what was extracted from it stays."""
        self._data.delete_event(memoryId=memory_id, actorId=actor_id, sessionId=session_id, eventId=event_id)

    def get_last_k_turns(
        self, memory_id: str, actor_id: str, session_id: str, k: int = 5, *, branch: str = MAIN
    ) -> list[list[TurnMessage]]:
        """The last `k` turns, oldest first; a turn begins with what the user says."""
        turns: list[list[TurnMessage]] = []
        turn: list[TurnMessage] = []
        for event in self.list_events(memory_id, actor_id, session_id, branch=branch):
            for item in reversed(event.get("payload", [])):
                said = item.get("conversational")
                if said is None:
                    continue
                turn.insert(0, TurnMessage(said.get("content", {}).get("text", ""), said["role"]))
                if said["role"] != "USER":
                    continue
                turns.insert(0, turn)
                turn = []
                if len(turns) == k:
                    return turns
        # What was said before the user spoke first is a turn of its own.
        return [turn, *turns] if turn else turns

    def retrieve_memories(
        self,
        memory_id: str,
        namespace: str | None = None,
        query: str = "",
        *,
        namespace_path: str | None = None,
        top_k: int = 10,
        metadata_filters: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[RetrievedMemory]:
        """
        The long-term records that fit the query best, best first: in exactly `namespace`, or in all below `namespace_path`.
        """
        records = self.search_records(
            memory_id, query, namespace, namespace_path=namespace_path, top_k=top_k, metadata_filters=metadata_filters
        )
        return [
            RetrievedMemory(
                id=record["memoryRecordId"],
                text=record["content"]["text"],
                score=record.get("score", 0.0),
                namespace=next(iter(record.get("namespaces", [])), None),
            )
            for record in records
        ]

    def search_records(
        self,
        memory_id: str,
        query: str,
        namespace: str | None = None,
        *,
        namespace_path: str | None = None,
        top_k: int = 10,
        metadata_filters: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[dict[str, Any]]:
        """As `retrieve_memories`, in the shape of the wire: with metadata, times and strategy."""
        criteria: dict[str, Any] = {"searchQuery": query, "topK": top_k}
        if metadata_filters:
            criteria["metadataFilters"] = [dict(one) for one in metadata_filters]
        place = {"namespace": namespace, "namespacePath": namespace_path}
        answer = self._data.retrieve_memory_records(
            memoryId=memory_id,
            searchCriteria=criteria,
            **{key: value for key, value in place.items() if value is not None},
        )
        return list(answer["memoryRecordSummaries"])

    def list_records(
        self,
        memory_id: str,
        namespace: str | None = None,
        *,
        namespace_path: str | None = None,
        metadata_filters: Sequence[Mapping[str, Any]] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The records that hold in a namespace, or in all below a path, page after page, in the shape of the wire."""
        request: dict[str, Any] = {"memoryId": memory_id, "maxResults": 100}
        if namespace is not None:
            request["namespace"] = namespace
        if namespace_path is not None:
            request["namespacePath"] = namespace_path
        if metadata_filters:
            request["metadataFilters"] = [dict(one) for one in metadata_filters]
        yield from _pages(self._data.list_memory_records, "memoryRecordSummaries", request)

    def get_record(self, memory_id: str, record_id: str, *, namespace: str | None = None) -> dict[str, Any]:
        """One record in the shape of the wire; an error when it is not there, or not in `namespace`."""
        place = {} if namespace is None else {"namespace": namespace}
        answer = self._data.get_memory_record(memoryId=memory_id, memoryRecordId=record_id, **place)
        return dict(answer["memoryRecord"])

    def create_record(
        self,
        memory_id: str,
        namespace: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> str:
        """Keeps a record of the caller's own and gives its id. `metadata` are values of the wire, e.g. `{"numberValue": 1}`."""
        record = {"requestIdentifier": "one", "namespaces": [namespace], "content": {"text": text}}
        return self._write_record("create", memory_id, record, metadata, timestamp)

    def update_record(
        self,
        memory_id: str,
        record_id: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> None:
        """Gives a record another text, and other metadata when there are any."""
        record = {"memoryRecordId": record_id, "content": {"text": text}}
        self._write_record("update", memory_id, record, metadata, timestamp)

    def delete_record(self, memory_id: str, record_id: str) -> None:
        self._data.delete_memory_record(memoryId=memory_id, memoryRecordId=record_id)

    def _write_record(
        self,
        verb: str,
        memory_id: str,
        record: dict[str, Any],
        metadata: Mapping[str, Any] | None,
        timestamp: datetime | None,
    ) -> str:
        """Raises ValueError with the platform's words when it refuses the record."""
        more = {"timestamp": timestamp or datetime.now(timezone.utc), **({"metadata": dict(metadata)} if metadata else {})}
        write = getattr(self._data, f"batch_{verb}_memory_records")
        answer = write(memoryId=memory_id, records=[{**record, **more}])
        for failed in answer["failedRecords"]:
            raise ValueError(f"the record was refused: {failed.get('errorMessage')}")
        return str(answer["successfulRecords"][0]["memoryRecordId"])


def _pages(read: Callable[..., Any], items: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What stands under `items` in each page, until there is no next one."""
    while True:
        page = read(**request)
        yield from page.get(items, [])
        if not page.get("nextToken"):
            return
        request = {**request, "nextToken": page["nextToken"]}
