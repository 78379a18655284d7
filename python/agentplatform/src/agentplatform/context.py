"""What an entrypoint knows of the request that it serves."""

import uuid
from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

_PREFIX = "x-amzn-bedrock-agentcore-runtime-"
_SESSION = f"{_PREFIX}session-id"
_REQUEST = f"{_PREFIX}request-id"
_USER = f"{_PREFIX}user-id"
_TOKEN = "x-amz-bedrock-agentcore-identity-wat"
_OLDER_TOKEN = "workloadaccesstoken"
_CALLBACK = "oauth2callbackurl"

# Headers of the transport, and those that have an attribute of their own.
_HIDDEN = frozenset(
    name.encode()
    for name in (
        *(_SESSION, _REQUEST, _USER, _TOKEN, _OLDER_TOKEN, _CALLBACK),
        *("host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect", "content-length"),
        *("sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"),
    )
)


@dataclass(frozen=True)
class InvocationContext:
    """One request, as the platform handed it in."""

    #: The caller's runtimeSessionId; None when the agent is called without the platform and without the header.
    session_id: str | None
    #: The platform's id of this request, or a random one.
    request_id: str
    #: The end user that the caller named, if it named one.
    user_id: str | None
    #: Headers that the platform let through, whatever the case of the name; without those of the transport and the tokens below.
    request_headers: Headers
    #: Token with which this agent can ask Identity for credentials.
    workload_access_token: str | None = field(repr=False)
    #: Where an OAuth consent should return to.
    oauth2_callback_url: str | None
    #: The Starlette request or WebSocket.
    request: HTTPConnection = field(repr=False)


def context_from(request: HTTPConnection) -> InvocationContext:
    """Reads the context from the headers that reach a container."""
    headers = request.headers
    return InvocationContext(
        session_id=headers.get(_SESSION) or None,
        request_id=headers.get(_REQUEST) or str(uuid.uuid4()),
        user_id=headers.get(_USER) or None,
        request_headers=Headers(raw=[pair for pair in headers.raw if pair[0] not in _HIDDEN]),
        workload_access_token=headers.get(_TOKEN) or headers.get(_OLDER_TOKEN) or None,
        oauth2_callback_url=headers.get(_CALLBACK) or None,
        request=request,
    )


current: ContextVar[InvocationContext | None] = ContextVar("agentplatform_context", default=None)


def get_context() -> InvocationContext | None:
    """The context of the invocation that the caller runs in, however deep; None outside of one."""
    return current.get()
