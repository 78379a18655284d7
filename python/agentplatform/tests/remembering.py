"""A memory of a real platform, for the tests of the client and of its adapters."""

import os
import time
import uuid

import pytest

from agentplatform.memory import MemoryClient

needs_platform = pytest.mark.skipif("AWS_ENDPOINT_URL" not in os.environ, reason="no platform to talk to")

FACTS = {"semanticMemoryStrategy": {"name": "facts", "namespaceTemplates": ["/facts/{actorId}"]}}


@pytest.fixture(scope="module")
def client():
    return MemoryClient(os.environ.get("AWS_REGION"))


@pytest.fixture(scope="module")
def memory_id(client):
    made = client.create_memory(f"memory_{uuid.uuid4().hex[:8]}", [FACTS])
    yield made
    client.delete_memory(made)


def until(read, seconds=90):
    """What `read` gives once it is not empty."""
    end = time.monotonic() + seconds
    while not (found := read()) and time.monotonic() < end:
        time.sleep(0.2)
    return found
