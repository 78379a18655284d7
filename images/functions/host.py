# Runs the handler of one function for one event after the other. The platform starts it as the command of the function's sandbox, and asks it
# by HTTP: GET /ping, and POST /events with the event as its body. What it answers is the function's word. The handler runs in the main thread.
import base64
import importlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_ANSWER_BYTES = 6_291_556
HANDLER = os.environ.get("_HANDLER", "")
PORT = int(os.environ.get("AGENTPLATFORM_PORT", "8080"))

loaded = threading.Event()
events = queue.Queue()


class Failure(Exception):
    """What is wrong with the function itself, under the name that the original has for it."""

    def __init__(self, kind, message, stack=()):
        super().__init__(message)
        self.kind = kind
        self.stack = list(stack)


class ClientContext:
    def __init__(self, given):
        self.custom = given.get("custom")
        self.env = given.get("env")
        self.client = given.get("client")


class Identity:
    cognito_identity_id = None
    cognito_identity_pool_id = None


class Context:
    def __init__(self, headers):
        given = headers.get("x-function-client-context")
        self.aws_request_id = headers.get("x-function-request-id")
        self.invoked_function_arn = headers.get("x-function-arn")
        self.function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.function_version = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.client_context = ClientContext(json.loads(base64.b64decode(given))) if given else None
        self.identity = Identity()
        self._deadline = time.monotonic() + int(headers.get("x-function-timeout-ms")) / 1000

    def get_remaining_time_in_millis(self):
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def load():
    path, _, name = HANDLER.rpartition(".")
    module = path.replace("/", ".")
    sys.path.insert(0, os.getcwd())
    try:
        code = importlib.import_module(module)
    except ImportError as error:
        traceback.print_exc()
        raise Failure("Runtime.ImportModuleError", f"Unable to import module '{path}': {error}") from error
    except SyntaxError as error:
        traceback.print_exc()
        raise Failure("Runtime.UserCodeSyntaxError", f"Syntax error in module '{path}': {error}") from error
    except Exception as error:
        traceback.print_exc()
        raise Failure(type(error).__name__, str(error), traceback.format_tb(error.__traceback__)) from error
    handler = getattr(code, name, None)
    if callable(handler):
        return handler
    raise Failure("Runtime.HandlerNotFound", f"Handler '{name}' missing on module '{path}'")


def text_of(value):
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Failure("Runtime.MarshalError", f"Unable to marshal response: {error}") from error
    if len(text) <= MAX_ANSWER_BYTES:
        return text
    raise Failure(
        "Function.ResponseSizeTooLarge",
        f"Response payload size exceeded maximum allowed payload size ({MAX_ANSWER_BYTES} bytes).",
    )


def failure_of(error, request_id):
    known = isinstance(error, Failure)
    # Without the frames of this file.
    stack = error.stack if known else traceback.format_tb(error.__traceback__)[1:]
    return json.dumps(
        {
            "errorMessage": str(error),
            "errorType": error.kind if known else type(error).__name__,
            "requestId": request_id,
            "stackTrace": stack,
        }
    ).encode()


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        loaded.wait()
        self._answer(b'{"status":"Healthy"}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            event = json.loads(body or b"{}")
        except ValueError:
            self.send_response(400)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        done = queue.Queue(1)
        events.put((event, self.headers, done))
        text, failed = done.get()
        self._answer(text, failed)

    def _answer(self, text, failed=False):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        if failed:
            self.send_header("x-function-error", "Unhandled")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def handle(handler, problem, event, headers):
    request_id = headers.get("x-function-request-id")
    print(f"START RequestId: {request_id} Version: {os.environ.get('AWS_LAMBDA_FUNCTION_VERSION')}", flush=True)
    try:
        if problem:
            raise problem
        return text_of(handler(event, Context(headers))), False
    except Exception as error:
        traceback.print_exc()
        return failure_of(error, request_id), True
    finally:
        sys.stdout.flush()
        print(f"END RequestId: {request_id}", flush=True)


def main():
    server = ThreadingHTTPServer(("0.0.0.0", PORT), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler, problem = None, None
    try:
        handler = load()
    except Failure as error:
        problem = error
    loaded.set()
    while True:
        event, headers, done = events.get()
        done.put(handle(handler, problem, event, headers))


main()
