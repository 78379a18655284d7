"""Drives memory with the vendor's unmodified Python SDK and with boto3; prints what it saw as JSON."""

import json
import sys
import time
from datetime import datetime, timezone

import boto3
from bedrock_agentcore.memory import MemoryClient
from bedrock_agentcore.memory.constants import BlobMessage, ConversationalMessage, MessageRole
from bedrock_agentcore.memory.session import MemorySessionManager
from botocore.exceptions import ClientError

region = json.load(sys.stdin)["region"]
client = MemoryClient(region_name=region)
seen = {}


def until(read, wanted=bool, seconds=90):
    end = time.time() + seconds
    while time.time() < end:
        value = read()
        if wanted(value):
            return value
        time.sleep(0.2)
    return value


def text_of(record):
    content = record["content"] if not hasattr(record, "content") else record.content
    return content["text"]


# The control plane.
facts = {"semanticMemoryStrategy": {"name": "facts", "namespaces": ["/facts/{actorId}"]}}
memory = client.create_memory_and_wait(name="vendor", strategies=[facts], event_expiry_days=30, poll_interval=1)
memory_id = memory["id"]
seen["status"] = client.get_memory_status(memory_id)
seen["again"] = client.create_or_get_memory(name="vendor", strategies=[facts])["id"] == memory_id
client.add_summary_strategy_and_wait(memory_id, "sums", namespaces=["/sums/{actorId}/{sessionId}"], poll_interval=1)
client.add_user_preference_strategy_and_wait(memory_id, "likes", namespaces=["/likes/{actorId}"], poll_interval=1)
episodic = client.add_episodic_strategy_and_wait(
    memory_id,
    "episodes",
    reflection_namespaces=["/episodes/{actorId}"],
    namespaces=["/episodes/{actorId}/{sessionId}"],
    poll_interval=1,
)
client.add_custom_semantic_strategy_and_wait(
    memory_id,
    "own",
    {"prompt": "Only cities.", "modelId": "m"},
    {"prompt": "Merge cities.", "modelId": "m"},
    namespaces=["/own/{actorId}"],
    poll_interval=1,
)
strategies = client.get_memory_strategies(memory_id)
seen["strategies"] = [[s["name"], s["type"]] for s in strategies]
client.modify_strategy(memory_id, strategies[0]["strategyId"], description="changed")
client.delete_strategy(memory_id, strategies[4]["strategyId"])
seen["left"] = [s["name"] for s in client.get_memory_strategies(memory_id)]
seen["listed"] = memory_id in [m["id"] for m in client.list_memories()]

# Events, in the specification's spelling.
one = client.create_event(
    memory_id=memory_id,
    actor_id="jane",
    session_id="s1",
    messages=[("I live in Berlin with my sister.", "USER"), ("Noted.", "ASSISTANT")],
)
two = client.save_conversation(memory_id, "jane", "s1", [("I love jazz concerts.", "USER"), ("Nice.", "ASSISTANT")])
client.create_blob_event(memory_id, "jane", "blobs", {"kept": [1, 2.5, None]})
seen["events"] = [e["eventId"] for e in client.list_events(memory_id, "jane", "s1")] == [two["eventId"], one["eventId"]]
seen["blob"] = client.list_events(memory_id, "jane", "blobs")[0]["payload"][0]["blob"]
turns = client.get_last_k_turns(memory_id, "jane", "s1", k=1)
seen["turns"] = [[m["content"]["text"] for m in turn] for turn in turns]
client.fork_conversation(memory_id, "jane", "s1", one["eventId"], "other", [("I live in Rome.", "USER")])
seen["branches"] = sorted(b["name"] for b in client.list_branches(memory_id, "jane", "s1"))
seen["branch"] = len(client.list_branch_events(memory_id, "jane", "s1", "other", include_parent_branches=True))
tree = client.get_conversation_tree(memory_id, "jane", "s1")
seen["tree"] = list(tree["main_branch"]["branches"])
seen["merged"] = [m["content"] for m in client.merge_branch_context(memory_id, "jane", "s1", "other")]

# Long term.
# Found while she lives in Berlin and after the other branch has moved her to Rome.
seen["waited"] = client.wait_for_memories(memory_id, "/facts/jane", test_query="live", max_wait=120, poll_interval=1)
likes = until(lambda: client.retrieve_memories(memory_id, "/likes/jane", "music concerts"))
seen["likes"] = [text_of(m) for m in likes]
seen["nowhere"] = client.retrieve_memories(memory_id, "/fact", "Berlin")
memories, answer, event = client.process_turn_with_llm(
    memory_id=memory_id,
    actor_id="jane",
    session_id="s2",
    user_input="Where do I live?",
    llm_callback=lambda text, found: f"{len(found) > 0}",
    retrieval_namespace="/facts/jane",
)
seen["turn"] = answer

# The session manager.
manager = MemorySessionManager(memory_id=memory_id, region_name=region)
session = manager.create_memory_session(actor_id="tom", session_id="t1")
added = session.add_turns(
    [
        ConversationalMessage("I work at Initech in Austin.", MessageRole.USER),
        BlobMessage({"file": "x"}),
        ConversationalMessage("Fine.", MessageRole.ASSISTANT),
    ]
)
session.add_turns(
    [ConversationalMessage("I own two dogs.", MessageRole.USER)],
    event_timestamp=datetime.now(timezone.utc),
    metadata={"city": {"stringValue": "Austin"}},
)
seen["manager_turns"] = [[m["content"]["text"] for m in turn] for turn in session.get_last_k_turns(k=2)]
seen["manager_event"] = session.get_event(added["eventId"])["eventId"] == added["eventId"]
session.fork_conversation(
    root_event_id=added["eventId"],
    branch_name="fork",
    messages=[ConversationalMessage("My sister plays the violin.", MessageRole.USER)],
)
seen["manager_branches"] = sorted(b["name"] for b in session.list_branches())
seen["manager_filtered"] = len(
    session.list_events(
        eventMetadata=[{"left": {"metadataKey": "city"}, "operator": "EQUALS_TO", "right": {"metadataValue": {"stringValue": "Austin"}}}]
    )
)
seen["actors"] = sorted(a["actorId"] for a in manager.list_actors())
seen["sessions"] = [s["sessionId"] for s in manager.list_actor_sessions("tom")]
found = until(
    lambda: session.search_long_term_memories("Where is the work?", namespace="/facts/tom", top_k=3),
    lambda rs: any("Initech" in text_of(r) for r in rs),
)
seen["manager_found"] = any("Initech" in text_of(r) for r in found)
records = session.list_long_term_memory_records(namespace="/facts/tom")
record_id = records[0]["memoryRecordId"]
seen["record"] = session.get_memory_record(record_id)["memoryRecordId"] == record_id
session.delete_memory_record(record_id)
gone = until(lambda: session.list_long_term_memory_records(namespace="/facts/tom"), lambda rs: record_id not in [r["memoryRecordId"] for r in rs])
seen["record_gone"] = record_id not in [r["memoryRecordId"] for r in gone]
manager.delete_all_long_term_memories_in_namespace("/facts/tom")
session.delete_event(added["eventId"])

# boto3: the rest of the surface, through its paginators too.
data = boto3.client("bedrock-agentcore", region_name=region)
made = data.batch_create_memory_records(
    memoryId=memory_id,
    records=[
        {"requestIdentifier": f"r{i}", "namespaces": ["/own/x"], "content": {"text": f"number {i} is prime"}, "timestamp": datetime.now(timezone.utc)}
        for i in range(5)
    ],
)
ids = [r["memoryRecordId"] for r in made["successfulRecords"]]
paginator = data.get_paginator("list_memory_records")
listed = [r["memoryRecordId"] for page in paginator.paginate(memoryId=memory_id, namespace="/own/x", PaginationConfig={"PageSize": 2}) for r in page["memoryRecordSummaries"]]
seen["paginated"] = sorted(listed) == sorted(ids)
data.batch_update_memory_records(memoryId=memory_id, records=[{"memoryRecordId": ids[0], "timestamp": datetime.now(timezone.utc), "content": {"text": "zero"}}])
seen["updated"] = data.get_memory_record(memoryId=memory_id, memoryRecordId=ids[0])["memoryRecord"]["content"]["text"]
deleted = data.batch_delete_memory_records(memoryId=memory_id, records=[{"memoryRecordId": i} for i in ids])
seen["deleted"] = len(deleted["successfulRecords"])
seen["jobs"] = data.list_memory_extraction_jobs(memoryId=memory_id)["jobs"]
ingested = data.ingest_data(
    memoryId=memory_id,
    actorId="eve",
    contentTimestamp=datetime.now(timezone.utc),
    source={"inline": {"payload": [{"conversational": {"role": "USER", "content": {"text": "I play chess in Oslo."}}}]}},
)
seen["ingested"] = [text_of(m) for m in until(lambda: client.retrieve_memories(memory_id, "/facts/eve", "chess"))]
try:
    data.start_memory_extraction_job(memoryId=memory_id, extractionJob={"jobId": "none"})
except data.exceptions.ResourceNotFoundException as error:
    seen["no_job"] = error.response["Error"]["Code"]
try:
    client.create_event(memory_id="nothing-0123456789", actor_id="a", session_id="s", messages=[("x", "USER")])
except ClientError as error:
    seen["no_memory"] = error.response["Error"]["Code"]

client.delete_memory_and_wait(memory_id, poll_interval=1)
seen["listed_after"] = memory_id in [m["id"] for m in client.list_memories()]
print(json.dumps(seen, default=str))
