"""The memory client against a real platform, in the spellings of the specification."""

from datetime import datetime, timedelta, timezone

import pytest

pytest.importorskip("boto3")

from botocore.exceptions import ClientError

from remembering import client, memory_id, needs_platform, until  # noqa: F401

pytestmark = needs_platform


def test_what_was_said_comes_back_in_turns(client, memory_id):  # noqa: F811
    client.create_event(memory_id, "jane", "turns", messages=[("Welcome.", "ASSISTANT")])
    for number in range(4):
        client.create_event(
            memory_id=memory_id,
            actor_id="jane",
            session_id="turns",
            messages=[(f"question {number}", "USER"), (f"answer {number}", "assistant")],
        )
    last = client.get_last_k_turns(memory_id, "jane", "turns", k=2)
    assert [[(m.text, m.role) for m in turn] for turn in last] == [
        [(f"question {n}", "USER"), (f"answer {n}", "ASSISTANT")] for n in (2, 3)
    ]
    everything = client.get_last_k_turns(memory_id, "jane", "turns", k=99)
    assert [turn[0].text for turn in everything] == ["Welcome.", *[f"question {n}" for n in range(4)]]
    assert client.get_last_k_turns(memory_id, "john", "turns") == []


def test_events_have_metadata_blobs_times_and_branches(client, memory_id):  # noqa: F811
    at = datetime.now(timezone.utc) - timedelta(hours=1)
    first = client.create_event(memory_id, "jane", "more", [("one", "USER")], timestamp=at, metadata={"kind": "a"})
    client.create_event(memory_id, "jane", "more", blob={"x": [1, None]}, metadata={"kind": "b"}, extract=False)
    client.create_event(
        memory_id, "jane", "more", [("other", "USER")], branch={"name": "b1", "rootEventId": first["eventId"]}
    )
    assert abs((first["eventTimestamp"] - at).total_seconds()) < 1
    (kept,) = client.list_events(memory_id, "jane", "more", metadata={"kind": "b"})
    assert kept["payload"] == [{"blob": {"x": [1, None]}}]
    assert [e["eventId"] for e in client.list_events(memory_id, "jane", "more", branch="b1", page_size=1)][1] == first["eventId"]
    assert len(client.get_last_k_turns(memory_id, "jane", "more")) == 1
    client.delete_event(memory_id, "jane", "more", first["eventId"])
    assert len(list(client.list_events(memory_id, "jane", "more", page_size=1))) == 2


def test_memories_are_retrieved_as_text(client, memory_id):  # noqa: F811
    client.create_event(memory_id, "ann", "s1", messages=[("I live in Oslo with two cats.", "USER")])
    (found,) = until(lambda: client.retrieve_memories(memory_id, "/facts/ann", "where does she live?  Oslo"))
    assert str(found) == found.text == "I live in Oslo with two cats."
    assert (found.namespace, 0 < found.score <= 1) == ("/facts/ann", True)
    assert client.retrieve_memories(memory_id, namespace="/facts/an", query="Oslo") == []
    assert len(client.retrieve_memories(memory_id, namespace_path="/facts", query="Oslo", top_k=1)) == 1


def test_mistakes_are_the_errors_of_the_wire(client, memory_id):  # noqa: F811
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        client.create_event("nothing-0123456789", "jane", "s", [("x", "USER")])
    with pytest.raises(ClientError, match="ValidationException"):
        client.create_event(memory_id, "jane", "s", [("x", "KING")])
