# An agent of 220 MB that takes four seconds to start: what imports of a large framework cost, without the framework.
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

time.sleep(4)
held = os.urandom(200 << 20)
warm = []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.say({"status": "Healthy"})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/warm":
            warm.append(time.time())
        self.say({"warm": len(warm), "held": len(held)})

    def say(self, what):
        text = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
