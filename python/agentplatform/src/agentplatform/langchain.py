"""Tools for agents on LangChain and LangGraph; they need the extra `langchain` (docs/guides/install.md)."""

import base64
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from .code_interpreter import CodeInterpreter
from .code_tools import CodeTool, code_tools


def code_interpreter_tools(interpreter: CodeInterpreter) -> list[BaseTool]:
    """The code interpreter as tools: `create_agent(model, code_interpreter_tools(interpreter))`. Who made `interpreter` stops it."""
    return [_langchain_tool(tool) for tool in code_tools(interpreter)]


def _langchain_tool(tool: CodeTool) -> BaseTool:
    def call(**given: Any) -> list[dict[str, Any]]:
        try:
            outcome = tool.run(given)
        except Exception as error:
            # The model is told, and may try otherwise; an exception would end the agent's turn.
            raise ToolException(f"{type(error).__name__}: {error}") from error
        if outcome.is_error:
            raise ToolException(outcome.text)
        pictures = [
            {"type": "image", "mime_type": picture.mime_type, "base64": base64.b64encode(picture.data).decode("ascii")}
            for picture in outcome.pictures
        ]
        return [{"type": "text", "text": outcome.text}, *pictures]

    return StructuredTool.from_function(
        call, name=tool.name, description=tool.description, args_schema=tool.input_schema, handle_tool_error=True
    )
