"""The token with which an agent asks for credentials."""

import asyncio
import json
import os
import uuid
from pathlib import Path
from typing import Any

from ..context import get_context
from .clients import control_client, data_client

#: In the working directory; the vendor's SDK keeps the identity of an agent outside of the platform there, with these members.
LOCAL_FILE = Path(".agentcore.json")


async def workload_token() -> str:
    """
    That of the request that the agent serves; outside of the platform one of a workload identity of its own. Raises RuntimeError in a
    sandbox when no request is being served.
    """
    context = get_context()
    if context is not None and context.workload_access_token:
        return context.workload_access_token
    # Sandboxes have it: there nobody makes identities, and files are nobody's.
    if os.environ.get("DOCKER_CONTAINER") == "1":
        raise RuntimeError(
            "There is no workload access token here. It comes with each request: "
            "call this while the entrypoint serves one, not when the agent starts."
        )
    return await asyncio.to_thread(_local_token)


def _local_token() -> str:
    kept = _read_kept()
    name = kept.get("workload_identity_name") or _make_identity()
    user = kept.get("user_id") or uuid.uuid4().hex[:8]
    whole = {**kept, "workload_identity_name": name, "user_id": user}
    if whole != kept:
        LOCAL_FILE.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    client = data_client()
    try:
        answer = client.get_workload_access_token_for_user_id(workloadName=name, userId=user)
    except client.exceptions.ResourceNotFoundException as error:
        why = f"{LOCAL_FILE} names the workload identity {name}, which is not on this platform."
        raise RuntimeError(f"{why} Remove the file, and a new one is made.") from error
    return str(answer["workloadAccessToken"])


def _read_kept() -> dict[str, Any]:
    try:
        kept = json.loads(LOCAL_FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        kept = None
    if not isinstance(kept, dict):
        raise RuntimeError(f"{LOCAL_FILE} holds no JSON object. Remove it, and a new one is made.")
    return kept


def _make_identity() -> str:
    name = f"workload-{uuid.uuid4().hex[:8]}"
    control_client().create_workload_identity(name=name)
    return name
