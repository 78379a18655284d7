"""What callers may send to an agent of the SDK; it goes on, says nothing of its inside, and mixes up nobody."""

import base64
import contextvars
import json
import os
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentplatform import AgentPlatformApp, get_context

from conftest import read_all, reset, until

SECRET = "s3cret-in-a-variable"
TOKEN = "x-amz-bedrock-agentcore-identity-wat"


def echo(payload, context):
    return payload


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


BODIES = {
    "no JSON": b"{",
    "nothing": b"",
    "no UTF-8": b'"\xff\xfe"',
    "half a character": b'"\\ud800"',
    "zero bytes": b"\0" * 1000,
    "very deep": b"[" * 200_000,
    "deep and whole": b"[" * 5_000 + b"]" * 5_000,
    "a number of 100,000 digits": b"1" * 100_000,
    "a number that is none": b"[NaN,Infinity,-Infinity,1e999]",
    "one name often": b"{" + b",".join([b'"a":1'] * 10_000) + b"}",
    "names of Python": b'{"__class__":"os","__proto__":{"a":1},"__reduce__":["os.system","true"]}',
}


@pytest.mark.parametrize("name", list(BODIES))
def test_any_body_is_answered_and_the_agent_goes_on(serve, name):
    agent = serve(AgentPlatformApp(echo))
    answer = agent.invoke(BODIES[name])
    assert status(answer) in (200, 400, 500)
    assert b"Traceback" not in answer and b'File "' not in answer
    assert agent.alive()


HEADS = {
    "two lengths": b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ncontent-length: 40\r\n\r\n{}",
    "length and chunks": b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /ping HTTP/1.1\r\nhost: a\r\n\r\n",
    "a length below zero": b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n{}",
    "a length of many digits": b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "a length in other digits": b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: \xb2\r\n\r\n{}",
    "a chunk of many bytes": b"POST /invocations HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n{}",
    "a line alone": b"\r\n\r\n\r\n\0\0\0\0",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
    "endless headers": b"GET /ping HTTP/1.1\r\n" + b"a: b\r\n" * 200_000,
    "an endless path": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
}


@pytest.mark.parametrize("name", list(HEADS))
@pytest.mark.parametrize("http", ["h11", "auto"])
def test_any_head_is_answered_once_and_the_agent_goes_on(serve, name, http):
    served = []
    agent = serve(AgentPlatformApp(lambda payload: served.append(payload)), http=http)
    with agent.dial() as connection:
        try:
            connection.sendall(HEADS[name])
            connection.shutdown(1)
        except OSError:
            pass
        answer = b"" if connection.fileno() < 0 else read_all(connection)
    # No second request is read out of what one claims to be its body.
    assert answer.count(b"HTTP/1.1 200") <= 1
    assert agent.alive()


@pytest.mark.parametrize("path", ["/../ping", "//ping", "/ping/../../etc/passwd", "/%2e%2e/etc/passwd", "/invocations%00", "/static/../app.py", "/."])
def test_no_path_leads_anywhere_else(serve, path):
    answer = serve(AgentPlatformApp(echo)).ask(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
    assert status(answer) in (400, 404, 405)
    assert b"root:" not in answer


def test_a_body_without_end_is_cut_off(serve):
    agent = serve(AgentPlatformApp(echo, max_payload_bytes=100_000))
    assert status(agent.invoke(b'"' + b"a" * 99_000 + b'"')) == 200
    assert status(agent.invoke(b'"' + b"a" * 200_000 + b'"')) == 413
    with agent.dial() as connection:
        connection.sendall(b"POST /invocations HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 50_000_000:
                connection.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
                sent += 0x4000
        except OSError:
            pass
        answer = read_all(connection)
    assert status(answer) in (0, 413)
    # What the kernel holds of a connection, and no more.
    assert sent < 50_000_000
    assert agent.alive()


def test_who_sends_half_of_a_request_and_waits_holds_up_nobody(serve):
    agent = serve(AgentPlatformApp(echo))
    held = [agent.dial() for _ in range(200)]
    for connection in held:
        connection.sendall(b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{")
    assert agent.alive()
    assert status(agent.invoke(b"{}")) == 200
    for connection in held:
        reset(connection)
    assert agent.alive()


def test_who_hangs_up_in_the_middle_leaves_no_line_in_the_log(serve):
    agent = serve(AgentPlatformApp(echo))
    for _ in range(20):
        connection = agent.dial()
        connection.sendall(b"POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{")
        reset(connection)
    assert agent.alive()
    assert status(agent.invoke(b"{}")) == 200
    assert [text for text in agent.log if "Traceback" in text] == []


def test_what_a_chunk_says_is_one_event(serve):
    said = ["a\n\ndata: forged\n\n", "\r\revent: error\rdata: x", "\u2028id: 1\u2029", "b\n\n: comment\n\nretry: 1\n\n", {"k\n\ndata: y": "z"}]

    async def stream(payload):
        for one in said:
            yield one
        raise RuntimeError("late\n\ndata: forged\n\nevent: done")

    agent = serve(AgentPlatformApp(stream))
    answer = agent.invoke(b"{}", "accept: text/event-stream")
    body = answer.split(b"\r\n\r\n", 1)[1].decode()
    lines = [line for line in body.replace("\r\n", "\n").split("\n") if line.startswith(("data:", "event:", "id:", "retry:", ":"))]
    assert [line[:6] for line in lines].count("event:") == 1
    assert [json.loads(line[6:]) for line in lines if line.startswith("data: ")][:5] == said
    assert "\r" not in "".join(lines)


@pytest.mark.parametrize("kind", ["plain", "async", "stream", "exit"])
def test_a_failure_says_its_sentence_and_nothing_of_where_it_was(serve, kind):
    def plain(payload):
        hidden = SECRET
        raise KeyError("missing") if hidden else None

    async def later(payload):
        plain(payload)

    async def stream(payload):
        plain(payload)
        yield 1

    def leave(payload):
        hidden = SECRET
        raise SystemExit(3 if hidden else 0)

    agent = serve(AgentPlatformApp({"plain": plain, "async": later, "stream": stream, "exit": leave}[kind]))
    answer = agent.invoke(b"{}", f"{TOKEN}: {SECRET}")
    assert SECRET.encode() not in answer and b"Traceback" not in answer and b".py" not in answer
    assert not any(SECRET in text for text in agent.log)
    assert agent.alive()


def test_calls_at_once_never_see_each_others_context(serve):
    seen_by_libraries = contextvars.ContextVar("library", default=None)
    together = threading.Barrier(8)

    def who():
        context = get_context()
        return [context.session_id, context.workload_access_token]

    def plain(payload):
        seen_by_libraries.set(payload)
        together.wait(20)
        return [*who(), seen_by_libraries.get()]

    def generator(payload):
        seen_by_libraries.set(payload)
        together.wait(20)
        yield who()
        yield [*who(), seen_by_libraries.get()]

    async def stream(payload):
        import asyncio

        seen_by_libraries.set(payload)
        for _ in range(20):
            await asyncio.sleep(0)
            yield [*who(), seen_by_libraries.get()]

    def one(agent, index):
        name = f"session-{index}"
        answer = agent.invoke(json.dumps(name).encode(), f"x-amzn-bedrock-agentcore-runtime-session-id: {name}", f"{TOKEN}: token-{name}")
        text = answer.decode()
        return name, text

    for handler in (plain, generator, stream):
        agent = serve(AgentPlatformApp(handler))
        with ThreadPoolExecutor(8) as pool:
            for name, text in pool.map(lambda index: one(agent, index), range(40)):
                assert f'"{name}", "token-{name}"' in text or f'"{name}","token-{name}"' in text
                others = {f"session-{other}" for other in range(40)} - {name}
                assert not any(f'"{other}"' in text for other in others)


def frame(opcode, data, *, rsv1=False, claimed=None):
    length = len(data) if claimed is None else claimed
    mask = os.urandom(4)
    head = bytes([0x80 | (0x40 if rsv1 else 0) | opcode, 0xFF]) + length.to_bytes(8, "big") + mask
    return head + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))


def upgraded(agent, *headers):
    connection = agent.dial()
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET /ws HTTP/1.1", "host: a", "upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13", f"sec-websocket-key: {key}", *headers]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(1)
        assert part, head
        head += part
    assert head.startswith(b"HTTP/1.1 101"), head
    return connection, head.lower()


def chat(got):
    app = AgentPlatformApp(echo)

    @app.websocket
    async def talk(websocket, context):
        await websocket.accept()
        while True:
            text = await websocket.receive_text()
            got.append(len(text))
            await websocket.send_text(text[:10])

    return app


def test_a_frame_that_is_too_large_ends_its_connection_alone(serve):
    got = []
    agent = serve(chat(got))
    connection, _ = upgraded(agent)
    connection.sendall(frame(1, b"hello"))
    until(lambda: got == [5])
    connection.sendall(frame(1, b"", claimed=2**62))
    assert b"\x03\xf1" in read_all(connection)
    assert agent.alive()


def test_a_frame_that_unfolds_ends_its_connection_alone(serve):
    got = []
    agent = serve(chat(got))
    connection, head = upgraded(agent, "sec-websocket-extensions: permessage-deflate")
    if b"permessage-deflate" in head:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        bomb = packer.compress(b"a" * 200_000_000) + packer.flush(zlib.Z_SYNC_FLUSH)
        connection.sendall(frame(1, bomb[:-4], rsv1=True))
        assert b"\x03\xf1" in read_all(connection)
    assert got == []
    assert agent.alive()


@pytest.mark.parametrize("raw", [b"\x81\x05hello", b"\xff\xff" + b"\xff" * 12, frame(1, b"\xff\xfe"), frame(9, b"p" * 200), frame(3, b"x")])
def test_what_is_no_frame_ends_its_connection_alone(serve, raw):
    agent = serve(chat([]))
    connection, _ = upgraded(agent)
    connection.sendall(raw)
    read_all(connection)
    assert agent.alive()
