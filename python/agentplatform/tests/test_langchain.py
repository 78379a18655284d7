"""A LangChain agent whose model is a script calls every tool of a real session."""

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage

from agentplatform.langchain import code_interpreter_tools

from scripted import CALLS, check, interpreter, needs_platform  # noqa: F401

pytestmark = needs_platform


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, tools, **_):
        assert {tool.name for tool in tools} == {"execute_code", "execute_command", "write_files", "read_files", "list_files"}
        return self


def test_an_agent_works_with_the_tools(interpreter):  # noqa: F811
    calls = [
        AIMessage("", tool_calls=[{"name": name, "args": given, "id": f"call-{turn}"}]) for turn, (name, given) in enumerate(CALLS)
    ]
    agent = create_agent(Scripted(responses=[*calls, AIMessage("done")]), code_interpreter_tools(interpreter))
    messages = agent.invoke({"messages": [("user", "Work.")]}, {"recursion_limit": 50})["messages"]
    assert messages[-1].content == "done"
    check([seen(message) for message in messages if isinstance(message, ToolMessage)])


def seen(message):
    blocks = message.content_blocks
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    return text, [block["base64"] for block in blocks if block["type"] == "image"], message.status == "error"


def test_what_the_platform_refuses_reaches_the_model(interpreter):  # noqa: F811
    read = next(tool for tool in code_interpreter_tools(interpreter) if tool.name == "read_files")
    refused = read.invoke({"type": "tool_call", "id": "1", "name": "read_files", "args": {"paths": ["a\0b"]}})
    assert refused.status == "error"
    assert "NUL" in refused.content
