"""Serve any agent, in any framework, as a session of the agent platform."""

from .app import AgentPlatformApp
from .browser import BrowserClient, browser_session
from .code_interpreter import CodeInterpreter, CodeInterpreterError, CodeInterpreterResult
from .context import InvocationContext, get_context
from .copies import on_copy, reseed_if_copied
from .health import PingStatus, RunningTask

__all__ = [
    "AgentPlatformApp",
    "BrowserClient",
    "CodeInterpreter",
    "CodeInterpreterError",
    "CodeInterpreterResult",
    "InvocationContext",
    "PingStatus",
    "RunningTask",
    "browser_session",
    "get_context",
    "on_copy",
    "reseed_if_copied",
]
