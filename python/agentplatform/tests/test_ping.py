import asyncio
import sys
import threading
import time

import pytest
from conftest import Serve

from agentplatform import AgentPlatformApp, PingStatus


def test_healthy_with_the_time_of_the_last_change(serve: Serve) -> None:
    now = 1000.7
    app = AgentPlatformApp(lambda payload: payload, now=lambda: now)
    server = serve(app)
    assert server.ping() == {"status": "Healthy", "time_of_last_update": 1000}
    now = 2000.2
    assert server.ping()["time_of_last_update"] == 1000
    app.force_ping_status("HealthyBusy")
    assert server.ping() == {"status": "HealthyBusy", "time_of_last_update": 2000}
    app.clear_forced_ping_status()
    assert server.ping()["status"] == "Healthy"
    with pytest.raises(ValueError, match="Sick"):
        app.force_ping_status("Sick")


def test_tasks_make_it_busy(serve: Serve) -> None:
    app = AgentPlatformApp(lambda payload: payload)
    server = serve(app)
    task = app.add_async_task("index", {"file": "a"})
    other = app.add_async_task("other")
    assert task != other
    assert server.ping()["status"] == "HealthyBusy"
    assert [(t.name, t.metadata) for t in app.async_tasks()] == [("index", {"file": "a"}), ("other", {})]
    assert app.complete_async_task(task) is True
    assert app.complete_async_task(task) is False
    assert server.ping()["status"] == "HealthyBusy"
    app.complete_async_task(other)
    assert server.ping()["status"] == "Healthy"


def test_decorated_tasks(serve: Serve) -> None:
    app = AgentPlatformApp(lambda payload: payload)
    server = serve(app)

    @app.async_task
    async def work(fail: bool) -> str:
        assert await asyncio.to_thread(server.ping) == {"status": "HealthyBusy", "time_of_last_update": int(time.time())}
        if fail:
            raise ValueError("no")
        return "done"

    assert asyncio.run(work(False)) == "done"
    with pytest.raises(ValueError, match="no"):
        asyncio.run(work(True))
    assert server.ping()["status"] == "Healthy"
    with pytest.raises(ValueError, match="async def"):
        app.async_task(lambda: 1)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("answer", [PingStatus.HEALTHY_BUSY, "HealthyBusy"])
def test_own_handler(serve: Serve, answer) -> None:
    app = AgentPlatformApp(lambda payload: payload)
    app.ping(lambda: answer)
    server = serve(app)
    assert server.ping()["status"] == "HealthyBusy"
    app.force_ping_status(PingStatus.HEALTHY)
    assert server.ping()["status"] == "Healthy"


def test_handlers_that_fail_or_hang_do_not_fail_the_ping(serve: Serve) -> None:
    app = AgentPlatformApp(lambda payload: payload)
    server = serve(app)
    app.ping(lambda: "Sick")
    assert server.ping()["status"] == "Healthy"
    app.add_async_task("x")
    assert server.ping()["status"] == "HealthyBusy"
    release = threading.Event()
    asked = []
    app.ping(lambda: asked.append(1) or release.wait(30) and "Healthy")
    before = time.monotonic()
    assert server.ping()["status"] == "HealthyBusy"
    assert server.ping()["status"] == "HealthyBusy"
    assert time.monotonic() - before < 8
    assert len(asked) == 1
    release.set()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_handler_that_exits_does_not_end_the_server(serve: Serve, kind: str) -> None:
    async def asynchronous():
        sys.exit(2)

    app = AgentPlatformApp(lambda payload: payload)
    app.ping(asynchronous if kind == "async" else lambda: sys.exit(2))
    server = serve(app)
    assert [server.ping()["status"] for _ in range(2)] == ["Healthy", "Healthy"]


@pytest.mark.parametrize("kind", ["sync", "async", "generator"])
def test_an_entrypoint_that_blocks_does_not_hold_the_ping_up(serve: Serve, kind: str) -> None:
    inside, release = threading.Event(), threading.Event()

    def block(payload):
        inside.set()
        release.wait(20)

    async def block_async(payload):
        block(payload)

    async def block_generator(payload):
        yield 1
        block(payload)

    app = AgentPlatformApp({"sync": block, "async": block_async, "generator": block_generator}[kind])
    server = serve(app)
    calling = threading.Thread(target=server.invoke)
    calling.start()
    assert inside.wait(5)
    assert server.ping()["status"] == "Healthy"
    release.set()
    calling.join(10)
