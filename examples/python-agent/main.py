"""An agent on the Python SDK: it streams its answer, remembers its session, works on after it has answered, and talks over a WebSocket."""

import asyncio
import json

from agentplatform import AgentPlatformApp

app = AgentPlatformApp()

# The memory of one session: every session has a process, a disk and a network of its own.
calls = 0
background: set[asyncio.Task[None]] = set()


@app.async_task
async def work(seconds: float) -> None:
    """While this runs, /ping says HealthyBusy and the session is not ended for being idle."""
    await asyncio.sleep(seconds)


@app.entrypoint
async def answer(payload, context):
    global calls
    calls += 1
    if "work" in payload:
        task = asyncio.create_task(work(float(payload["work"])))
        background.add(task)
        task.add_done_callback(background.discard)
    yield "Hello! "
    yield f"You said {json.dumps(payload.get('prompt'))}. "
    yield f"This is call {calls} of this session."


@app.websocket
async def talk(websocket, context):
    await websocket.accept()
    await websocket.send_json({"session": context.session_id, "calls": calls})
    async for text in websocket.iter_text():
        await websocket.send_text(text.upper())


if __name__ == "__main__":
    app.run()
