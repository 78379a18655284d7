"""A Strands agent whose model is a script calls every tool of a real session."""

import base64

import pytest

pytest.importorskip("strands")

from strands import Agent
from strands.models import Model

from agentplatform.strands import code_interpreter_tools

from scripted import CALLS, check, interpreter, needs_platform  # noqa: F401

pytestmark = needs_platform


class Scripted(Model):
    """Calls one tool after the other, then says that it is done."""

    def __init__(self):
        self.asked = 0
        self.specs = None

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        import json

        self.specs = tool_specs
        turn, self.asked = self.asked, self.asked + 1
        yield {"messageStart": {"role": "assistant"}}
        if turn < len(CALLS):
            name, given = CALLS[turn]
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call-{turn}", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}


def test_an_agent_works_with_the_tools(interpreter):  # noqa: F811
    model = Scripted()
    agent = Agent(model=model, tools=code_interpreter_tools(interpreter), callback_handler=None)
    assert str(agent("Work.")).strip() == "done"
    assert {spec["name"] for spec in model.specs} == {"execute_code", "execute_command", "write_files", "read_files", "list_files"}
    results = [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]
    check([seen(result) for result in results])


def seen(result):
    texts = [item["text"] for item in result["content"] if "text" in item]
    pictures = [item["image"] for item in result["content"] if "image" in item]
    assert all(picture["format"] == "png" for picture in pictures)
    return "\n".join(texts), [base64.b64encode(p["source"]["bytes"]).decode() for p in pictures], result["status"] == "error"


def test_what_the_platform_refuses_reaches_the_model(interpreter):  # noqa: F811
    read = next(tool for tool in code_interpreter_tools(interpreter) if tool.tool_name == "read_files")
    refused = read._tool_func({"toolUseId": "1", "name": "read_files", "input": {"paths": ["a\0b"]}})
    assert refused["status"] == "error"
    assert "NUL" in refused["content"][0]["text"]
