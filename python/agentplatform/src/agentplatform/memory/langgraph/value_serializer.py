"""Reads checkpoints of graphs without running what somebody else may have written into the memory."""

import dataclasses
import sys
from enum import Enum
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

#: Extensions of the serializer that name a module and what of it is called with the rest.
_CALLS = frozenset(range(6))
#: What classes have whose instances the serializer writes: models of pydantic, named tuples, secrets.
_MARKS = ("model_fields", "__fields__", "_fields", "get_secret_value")


class ValueSerializer(JsonPlusSerializer):
    """
    LangGraph's own serializer calls whatever a checkpoint names, `os.system` among it, so that who may create an event runs code in
    the agent. This one first looks at all that would be called: values of a graph's state are built, as before – dataclasses, models,
    named tuples and enumerations of modules that the agent has imported, and what LangGraph itself takes for safe.
    """

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Raises ValueError for a checkpoint that would call anything else."""
        if data[0] == "msgpack":
            refused: list[str] = []
            _look(data[1], refused)
            if refused:
                raise ValueError(
                    f"The checkpoint asks for {refused[0][:200]}, which is no type of a graph's state that the agent has imported. "
                    "Import its module first, or give the saver a serde of your own."
                )
        return super().loads_typed(data)


def _look(data: bytes, refused: list[str]) -> Any:
    """What is in the bytes, with nothing built of it; collects what is not to be built."""

    def look(code: int, inner: bytes) -> None:
        parts = _look(inner, refused)
        if code not in _CALLS:
            return
        named = parts[:2] if isinstance(parts, list) else []
        if len(named) < 2 or not _is_value(*named):
            refused.append(".".join(map(str, named)) or "something without a name")

    return ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)


def _is_value(module: Any, name: Any) -> bool:
    if (module, name) in SAFE_MSGPACK_TYPES:
        return True
    named = getattr(sys.modules.get(module), name, None) if isinstance(module, str) and isinstance(name, str) else None
    if not isinstance(named, type):
        return False
    return dataclasses.is_dataclass(named) or issubclass(named, Enum) or any(hasattr(named, mark) for mark in _MARKS)
