"""LangGraph keeps its checkpoints (`MemorySaver`) and what it knows beyond one thread (`MemoryStore`) in a memory."""

from .saver import MemorySaver
from .store import MemoryStore

__all__ = ["MemorySaver", "MemoryStore"]
