"""The peer: mem0 with a local qdrant. Reads conversations as JSON on stdin, prints the ids that it found for each question, best first."""

import json
import os
import sys

os.environ["MEM0_TELEMETRY"] = "False"
task = json.load(sys.stdin)

from importlib.metadata import version

from mem0 import Memory

endpoint = {"api_key": "none", "openai_base_url": task["url"]}
memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": task["directory"],
                "on_disk": True,
                "collection_name": "quality",
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

found = []
turns = {}
for number, conversation in enumerate(task["conversations"]):
    user = str(number)
    for turn in conversation["turns"]:
        # Word for word, as the platform keeps it here: what is compared is the search.
        for made in memory.add(turn["text"], user_id=user, infer=False)["results"]:
            turns[made["id"]] = turn["id"]
    print(f"mem0: {len(turns)} turns kept", file=sys.stderr, flush=True)
    for question in conversation["questions"]:
        results = memory.search(question, filters={"user_id": user}, top_k=task["limit"], threshold=0.0)["results"]
        found.append([turns[result["id"]] for result in results])
print(json.dumps({"version": version("mem0ai"), "found": found}))
