"""The peer: mem0 with a local qdrant. Reads what to do as JSON on stdin, prints times in milliseconds as JSON."""

import json
import sys
import time
from importlib.metadata import version

from mem0_memory import open_memory

task = json.load(sys.stdin)
memory = open_memory(task)


def times(work, items):
    took = []
    for item in items:
        started = time.perf_counter()
        work(item)
        took.append((time.perf_counter() - started) * 1000)
    return took


written = times(lambda text: memory.add(text, user_id="jane", infer=False), task["events"])
inferred = times(lambda text: memory.add([{"role": "user", "content": text}], user_id="ann"), task["inferred"])
made = len(memory.get_all(filters={"user_id": "ann"}, top_k=1000)["results"])

# As many records as the other side searches, put in directly: through `add` it would take far longer than all the rest.
records = task["records"]
for start in range(0, len(records), 500):
    part = records[start : start + 500]
    vectors = [memory.embedding_model.embed(text, "add") for text in part]
    payloads = [{"data": text, "user_id": "all", "hash": str(start + n), "created_at": "2026-01-01T00:00:00+00:00"} for n, text in enumerate(part)]
    ids = [f"00000000-0000-4000-8000-{start + n:012d}" for n in range(len(part))]
    memory.vector_store.insert(vectors=vectors, payloads=payloads, ids=ids)
for query in task["queries"]:
    memory.embedding_model.embed(query, "search")
embedding = times(lambda query: memory.embedding_model.embed(query, "search"), task["queries"])
found = times(lambda query: memory.search(query, filters={"user_id": "all"}, top_k=10), task["queries"])
print(
    json.dumps(
        {
            "version": version("mem0ai"),
            "written": written,
            "inferred": inferred,
            "made": made,
            "embedding": embedding,
            "found": found,
        }
    )
)
