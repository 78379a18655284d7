"""A session of the platform's code interpreter: Python, JavaScript and TypeScript in a sandbox of its own."""

import shlex
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Any

#: The interpreter that every account has.
BUILT_IN = "aws.codeinterpreter.v1"

#: Bytes that one call carries; larger files go in parts.
PART_BYTES = 4 * 1024 * 1024

#: Seconds without a byte after which a call is given up. Code that prints nothing may run for as long as the platform lets it (600 s by default).
READ_TIMEOUT = 960

OnOutput = Callable[[str, str], None]


@dataclass(frozen=True)
class CodeInterpreterResult:
    """
    What an operation gave, as on the wire: `content` is a list of blocks (`text`, `image`, `resource`, `resource_link`),
    `structured_content` holds `stdout`, `stderr`, `exitCode`, `executionTime`, `taskId` and `taskStatus` where they apply.
    """

    content: list[dict[str, Any]]
    structured_content: dict[str, Any]
    is_error: bool

    @property
    def text(self) -> str:
        """The text blocks, each on lines of its own: what was printed and the last value."""
        return "\n".join(block.get("text", "").removesuffix("\n") for block in self.content if block.get("type") == "text")

    @property
    def stdout(self) -> str:
        """What was printed to standard output."""
        return str(self.structured_content.get("stdout", ""))

    @property
    def stderr(self) -> str:
        """What was printed to standard error, a traceback among it."""
        return str(self.structured_content.get("stderr", ""))


class CodeInterpreterError(Exception):
    """`upload` or `download` failed; the message is the session's."""


class CodeInterpreter:
    """
    `start()` opens a session, `invoke(operation, arguments)` runs an operation in it, `stop()` ends it; a `with` block does the
    first and the last (spec: Code Interpreter client). Files leave the session only by `readFiles` or `download`.

    May be used by several threads. Methods raise the errors of boto3 (`botocore.exceptions.ClientError`).
    """

    def __init__(
        self,
        region: str | None = None,
        *,
        identifier: str = BUILT_IN,
        name: str | None = None,
        session_timeout_seconds: int | None = None,
        boto3_session: Any = None,
        **client_options: Any,
    ) -> None:
        """
        Region, endpoint and credentials may come from the environment, as for every boto3 client. `identifier` is the id or ARN
        of an interpreter; `name` and `session_timeout_seconds` (900 when absent, at most 28800) are those of the session;
        `client_options` go to `boto3.client`, e.g. `endpoint_url`. Raises ImportError without boto3.
        """
        self.identifier = identifier
        self._name = name
        self._timeout = session_timeout_seconds
        self._lock = threading.Lock()
        self._session_id: str | None = None
        self._client, self._invoking = _clients(region, boto3_session, client_options)

    @property
    def session_id(self) -> str | None:
        """The id of the open session."""
        return self._session_id

    def start(self) -> str:
        """Opens a session and returns its id; the id of the open one when there is one."""
        with self._lock:
            if self._session_id is None:
                wish = {"name": self._name, "sessionTimeoutSeconds": self._timeout}
                answer = self._client.start_code_interpreter_session(
                    codeInterpreterIdentifier=self.identifier,
                    **{key: value for key, value in wish.items() if value is not None},
                )
                self._session_id = str(answer["sessionId"])
            return self._session_id

    def invoke(
        self,
        operation: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_output: OnOutput | None = None,
    ) -> CodeInterpreterResult:
        """
        Runs an operation, e.g. `invoke("executeCode", {"language": "python", "code": code})`; opens a session when none is open.
        `on_output` gets `"stdout"` or `"stderr"` and what was printed, as it comes. Code that fails is a result with `is_error`.
        """
        answer = self._invoking.invoke_code_interpreter(
            codeInterpreterIdentifier=self.identifier,
            sessionId=self.start(),
            name=operation,
            arguments=dict(arguments or {}),
        )
        last: dict[str, Any] | None = None
        passed = {"stdout": 0, "stderr": 0}
        with closing(answer["stream"]) as stream:
            for event in stream:
                result = event.get("result")
                if result is None:
                    continue
                # Parts have no content; the last event holds all of it, of which some was passed on already.
                whole = bool(result.get("content"))
                for name in passed:
                    text = result.get("structuredContent", {}).get(name, "")
                    fresh = text[passed[name] :] if whole else text
                    passed[name] += len(fresh)
                    if fresh and on_output is not None:
                        on_output(name, fresh)
                last = result
        if last is None:
            raise CodeInterpreterError(f"{operation} ended without a result.")
        return CodeInterpreterResult(
            content=last.get("content", []),
            structured_content=last.get("structuredContent", {}),
            is_error=bool(last.get("isError", False)),
        )

    def upload(self, path: str, content: str | bytes) -> None:
        """Writes a file of any size into the session. Raises `CodeInterpreterError` when it cannot be written."""
        data = content.encode("utf-8") if isinstance(content, str) else content
        if len(data) <= PART_BYTES:
            self._write(path, data)
            return
        part, target = shlex.quote(f"{path}.uploading"), shlex.quote(path)
        self._run(f'mkdir -p -- "$(dirname -- {target})" && : > {target}')
        for at in range(0, len(data), PART_BYTES):
            self._write(f"{path}.uploading", data[at : at + PART_BYTES])
            self._run(f"cat -- {part} >> {target} && rm -- {part}")

    def download(self, path: str) -> bytes:
        """Reads a file of any size out of the session. Raises `CodeInterpreterError` when it cannot be read."""
        source, part = shlex.quote(path), shlex.quote(f"{path}.downloading")
        size = int(self._run(f"stat -Lc %s -- {source}"))
        if size <= PART_BYTES:
            return self._read(path)
        parts = []
        try:
            for i in range(-(-size // PART_BYTES)):
                self._run(f"dd if={source} of={part} bs={PART_BYTES} skip={i} count=1 status=none")
                parts.append(self._read(f"{path}.downloading"))
        finally:
            self._run(f"rm -f -- {part}")
        return b"".join(parts)

    def stop(self) -> None:
        """Ends the session; does nothing when none is open."""
        with self._lock:
            session_id, self._session_id = self._session_id, None
            if session_id is not None:
                self._client.stop_code_interpreter_session(codeInterpreterIdentifier=self.identifier, sessionId=session_id)

    def __enter__(self) -> "CodeInterpreter":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _write(self, path: str, data: bytes) -> None:
        _good(self.invoke("writeFiles", {"content": [{"path": path, "blob": data}]}))

    def _read(self, path: str) -> bytes:
        resource = _good(self.invoke("readFiles", {"paths": [path]})).content[0]["resource"]
        return bytes(resource["blob"]) if "blob" in resource else str(resource.get("text", "")).encode("utf-8")

    def _run(self, command: str) -> str:
        return _good(self.invoke("executeCommand", {"command": command})).stdout


def _good(result: CodeInterpreterResult) -> CodeInterpreterResult:
    if result.is_error:
        raise CodeInterpreterError(result.text or "The operation failed.")
    return result


def _clients(region: str | None, session: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """One client for sessions, and one for calls in them that never says a thing twice: code must not run twice."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise ImportError("CodeInterpreter needs boto3: pip install boto3") from error
    source = session if session is not None else boto3
    config = options.pop("config", None) or Config()
    client = source.client("bedrock-agentcore", region_name=region, config=config, **options)
    # What the caller's configuration says of timeouts holds.
    once = Config(read_timeout=READ_TIMEOUT).merge(config).merge(Config(retries={"total_max_attempts": 1}))
    invoking = source.client("bedrock-agentcore", region_name=region, config=once, **options)
    invoking.meta.events.register("before-call.bedrock-agentcore.InvokeCodeInterpreter", _ask_for_parts)
    return client, invoking


def _ask_for_parts(params: dict[str, Any], **_: Any) -> None:
    params["headers"]["x-agentplatform-events"] = "streamed"
