"""An agent in plain Python: an HTTP server with POST /invocations and GET /ping on port 8080."""

import json
import os
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The memory of one session: every session has a process, a disk and a network of its own.
calls = 0


def invoke(payload):
    """Yields the answer to one call, piece by piece."""
    global calls
    calls += 1
    yield "Hello! "
    yield f"You said {json.dumps(payload.get('prompt'))}. "
    yield f"This is call {calls} of this session."


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path != "/ping":
            return self.answer(404, {"error": "not found"})
        self.answer(200, {"status": "Healthy", "time_of_last_update": int(time.time())})

    def do_POST(self):
        if self.path != "/invocations":
            return self.answer(404, {"error": "not found"})
        try:
            payload = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError as error:
            return self.answer(400, {"error": f"the payload is not valid JSON: {error}"})
        if not isinstance(payload, dict):
            return self.answer(400, {"error": "the payload must be a JSON object"})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        # In chunks, so that an answer that is cut is known as such.
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in invoke(payload):
                self.chunk(f"data: {json.dumps(piece)}\n\n")
        except Exception as error:
            traceback.print_exc()
            message = str(error) or type(error).__name__
            self.chunk(f"event: error\ndata: {json.dumps({'error': message})}\n\n")
        self.chunk("")

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """The platform keeps its own record of calls."""


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8080"))
    print(f"listening on port {port}", flush=True)
    ThreadingHTTPServer(("0.0.0.0", port), Agent).serve_forever()
