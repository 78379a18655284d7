"""
Drives WebSocket and shell with the vendor's own client, unmodified: it insists on TLS and on the vendor's host names, which lead to
the platform here.
"""

import asyncio
import json
import sys

import websockets
from bedrock_agentcore.runtime import AgentCoreRuntimeClient
from bedrock_agentcore.runtime.shell.protocol import ShellChannel

given = json.load(sys.stdin)


async def main():
    client = AgentCoreRuntimeClient(given["region"])
    arn, session = given["arn"], given["session"]
    seen = {}

    url, headers = client.generate_ws_connection(arn, session_id=session, endpoint_name="DEFAULT")
    async with websockets.connect(url, additional_headers=headers) as ws:
        seen["first"] = json.loads(await ws.recv())
        await ws.send("hello")
        seen["echo"] = await ws.recv()

    async with client.open_shell(arn, session_id=session, shell_id="mine") as shell:
        await shell.resize(99, 33)
        output = ""
        async for frame in shell:
            if frame.channel == ShellChannel.STDOUT:
                # At the prompt, as a person types; the new size travels to the terminal by another way than what is typed.
                if output == "":
                    await shell.send('sleep 0.5; stty size; exit 7\n')
                output += frame.text
        seen["shell"] = {"id": shell.shell_id, "session": shell.session_id, "exit": shell.exit_code, "size": "33 99" in output}

    json.dump(seen, sys.stdout)


asyncio.run(main())
