"""What an agent remembers: `MemoryClient`, and adapters for frameworks in `memory.strands` and `memory.langgraph`."""

from .client import MemoryClient, RetrievedMemory, TurnMessage

__all__ = ["MemoryClient", "RetrievedMemory", "TurnMessage"]
