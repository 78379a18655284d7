"""The peer: mem0 with a local qdrant. Reads conversations as JSON on stdin, prints the ids that it found for each question, best first."""

import json
import sys
from importlib.metadata import version

from mem0_memory import open_memory

task = json.load(sys.stdin)
memory = open_memory(task)

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
