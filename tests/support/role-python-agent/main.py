"""An agent for tests that calls the platform with boto3, which it gives no configuration at all."""

import json
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3


def event(act):
    answer = boto3.client("bedrock-agentcore").create_event(
        memoryId=act["memoryId"],
        actorId="ada",
        sessionId="s",
        eventTimestamp=datetime.now(timezone.utc),
        payload=[{"conversational": {"role": "USER", "content": {"text": "hello"}}}],
    )
    return {"eventId": answer["event"]["eventId"]}


def whoami(act):
    return {"arn": boto3.client("sts").get_caller_identity()["Arn"]}


def object(act):
    return {"text": boto3.client("s3").get_object(Bucket=act["bucket"], Key=act["key"])["Body"].read().decode()}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"status": "Healthy"})

    def do_POST(self):
        act = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            self.answer({"event": event, "whoami": whoami, "object": object}[act["do"]](act))
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
