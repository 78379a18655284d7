"""An agent on the server of the standard library, which reads as many bytes as Content-Length says."""

import hashlib
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({"status": "Healthy"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(
            {
                "declared": self.headers.get("Content-Length"),
                "coding": self.headers.get("Transfer-Encoding"),
                "sha256": hashlib.sha256(body).hexdigest(),
            }
        )

    def answer(self, content):
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("0.0.0.0", int(os.environ.get("PORT", "8080"))), Agent).serve_forever()
