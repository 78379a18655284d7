"""An agent for tests of traces: it tells the headers that it got, and asks a model of the platform as a part of the trace that it is in."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3


def converse(headers):
    client = boto3.client("bedrock-runtime")

    def add(params, **_):
        params["headers"].update(headers)

    client.meta.events.register("before-call.bedrock-runtime.Converse", add)
    answer = client.converse(modelId="llama3.2", messages=[{"role": "user", "content": [{"text": "Hi"}]}])
    return answer["output"]["message"]["content"][0]["text"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"status": "Healthy"})

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self.answer({"headers": headers, "text": converse({"traceparent": headers["traceparent"]})})
        except Exception as error:
            self.answer({"headers": headers, "text": f"{type(error).__name__}: {error}"})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("0.0.0.0", int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
