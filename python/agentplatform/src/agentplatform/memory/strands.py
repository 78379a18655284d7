"""Conversations of Strands agents, kept in a memory of the platform."""

from typing import Any

from strands.session import RepositorySessionManager, SessionRepository
from strands.types.session import Session, SessionAgent, SessionMessage

from .client import MemoryClient

# Which part of a session an event holds; filtered by when it is read.
KIND = "strands.kind"
AGENT = "strands.agent"
MESSAGE = "strands.message"


class MemorySessionRepository(SessionRepository):
    """
    Sessions, agents and messages as events of one actor. What a state was is the newest event of its kind. The words of a
    message are kept as such, so that long-term records are made of them; the whole message lies beside them.
    """

    def __init__(self, client: MemoryClient, memory_id: str, actor_id: str) -> None:
        """`session_id`s and agents' ids must be what the wire allows: letters, digits, `-` and `_`."""
        self._client = client
        self._memory_id = memory_id
        self._actor_id = actor_id

    def create_session(self, session: Session, **_: Any) -> Session:
        self._keep(session.session_id, {KIND: "session"}, session.to_dict())
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:
        found = self._newest(session_id, {KIND: "session"})
        return None if found is None else Session.from_dict(found)

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        self._keep(session_id, {KIND: "agent", AGENT: session_agent.agent_id}, session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:
        found = self._newest(session_id, {KIND: "agent", AGENT: agent_id})
        return None if found is None else SessionAgent.from_dict(found)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        labels = {KIND: "agent", AGENT: session_agent.agent_id}
        before = list(self._events(session_id, labels))
        if before:
            session_agent.created_at = before[-1]["payload"][-1]["blob"]["created_at"]
        self._keep(session_id, labels, session_agent.to_dict())
        for event in before:
            self._client.delete_event(self._memory_id, self._actor_id, session_id, event["eventId"])

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any) -> None:
        labels = {KIND: "message", AGENT: agent_id, MESSAGE: str(session_message.message_id)}
        kept = session_message.to_dict()
        shown = session_message.to_message()
        texts = [block["text"] for block in shown["content"] if block.get("text")]
        self._client.create_event(
            self._memory_id,
            self._actor_id,
            session_id,
            messages=[("\n".join(texts), shown["role"])] if texts else [],
            blob=kept,
            metadata=labels,
        )

    def read_message(self, session_id: str, agent_id: str, message_id: int, **_: Any) -> SessionMessage | None:
        found = self._newest(session_id, {KIND: "message", AGENT: agent_id, MESSAGE: str(message_id)})
        return None if found is None else SessionMessage.from_dict(found)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any) -> None:
        """The event of the message goes: what a guardrail redacts must not stay in the log."""
        labels = {KIND: "message", AGENT: agent_id, MESSAGE: str(session_message.message_id)}
        before = list(self._events(session_id, labels))
        if session_message.redact_message is not None:
            session_message.message = session_message.redact_message
        self.create_message(session_id, agent_id, session_message)
        for event in before:
            self._client.delete_event(self._memory_id, self._actor_id, session_id, event["eventId"])

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_: Any
    ) -> list[SessionMessage]:
        found: dict[int, SessionMessage] = {}
        for event in self._events(session_id, {KIND: "message", AGENT: agent_id}):
            message = SessionMessage.from_dict(event["payload"][-1]["blob"])
            found.setdefault(message.message_id, message)
        messages = [found[number] for number in sorted(found)][offset:]
        return messages if limit is None else messages[:limit]

    def _keep(self, session_id: str, labels: dict[str, str], blob: dict[str, Any]) -> None:
        self._client.create_event(
            self._memory_id, self._actor_id, session_id, blob=blob, metadata=labels, extract=False
        )

    def _events(self, session_id: str, labels: dict[str, str]) -> Any:
        return self._client.list_events(self._memory_id, self._actor_id, session_id, metadata=labels)

    def _newest(self, session_id: str, labels: dict[str, str]) -> dict[str, Any] | None:
        found = next(
            iter(self._client.list_events(self._memory_id, self._actor_id, session_id, metadata=labels, page_size=1)), None
        )
        return None if found is None else dict(found["payload"][-1]["blob"])


class MemorySessionManager(RepositorySessionManager):
    """`Agent(session_manager=MemorySessionManager(memory_id=…, actor_id=…, session_id=…))` goes on where the session ended."""

    def __init__(
        self, memory_id: str, actor_id: str, session_id: str, *, client: MemoryClient | None = None, **more: Any
    ) -> None:
        repository = MemorySessionRepository(client or MemoryClient(), memory_id, actor_id)
        super().__init__(session_id=session_id, session_repository=repository, **more)
