"""The code interpreter as tools that a model may call: names, schemas, and what the model gets to see. No framework in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .code_interpreter import CodeInterpreter, CodeInterpreterResult

#: Characters of text that a model gets of one result: what is longer fills its context and tells it little.
MAX_TEXT = 30_000

#: Pictures that models take.
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True)
class Picture:
    mime_type: str
    data: bytes


@dataclass(frozen=True)
class ToolOutcome:
    """What the model gets: text, pictures, and whether it failed."""

    text: str
    is_error: bool
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class CodeTool:
    """A tool; `input_schema` is JSON Schema, `run` takes what fits it and never raises for what code does wrong."""

    name: str
    description: str
    input_schema: dict[str, Any]
    run: Callable[[Mapping[str, Any]], ToolOutcome]


def code_tools(interpreter: CodeInterpreter) -> list[CodeTool]:
    """The tools of one session. The session is the caller's: opened at the first call, to be stopped by its owner."""

    def tool(name: str, description: str, properties: dict[str, Any], required: list[str], call: Callable[..., CodeInterpreterResult]) -> CodeTool:
        schema = {"type": "object", "properties": properties, "required": required}
        return CodeTool(name, description, schema, lambda given: _shown(call(given)))

    return [
        tool(
            "execute_code",
            "Runs code in an isolated session and returns what it prints, the value of its last expression and its pictures. "
            "Variables stay between calls, per language. Files are below the working directory.",
            {
                "code": {"type": "string", "description": "What to run."},
                "language": {
                    "type": "string",
                    "enum": ["python", "javascript", "typescript"],
                    "description": "Its language; python when absent.",
                },
            },
            ["code"],
            lambda given: interpreter.invoke(
                "executeCode", {"code": given["code"], "language": given.get("language") or "python"}
            ),
        ),
        tool(
            "execute_command",
            "Runs a shell command (bash) in the same session and returns its output.",
            {"command": {"type": "string", "description": "The command."}},
            ["command"],
            lambda given: interpreter.invoke("executeCommand", {"command": given["command"]}),
        ),
        tool(
            "write_files",
            "Writes text files into the session.",
            {
                "files": {
                    "type": "array",
                    "description": "The files.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string", "description": "Path below the working directory."},
                            "text": {"type": "string", "description": "The whole content."},
                        },
                        "required": ["path", "text"],
                    },
                }
            },
            ["files"],
            lambda given: interpreter.invoke(
                "writeFiles", {"content": [{"path": file["path"], "text": file["text"]} for file in given["files"]]}
            ),
        ),
        tool(
            "read_files",
            "Reads files of the session.",
            {"paths": {"type": "array", "items": {"type": "string"}, "description": "Paths below the working directory."}},
            ["paths"],
            lambda given: interpreter.invoke("readFiles", {"paths": list(given["paths"])}),
        ),
        tool(
            "list_files",
            "Lists a folder of the session.",
            {"path": {"type": "string", "description": "Path below the working directory; that itself when absent."}},
            [],
            lambda given: interpreter.invoke("listFiles", {"directoryPath": given.get("path") or "."}),
        ),
    ]


def _shown(result: CodeInterpreterResult) -> ToolOutcome:
    pictures: list[Picture] = []
    lines: list[str] = []
    for block in result.content:
        line = _line_of(block, pictures)
        if line:
            lines.append(line)
    if not lines:
        # HTML stands beside text that says the same in fewer words, save where it stands alone.
        lines = [block["resource"]["text"] for block in result.content if _is_html(block)]
    text = "\n".join(line.removesuffix("\n") for line in lines)
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[-half:]}"
    return ToolOutcome(text or "(no output)", result.is_error, pictures)


def _line_of(block: Mapping[str, Any], pictures: list[Picture]) -> str:
    kind = block.get("type")
    if kind == "image":
        return _picture(str(block.get("mimeType", "")), bytes(block.get("data", b"")), "picture", pictures)
    if kind == "resource_link":
        size = "/" if block.get("description") == "Directory" else f" ({block.get('size')} bytes)"
        return f"{block.get('name')}{size}"
    if kind != "resource":
        return str(block.get("text", ""))
    resource = block.get("resource", {})
    name = str(resource.get("uri", "")).removeprefix("file://")
    if "blob" in resource:
        return _picture(str(resource.get("mimeType", "")), bytes(resource["blob"]), name, pictures)
    if _is_html(block):
        return ""
    text = str(resource.get("text", ""))
    return f"{name}:\n{text}" if name else text


def _is_html(block: Mapping[str, Any]) -> bool:
    resource = block.get("resource", {})
    return resource.get("mimeType") == "text/html" and not resource.get("uri") and "text" in resource


def _picture(mime_type: str, data: bytes, name: str, pictures: list[Picture]) -> str:
    if mime_type in IMAGE_TYPES:
        pictures.append(Picture(mime_type, data))
        return ""
    return f"[{name}: {len(data)} bytes of {mime_type or 'unknown type'}]"
