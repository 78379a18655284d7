"""Checkpoints of LangGraph graphs as events of a memory."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from ..client import MemoryClient
from .value_serializer import ValueSerializer

KIND = "langgraph.kind"
# Of the checkpoint's namespace, which may hold characters that metadata cannot.
PLACE = "langgraph.namespace"
CHECKPOINT = "langgraph.checkpoint"


class MemorySaver(BaseCheckpointSaver[str]):
    """
    A checkpointer for `graph.compile(checkpointer=MemorySaver(memory_id))`. A thread is a session, each checkpoint an event;
    `actor_id` comes from the configuration's `configurable`, or from here. `thread_id` must be what the wire allows for a
    session: letters, digits, `-` and `_`, at most 100. Nothing long-term is made of checkpoints.
    """

    def __init__(self, memory_id: str, *, actor_id: str = "langgraph", client: MemoryClient | None = None, **more: Any) -> None:
        super().__init__(serde=more.pop("serde", None) or ValueSerializer(), **more)
        self._client = client or MemoryClient()
        self._memory_id = memory_id
        self._actor_id = actor_id

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        namespace = _namespace(config) or ""
        labels = {KIND: "checkpoint", PLACE: _digest(namespace)}
        wanted = get_checkpoint_id(config)
        if wanted:
            labels[CHECKPOINT] = wanted
        event = next(iter(self._events(config, labels, page_size=1)), None)
        return None if event is None else self._tuple(config, event["payload"][-1]["blob"])

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Newest first. Raises ValueError without `config`: a memory does not know which of its sessions are threads."""
        if config is None:
            raise ValueError("a configuration with a thread_id is needed")
        labels = {KIND: "checkpoint"}
        namespace = _namespace(config)
        if namespace is not None:
            labels[PLACE] = _digest(namespace)
        wanted = get_checkpoint_id(config)
        if wanted:
            labels[CHECKPOINT] = wanted
        end = get_checkpoint_id(before) if before else None
        given = 0
        for event in self._events(config, labels):
            if limit is not None and given >= limit:
                return
            kept = event["payload"][-1]["blob"]
            if end is not None and kept["id"] >= end:
                continue
            found = self._tuple(config, kept)
            if filter and any(found.metadata.get(key) != value for key, value in filter.items()):
                continue
            given += 1
            yield found

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        namespace = _namespace(config) or ""
        kept = {
            "namespace": namespace,
            "id": checkpoint["id"],
            "parent": get_checkpoint_id(config),
            "checkpoint": self._dump(checkpoint),
            "metadata": self._dump(get_checkpoint_metadata(config, metadata)),
        }
        labels = {KIND: "checkpoint", PLACE: _digest(namespace), CHECKPOINT: checkpoint["id"]}
        self._keep(config, labels, kept)
        return _configuration(config, namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        namespace = _namespace(config) or ""
        kept = {
            "task": task_id,
            "path": task_path,
            "writes": [
                {"index": WRITES_IDX_MAP.get(channel, index), "channel": channel, "value": self._dump(value)}
                for index, (channel, value) in enumerate(writes)
            ],
        }
        labels = {KIND: "writes", PLACE: _digest(namespace), CHECKPOINT: config["configurable"]["checkpoint_id"]}
        self._keep(config, labels, kept)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes the thread's checkpoints of the actor that this saver was made with; other events of the session stay."""
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        for kind in ("checkpoint", "writes"):
            for event in list(self._events(config, {KIND: kind})):
                self._client.delete_event(self._memory_id, self._actor(config), thread_id, event["eventId"])

    def get_next_version(self, current: str | None, channel: None) -> str:
        return f"{0 if current is None else int(current.split('.')[0]) + 1:032d}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        collect: Callable[[], Sequence[CheckpointTuple]] = lambda: [*self.list(config, filter=filter, before=before, limit=limit)]  # noqa: E731
        for one in await asyncio.to_thread(collect):
            yield one

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    def _tuple(self, config: RunnableConfig, kept: dict[str, Any]) -> CheckpointTuple:
        namespace, parent = kept["namespace"], kept["parent"]
        return CheckpointTuple(
            config=_configuration(config, namespace, kept["id"]),
            checkpoint=self._load(kept["checkpoint"]),
            metadata=self._load(kept["metadata"]),
            parent_config=_configuration(config, namespace, parent) if parent else None,
            pending_writes=self._writes(config, namespace, kept["id"]),
        )

    def _writes(self, config: RunnableConfig, namespace: str, checkpoint_id: str) -> Any:
        """What tasks wrote after a checkpoint, in their order; of what a task wrote twice, special channels' last and others' first."""
        labels = {KIND: "writes", PLACE: _digest(namespace), CHECKPOINT: checkpoint_id}
        found: dict[tuple[str, str, int], tuple[str, str, Any]] = {}
        for event in reversed([*self._events(config, labels)]):
            kept = event["payload"][-1]["blob"]
            for write in kept["writes"]:
                key = (kept["path"], kept["task"], int(write["index"]))
                if key in found and key[2] >= 0:
                    continue
                found[key] = (kept["task"], write["channel"], self._load(write["value"]))
        return [found[key] for key in sorted(found)]

    def _dump(self, value: Any) -> Sequence[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(data).decode()]

    def _load(self, kept: Sequence[str]) -> Any:
        return self.serde.loads_typed((kept[0], base64.b64decode(kept[1])))

    def _actor(self, config: RunnableConfig) -> str:
        return str(config["configurable"].get("actor_id", self._actor_id))

    def _keep(self, config: RunnableConfig, labels: dict[str, str], kept: dict[str, Any]) -> None:
        thread_id = str(config["configurable"]["thread_id"])
        self._client.create_event(self._memory_id, self._actor(config), thread_id, blob=kept, metadata=labels, extract=False)

    def _events(self, config: RunnableConfig, labels: dict[str, str], page_size: int = 100) -> Any:
        thread_id = str(config["configurable"]["thread_id"])
        return self._client.list_events(
            self._memory_id, self._actor(config), thread_id, metadata=labels, page_size=page_size
        )


def _namespace(config: RunnableConfig) -> str | None:
    found = config["configurable"].get("checkpoint_ns")
    return None if found is None else str(found)


def _digest(namespace: str) -> str:
    return hashlib.sha256(namespace.encode()).hexdigest()[:32]


def _configuration(config: RunnableConfig, namespace: str, checkpoint_id: str) -> RunnableConfig:
    own = config["configurable"]
    actor = {"actor_id": own["actor_id"]} if "actor_id" in own else {}
    return {"configurable": {"thread_id": own["thread_id"], "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id, **actor}}
