"""boto3 clients, made when they are needed first; their region, endpoint and credentials come from the environment."""

import functools
import threading
from typing import Any

_lock = threading.Lock()


def data_client() -> Any:
    """Raises ImportError without boto3."""
    # boto3's default session may be used by one thread at a time.
    with _lock:
        return _client("bedrock-agentcore")


def control_client() -> Any:
    """Raises ImportError without boto3."""
    with _lock:
        return _client("bedrock-agentcore-control")


@functools.cache
def _client(service: str) -> Any:
    try:
        import boto3
    except ImportError as error:
        raise ImportError("agentplatform.identity needs boto3: pip install boto3") from error
    return boto3.client(service)
