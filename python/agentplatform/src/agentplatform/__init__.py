"""Serve any agent, in any framework, as a session of the agent platform."""

from .app import AgentPlatformApp
from .context import InvocationContext, get_context
from .health import PingStatus, RunningTask

__all__ = ["AgentPlatformApp", "InvocationContext", "PingStatus", "RunningTask", "get_context"]
