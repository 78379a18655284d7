"""The peer: mem0 with a local qdrant, and models that are asked where the task says."""

import os

os.environ["MEM0_TELEMETRY"] = "False"

from mem0 import Memory


def open_memory(task):
    """A memory in the task's `directory`, by the models at its `url`, with vectors of its `dimensions`."""
    endpoint = {"api_key": "none", "openai_base_url": task["url"]}
    return Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": task["directory"],
                    "on_disk": True,
                    "collection_name": "bench",
                    "embedding_model_dims": task["dimensions"],
                },
            },
            "llm": {"provider": "openai", "config": {"model": "scripted", **endpoint}},
            "embedder": {
                "provider": "openai",
                "config": {"model": "minilm", "embedding_dims": task["dimensions"], **endpoint},
            },
            "history_db_path": task["directory"] + "/history.db",
        }
    )
