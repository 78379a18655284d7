"""A Strands agent whose model is a script goes on where its session ended."""

import pytest

pytest.importorskip("strands")

from strands import Agent, tool
from strands.models import Model

from agentplatform.memory.strands import MemorySessionManager

from remembering import client, memory_id, needs_platform, until  # noqa: F401

pytestmark = needs_platform


class Counting(Model):
    """Says how many messages it was shown; asked to look, it calls the tool first."""

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        yield {"messageStart": {"role": "assistant"}}
        if "look" in str(messages[-1]["content"]):
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"t{len(messages)}", "name": "find"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": f"I was shown {len(messages)}."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}


@tool
def find() -> str:
    """Finds."""
    return "found"


def agent_of(client, memory_id, session_id="s-1"):  # noqa: F811
    manager = MemorySessionManager(memory_id, "ben", session_id, client=client)
    return Agent(model=Counting(), tools=[find], session_manager=manager, agent_id="helper", callback_handler=None)


def test_a_second_agent_has_the_messages_and_the_state_of_the_first(client, memory_id):  # noqa: F811
    first = agent_of(client, memory_id)
    assert str(first("I work in Bergen as a carpenter.")).strip() == "I was shown 1."
    first.state.set("mood", "good")
    first("Please look.")
    second = agent_of(client, memory_id)
    assert second.messages == first.messages
    assert len(second.messages) == 6
    assert second.state.get("mood") == "good"
    assert str(second("And now?")).strip() == "I was shown 7."
    assert agent_of(client, memory_id, "s-2").messages == []


def test_what_the_user_said_becomes_long_term_what_a_tool_said_does_not(client, memory_id):  # noqa: F811
    found = until(lambda: client.retrieve_memories(memory_id, "/facts/ben", "Bergen carpenter"))
    assert [str(one) for one in found] == ["I work in Bergen as a carpenter."]
    turns = client.get_last_k_turns(memory_id, "ben", "s-1", k=99)
    assert [turn[0].text for turn in turns] == ["I work in Bergen as a carpenter.", "Please look.", "And now?"]


def test_a_redacted_message_is_gone_from_the_log(client, memory_id):  # noqa: F811
    agent = agent_of(client, memory_id, "s-3")
    agent("my secret")
    manager = MemorySessionManager(memory_id, "ben", "s-3", client=client)
    repository = manager.session_repository
    message = repository.read_message("s-3", "helper", 0)
    message.redact_message = {"role": "user", "content": [{"text": "(redacted)"}]}
    repository.update_message("s-3", "helper", message)
    assert "secret" not in str(list(client.list_events(memory_id, "ben", "s-3")))
    assert agent_of(client, memory_id, "s-3").messages[0]["content"] == [{"text": "(redacted)"}]
    assert len(repository.list_messages("s-3", "helper", limit=1, offset=1)) == 1
