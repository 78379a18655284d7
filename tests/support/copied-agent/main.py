# An agent for tests of snapshots: it uses every generator while it warms up, and tells what each gives to a session.
import os
import random
import secrets
import ssl
import uuid

import uvicorn

from agentplatform import AgentPlatformApp, on_copy

app = AgentPlatformApp()
own = random.Random(7)
copied: list[str] = []
on_copy(lambda: copied.append("copy"))


def numbers():
    return {
        "random": random.random(),
        "secrets": secrets.token_hex(8),
        "uuid4": str(uuid.uuid4()),
        "urandom": os.urandom(8).hex(),
        "ssl.RAND_bytes": ssl.RAND_bytes(8).hex(),
    }


@app.entrypoint
def tell(payload):
    return {"copied": len(copied), "numbers": numbers(), "same": {"random.Random that was kept": own.random()}}


async def serve(scope, receive, send):
    if scope["type"] != "http" or scope["path"] != "/warm":
        return await app(scope, receive, send)
    numbers()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


uvicorn.run(serve, host="0.0.0.0", port=8080, access_log=False, log_level="warning")
