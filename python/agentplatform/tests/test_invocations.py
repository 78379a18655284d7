import asyncio
import dataclasses
import functools
import sys
import threading
import time

import pytest
from conftest import Serve
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agentplatform import AgentPlatformApp, get_context

SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"


def test_single_decorator(serve: Serve) -> None:
    @AgentPlatformApp
    def agent(payload):
        """Says hello."""
        return f"hello {payload['name']}"

    assert agent.__name__ == "agent" and agent.__doc__ == "Says hello."
    answer = serve(agent).invoke({"name": "you"})
    assert (answer.status, answer.headers["content-type"], answer.json) == (200, "application/json", "hello you")


def test_object_with_entrypoint_returns_the_function(serve: Serve) -> None:
    app = AgentPlatformApp()

    @app.entrypoint
    async def agent(payload):
        await asyncio.sleep(0)
        return {"got": payload}

    assert asyncio.run(agent(1)) == {"got": 1}
    assert serve(app).invoke([1, {"a": None}]).json == {"got": [1, {"a": None}]}


def test_context(serve: Serve) -> None:
    @AgentPlatformApp
    async def agent(payload, context):
        assert get_context() is context
        assert "wat-1" not in repr(context)
        return {
            "session": context.session_id,
            "request": context.request_id,
            "user": context.user_id,
            "token": context.workload_access_token,
            "callback": context.oauth2_callback_url,
            "authorization": context.request_headers.get("Authorization"),
            "names": sorted(context.request_headers.keys()),
        }

    seen = serve(agent).invoke(
        {},
        {
            SESSION: "s-1",
            "X-Amzn-Bedrock-AgentCore-Runtime-Request-Id": "r-1",
            "X-Amzn-Bedrock-AgentCore-Runtime-User-Id": "u-1",
            "X-Amz-Bedrock-AgentCore-Identity-WAT": "wat-1",
            "OAuth2CallbackUrl": "https://a.test/cb",
            "Authorization": "Bearer t",
            "X-Amzn-Bedrock-AgentCore-Runtime-Custom-Color": "red",
        },
    ).json
    assert seen == {
        "session": "s-1",
        "request": "r-1",
        "user": "u-1",
        "token": "wat-1",
        "callback": "https://a.test/cb",
        "authorization": "Bearer t",
        "names": ["accept-encoding", "authorization", "x-amzn-bedrock-agentcore-runtime-custom-color"],
    }


def test_without_platform_there_is_no_session_but_a_request_id(serve: Serve) -> None:
    @AgentPlatformApp
    def agent(payload, context):
        return [context.session_id, len(context.request_id), context.workload_access_token]

    assert serve(agent).invoke({}).json == [None, 36, None]
    assert get_context() is None


@dataclasses.dataclass
class Point:
    x: int
    tags: set[str]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("é\n", "é\n"),
        (Point(1, {"a"}), {"x": 1, "tags": ["a"]}),
        ([float("nan"), {"deep": float("inf")}, 1.5], [None, {"deep": None}, 1.5]),
        ({"at": time.struct_time}, {"at": str(time.struct_time)}),
        ({"half \ud83d": ["\\\ude00", float("nan")]}, {"half \ud83d": ["\\\ude00", None]}),
    ],
)
def test_what_json_can_hold_and_what_it_cannot(serve: Serve, value, expected) -> None:
    answer = serve(AgentPlatformApp(lambda payload: value)).invoke({})
    assert (answer.status, answer.json) == (200, expected)


def test_bytes_text_and_responses(serve: Serve) -> None:
    @AgentPlatformApp
    def agent(payload):
        return {"bytes": b"\x00\x01", "text": "plain", "response": JSONResponse({"no": 1}, 418)}[payload]

    server = serve(agent)
    assert server.invoke("bytes").body == b"\x00\x01"
    assert server.invoke("text", {"Accept": "text/plain"}).body == b"plain"
    assert server.invoke("text", {"Accept": "text/plain, */*"}).json == "plain"
    assert server.invoke("response").status == 418


def test_plain_text_joins_halves_of_a_character_and_replaces_a_lone_one(serve: Serve) -> None:
    server = serve(AgentPlatformApp(lambda payload: "\ud83d" + "\ude00 \ud83d é"))
    assert server.invoke({}, {"Accept": "text/plain"}).body.decode() == "\U0001f600 \ufffd é"


def test_circular_results_are_errors(serve: Serve) -> None:
    loop: list[object] = []
    loop.append(loop)
    answer = serve(AgentPlatformApp(lambda payload: loop)).invoke({})
    assert answer.status == 500 and "ircular" in answer.json["error"]


def test_partials_and_callables(serve: Serve) -> None:
    async def add(a, b):
        return a + b

    class Agent:
        async def __call__(self, payload, context):
            yield payload
            yield context.session_id

    assert serve(AgentPlatformApp(functools.partial(add, 1))).invoke(2).json == 3
    assert serve(AgentPlatformApp(Agent())).invoke(2, {SESSION: "s"}).events == [2, "s"]


@pytest.mark.parametrize("kind", ["sync", "async", "async from async", "generator from sync"])
def test_generators_stream(serve: Serve, kind: str) -> None:
    def plain(payload):
        yield "a\nb"
        yield get_context().session_id
        yield b"\xc3"
        yield b"\xa9"
        yield {"n": 1}

    async def asynchronous(payload):
        for item in plain(payload):
            await asyncio.sleep(0.001)
            yield item

    async def returns(payload):
        return asynchronous(payload)

    def returns_plain(payload):
        return plain(payload)

    handler = {"sync": plain, "async": asynchronous, "async from async": returns, "generator from sync": returns_plain}
    answer = serve(AgentPlatformApp(handler[kind])).invoke({}, {SESSION: "s"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.events == ["a\nb", "s", "é", {"n": 1}]


class Pieces:
    """As the stream of a model's client: no generator, without `aclose`, and bound to the loop that it was opened in."""

    def __init__(self, *pieces) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces = iter(pieces)

    def __aiter__(self):
        return self

    async def __anext__(self):
        await self._loop.create_task(asyncio.sleep(0.001))
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


def test_an_asynchronous_iterable_streams_in_the_loop_that_it_was_opened_in(serve: Serve) -> None:
    @AgentPlatformApp
    async def agent(payload):
        return Pieces("a", {"n": 1})

    answer = serve(agent).invoke({})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.events == ["a", {"n": 1}]


def test_first_piece_comes_before_the_last_is_made(serve: Serve) -> None:
    go_on = threading.Event()

    @AgentPlatformApp
    async def agent(payload):
        yield 1
        await asyncio.to_thread(go_on.wait, 10)
        yield 2

    connection = serve(agent).connection()
    connection.request("POST", "/invocations", "{}")
    response = connection.getresponse()
    assert response.readline() == b"data: 1\n"
    go_on.set()
    assert response.read() == b"\ndata: 2\n\n"
    connection.close()


@pytest.mark.parametrize("kind", ["sync", "async", "iterable"])
def test_a_reader_that_goes_away_ends_the_generator(serve: Serve, kind: str) -> None:
    ended = threading.Event()

    def plain(payload):
        try:
            while True:
                yield "x" * 1000
                time.sleep(0.005)
        finally:
            ended.set()

    async def asynchronous(payload):
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            ended.set()

    class Iterable:
        def __aiter__(self):
            return asynchronous(None)

    handler = {"sync": plain, "async": asynchronous, "iterable": lambda payload: Iterable()}[kind]
    connection = serve(AgentPlatformApp(handler)).connection()
    connection.request("POST", "/invocations", "{}")
    connection.getresponse().readline()
    assert not ended.is_set()
    connection.sock and connection.sock.close()
    connection.close()
    assert ended.wait(5)


def test_a_slow_reader_holds_the_generator_up(serve: Serve) -> None:
    made = 0

    @AgentPlatformApp
    async def agent(payload):
        nonlocal made
        for made in range(2000):
            yield "x" * 50_000

    connection = serve(agent).connection()
    connection.request("POST", "/invocations", "{}")
    response = connection.getresponse()
    response.readline()
    time.sleep(0.5)
    assert made < 1900
    connection.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_error_in_the_stream_is_its_last_event(serve: Serve, kind: str) -> None:
    def plain(payload):
        yield 1
        raise KeyError("lost")

    async def asynchronous(payload):
        yield 1
        raise KeyError("lost")

    answer = serve(AgentPlatformApp(plain if kind == "sync" else asynchronous)).invoke({})
    assert answer.status == 200
    assert answer.body.decode().splitlines()[2] == "event: error"
    assert answer.events[-1] == {
        "error": "'lost'",
        "error_type": "KeyError",
        "message": "An error occurred during streaming",
    }


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_half_a_character_does_not_break_a_stream(serve: Serve, kind: str) -> None:
    def plain(payload):
        yield "é \ud83d"
        yield {"\ude00": 1}
        raise ValueError("lost \ud83d")

    async def asynchronous(payload):
        for item in plain(payload):
            yield item

    answer = serve(AgentPlatformApp(plain if kind == "sync" else asynchronous)).invoke({})
    assert answer.events[:2] == ["é \ud83d", {"\ude00": 1}]
    assert answer.events[2]["error"] == "lost \ud83d"


def test_errors(serve: Serve) -> None:
    @AgentPlatformApp
    def agent(payload):
        if payload == "http":
            raise HTTPException(409, "busy")
        if payload == "half":
            raise ValueError("boom \ud83d")
        if payload == "http half":
            raise HTTPException(409, "busy \ud83d")
        raise ValueError("boom")

    server = serve(agent)
    assert (server.invoke({}).status, server.invoke({}).json) == (500, {"error": "boom"})
    assert (server.invoke("http").status, server.invoke("http").json) == (409, {"error": "busy"})
    assert (server.invoke("half").status, server.invoke("half").json) == (500, {"error": "boom \ud83d"})
    assert (server.invoke("http half").status, server.invoke("http half").json) == (409, {"error": "busy \ud83d"})


@pytest.mark.parametrize("how", [SystemExit("usage: bad option"), KeyboardInterrupt(), BaseException("other")], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async", "task", "async from sync"])
def test_an_entrypoint_that_exits_fails_that_call_and_no_other(serve: Serve, kind: str, how: BaseException) -> None:
    waiting, release = threading.Event(), threading.Event()

    def plain(payload):
        if payload == "wait":
            waiting.set()
            release.wait(10)
        if payload == "exit":
            raise how
        return "fine"

    async def asynchronous(payload):
        if payload == "wait":
            waiting.set()
            while not release.is_set():
                await asyncio.sleep(0.01)
        return plain(None if payload == "wait" else payload)

    async def in_a_task(payload):
        return await asyncio.create_task(asynchronous(payload))

    handlers = {"sync": plain, "async": asynchronous, "task": in_a_task, "async from sync": lambda payload: asynchronous(payload)}
    server = serve(AgentPlatformApp(handlers[kind]))
    beside = []
    neighbour = threading.Thread(target=lambda: beside.append(server.invoke("wait").json))
    neighbour.start()
    assert waiting.wait(5)
    answer = server.invoke("exit")
    assert (answer.status, answer.json) == (500, {"error": f"The agent raised {how!r}."})
    assert server.invoke({}).json == "fine"
    release.set()
    neighbour.join(5)
    assert beside == ["fine"]
    assert server.ping()["status"] == "Healthy"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_generator_that_exits_ends_its_stream_and_no_other(serve: Serve, kind: str) -> None:
    def plain(payload):
        yield 1
        if payload == "exit":
            sys.exit(2)

    async def asynchronous(payload):
        for item in plain(payload):
            yield item

    server = serve(AgentPlatformApp(plain if kind == "sync" else asynchronous))
    assert server.invoke("exit").events == [
        1,
        {
            "error": "The agent raised SystemExit(2).",
            "error_type": "RuntimeError",
            "message": "An error occurred during streaming",
        },
    ]
    assert server.invoke({}).events == [1]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_generator_that_exits_when_its_reader_goes_away_ends_nothing_else(serve: Serve, kind: str) -> None:
    ended = threading.Event()

    def plain(payload):
        try:
            while payload == "for ever":
                yield "x" * 1000
                time.sleep(0.005)
        finally:
            if payload == "for ever":
                ended.set()
                sys.exit(2)
        yield "fine"

    async def asynchronous(payload):
        try:
            yield 1
            await asyncio.sleep(60 if payload == "for ever" else 0)
        finally:
            if payload == "for ever":
                ended.set()
                sys.exit(2)
        yield "fine"

    server = serve(AgentPlatformApp(plain if kind == "sync" else asynchronous))
    connection = server.connection()
    connection.request("POST", "/invocations", '"for ever"')
    connection.getresponse().readline()
    connection.sock and connection.sock.close()
    connection.close()
    assert ended.wait(5)
    assert server.invoke({}).events[-1] == "fine"


def test_background_work_that_exits_or_stops_its_loop_ends_nothing_else(serve: Serve) -> None:
    background = set()

    async def leave() -> None:
        sys.exit(2)

    @AgentPlatformApp
    async def agent(payload):
        if payload == "exit":
            background.add(asyncio.create_task(leave()))
        if payload == "stop":
            asyncio.get_running_loop().stop()
        return "fine"

    server = serve(agent)
    assert [server.invoke(payload).json for payload in ("exit", {}, "stop", {})] == ["fine"] * 4


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"{", {}, 400, "not valid JSON"),
        (b"", {}, 400, "empty"),
        (b"\xff\xfe", {}, 400, "not valid UTF-8"),
        (b"[" * 200_000, {}, 400, "not valid JSON"),
        (b"x" * 1_000_001, {}, 413, "larger than 1000000 bytes"),
    ],
)
def test_bad_payloads(serve: Serve, body: bytes, headers: dict[str, str], status: int, said: str) -> None:
    answer = serve(AgentPlatformApp(lambda payload: payload, max_payload_bytes=1_000_000)).request(
        "POST", "/invocations", body, headers
    )
    assert answer.status == status
    assert said in answer.json["error"]


def test_text_is_a_payload_when_it_says_so(serve: Serve) -> None:
    server = serve(AgentPlatformApp(lambda payload: payload))
    assert server.request("POST", "/invocations", b"hi there", {"Content-Type": "text/plain"}).json == "hi there"
    assert server.request("POST", "/invocations", b'{"a":1}', {"Content-Type": "text/plain"}).json == {"a": 1}


def test_other_methods_and_paths(serve: Serve) -> None:
    server = serve(AgentPlatformApp(lambda payload: payload))
    assert server.request("GET", "/invocations").status == 405
    assert server.request("POST", "/ping").status == 405
    assert server.request("GET", "/other").json == {"error": "Not Found"}


def test_without_entrypoint(serve: Serve) -> None:
    app = AgentPlatformApp()
    with pytest.raises(RuntimeError, match="No entrypoint"):
        app.run()
    assert serve(app).invoke({}).status == 500


@pytest.mark.parametrize("port", ["", "x", "-1", "65536", "８０"])
def test_bad_ports(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("PORT", port)
    with pytest.raises(ValueError, match="PORT"):
        AgentPlatformApp(lambda payload: payload).run()
