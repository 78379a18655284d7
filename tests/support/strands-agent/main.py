"""AWS's own default agent for tests: Strands with its default model, of which nothing is said here."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from strands import Agent, tool


@tool
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Berlin": 3_700_000}[city]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"status": "Healthy"})

    def do_POST(self):
        act = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            agent = Agent(tools=[population], callback_handler=None)
            self.answer({"text": str(agent(act["prompt"])), "turns": len(agent.messages)})
        except Exception as error:
            self.answer({"error": type(error).__name__, "message": str(error)})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
