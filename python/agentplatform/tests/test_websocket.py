import sys

import pytest
from conftest import Serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from agentplatform import AgentPlatformApp, get_context


def url(server) -> str:
    return f"ws://127.0.0.1:{server.port}/ws"


def test_both_ways_with_context(serve: Serve) -> None:
    app = AgentPlatformApp()

    @app.websocket
    async def talk(websocket, context):
        assert get_context() is context
        await websocket.accept()
        await websocket.send_json({"session": context.session_id})
        async for text in websocket.iter_text():
            await websocket.send_text(text.upper())

    headers = {"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "s-1"}
    with connect(url(serve(app)), additional_headers=headers) as ws:
        assert ws.recv() == '{"session":"s-1"}'
        ws.send("é")
        assert ws.recv() == "É"


def test_a_handler_that_returns_closes_and_one_that_fails_says_so(serve: Serve) -> None:
    app = AgentPlatformApp()

    @app.websocket
    async def talk(websocket, context):
        await websocket.accept()
        match await websocket.receive_text():
            case "fail":
                raise ValueError("boom")
            case "exit":
                sys.exit(2)

    server = serve(app)
    for text, code in (("end", 1000), ("fail", 1011), ("exit", 1011)):
        with connect(url(server)) as ws:
            ws.send(text)
            with pytest.raises(ConnectionClosed) as closed:
                ws.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == code


def test_without_handler(serve: Serve) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(url(serve(AgentPlatformApp(lambda payload: payload))))
    assert refused.value.response.status_code == 404
