"""Tools for agents on Strands; they need the extra `strands` (docs/guides/install.md)."""

from typing import Any

from strands.tools.tools import PythonAgentTool
from strands.types.tools import ToolResult, ToolSpec, ToolUse

from .code_interpreter import CodeInterpreter
from .code_tools import CodeTool, ToolOutcome, code_tools


def code_interpreter_tools(interpreter: CodeInterpreter) -> list[PythonAgentTool]:
    """The code interpreter as tools: `Agent(tools=code_interpreter_tools(interpreter))`. Who made `interpreter` stops it."""
    return [_strands_tool(tool) for tool in code_tools(interpreter)]


def _strands_tool(tool: CodeTool) -> PythonAgentTool:
    def call(*args: Any, **_: Any) -> ToolResult:
        tool_use: ToolUse = args[0]
        try:
            outcome = tool.run(tool_use["input"])
        except Exception as error:
            # The model is told, and may try otherwise; an exception would end the agent's turn.
            outcome = ToolOutcome(f"{type(error).__name__}: {error}", is_error=True)
        pictures: list[Any] = [
            {"image": {"format": picture.mime_type.removeprefix("image/"), "source": {"bytes": picture.data}}}
            for picture in outcome.pictures
        ]
        return {
            "toolUseId": tool_use["toolUseId"],
            "status": "error" if outcome.is_error else "success",
            "content": [{"text": outcome.text}, *pictures],
        }

    spec: ToolSpec = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.input_schema}}
    return PythonAgentTool(tool.name, spec, call)
