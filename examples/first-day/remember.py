"""Says one sentence in a memory, and waits for the record that the memory makes of it."""

import datetime
import sys
import time

import boto3

memory_id, sentence = sys.argv[1:]
memory = boto3.client("bedrock-agentcore")
memory.create_event(
    memoryId=memory_id,
    actorId="jane",
    sessionId="first-day",
    eventTimestamp=datetime.datetime.now(datetime.timezone.utc),
    payload=[{"conversational": {"role": "USER", "content": {"text": sentence}}}],
)
while not memory.list_memory_records(memoryId=memory_id, namespacePath="/")["memoryRecordSummaries"]:
    time.sleep(0.5)
