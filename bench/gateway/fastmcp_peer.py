"""FastMCP in front of the same API: tools from its OpenAPI document, streamable HTTP without sessions, JSON answers."""

import json
import sys

import httpx2
from fastmcp import FastMCP

document, backend, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(document, encoding="utf-8") as file:
    spec = json.load(file)
limits = httpx2.Limits(max_connections=256, max_keepalive_connections=256)
server = FastMCP.from_openapi(openapi_spec=spec, client=httpx2.AsyncClient(base_url=backend, limits=limits), name="peer")
server.run(
    transport="http",
    host="127.0.0.1",
    port=port,
    path="/mcp",
    stateless_http=True,
    json_response=True,
    log_level="error",
    show_banner=False,
)
