"""
Drives a gateway with the official Python client, unmodified: by a bearer token, or signed by botocore. Prints what each flow gave.
"""

import asyncio
import json
import sys

import anyio
import httpx2
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

given = json.load(sys.stdin)


class Signed(httpx2.Auth):
    """Signs each request for the gateway."""

    requires_request_body = True

    def __init__(self, key, secret, region):
        self.signer = SigV4Auth(Credentials(key, secret), "bedrock-agentcore", region)

    def auth_flow(self, request):
        # What belongs to the connection is not signed.
        signed = [name for name in request.headers if name.startswith("mcp-") or name in ("accept", "content-type")]
        headers = {name: request.headers[name] for name in signed}
        aws = AWSRequest(method=request.method, url=str(request.url), data=request.content, headers=headers)
        self.signer.add_auth(aws)
        request.headers.update(dict(aws.headers))
        yield request


class Bearer(httpx2.Auth):
    def __init__(self, token):
        self.token = token

    def auth_flow(self, request):
        request.headers["authorization"] = f"Bearer {self.token}"
        yield request


def auth():
    if "token" in given:
        return Bearer(given["token"])
    return Signed(given["key"], given["secret"], given["region"])


async def flows(mode, backends):
    seen = {"asked": []}

    async def elicit(_, params):
        asked = params.model_dump(by_alias=True, exclude_none=True, mode="json")
        seen["asked"].append([asked.get("mode", "form"), asked["message"], asked.get("url")])
        return ElicitResult(action="accept", content=None if asked.get("mode") == "url" else {"name": "Ada"})

    async with httpx2.AsyncClient(auth=auth(), timeout=60) as http:
        transport = streamable_http_client(given["url"], http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=elicit, cache=None) as client:
            seen["version"] = client.protocol_version
            if mode == "legacy":
                await client.send_ping()
            first = await client.list_tools()
            second = await client.list_tools(cursor=first.next_cursor)
            seen["pages"] = [len(first.tools), len(second.tools), second.next_cursor]
            for name in backends:
                seen[name] = await with_backend(client, name)
    return seen


async def with_backend(client, name):
    told = []

    async def progress(now, total, message):
        told.append(now)

    await client.call_tool(f"{name}___count", {}, progress_callback=progress)
    form = await client.call_tool(f"{name}___form", {})
    link = await client.call_tool(f"{name}___link", {})
    # Once it says that it has begun, it is cancelled.
    with anyio.CancelScope() as scope:

        async def begun(now, total, message):
            scope.cancel()

        await client.call_tool(f"{name}___wait", {}, progress_callback=begun)
    return {"told": told, "form": form.content[0].text, "link": link.content[0].text}


async def main():
    print(json.dumps({"auto": await flows("auto", ["newer"]), "legacy": await flows("legacy", ["newer", "older"])}))


asyncio.run(main())
