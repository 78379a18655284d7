"""`python3 -m host`: serves on port 8080 until it is told to end."""

import asyncio
import os
import signal

from tornado.httpserver import HTTPServer

from . import processes
from .server import MAX_BODY, House, application

PORT = int(os.environ.get("AGENTPLATFORM_PORT", "8080"))


async def main():
    os.makedirs(processes.WORKSPACE, exist_ok=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    house = House()
    server = HTTPServer(application(house), max_buffer_size=MAX_BODY, no_keep_alive=False)
    server.listen(PORT)
    tasks = [asyncio.ensure_future(house.watch()), asyncio.ensure_future(house.slot("python", None).warm())]
    await over.wait()
    for task in tasks:
        task.cancel()
    processes.kill_everything()


asyncio.run(main())
