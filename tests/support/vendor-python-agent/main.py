"""An agent as the vendor's documentation shows it, on the vendor's own package."""

import asyncio

from bedrock_agentcore.runtime import BedrockAgentCoreApp, BedrockAgentCoreContext
from bedrock_agentcore.runtime.context import RequestContext

app = BedrockAgentCoreApp()
count = 0


@app.entrypoint
async def invoke(payload, context: RequestContext):
    global count
    count += 1
    if payload.get("do") == "stream":
        return parts()
    if payload.get("do") == "fail":
        raise ValueError("on purpose")
    if payload.get("do") == "work":
        app.add_async_task("work")
    token = BedrockAgentCoreContext.get_workload_access_token()
    callback = BedrockAgentCoreContext.get_oauth2_callback_url()
    seen = {"session": context.session_id, "headers": context.request_headers, "token": token, "callback": callback}
    return {"count": count, **seen}


async def parts():
    for number in (1, 2, 3):
        yield {"part": number}
        await asyncio.sleep(0.01)


@app.websocket
async def talk(websocket, context):
    await websocket.accept()
    await websocket.send_json({"session": context.session_id})
    async for text in websocket.iter_text():
        await websocket.send_text(text.upper())


app.run()
