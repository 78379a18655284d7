"""Drives the unmodified boto3 clients without a network.

Reads {"cases": [{service, operation, input, response: {status, headers, body}}]} from standard input. Each case is one
call of the client: the request is caught right before it would be sent, and the given response is what the client
gets. Prints, per case, the request as it would go out and what the client made of the response. Bytes, dates and
floats that JSON lacks travel as {"$bytes": base64}, {"$date": milliseconds}.
"""

import base64
import datetime
import io
import json
import sys

import boto3
from botocore.awsrequest import AWSResponse
from botocore.eventstream import EventStream
from botocore.exceptions import ClientError, EventStreamError
from botocore.response import StreamingBody


def untag(value):
    if isinstance(value, dict):
        if set(value) == {"$bytes"}:
            return base64.b64decode(value["$bytes"])
        if set(value) == {"$date"}:
            return datetime.datetime.fromtimestamp(value["$date"] / 1000, datetime.timezone.utc)
        return {key: untag(item) for key, item in value.items()}
    return [untag(item) for item in value] if isinstance(value, list) else value


def tag(value):
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, StreamingBody):
        return tag(value.read())
    if isinstance(value, EventStream):
        return [tag(event) for event in value]
    if isinstance(value, datetime.datetime):
        return {"$date": round(value.timestamp() * 1000)}
    if isinstance(value, dict):
        return {key: tag(item) for key, item in value.items()}
    return [tag(item) for item in value] if isinstance(value, list) else value


class Raw(io.BytesIO):
    """What the client takes for the socket's file."""

    def stream(self, **_):
        while part := self.read(7):
            yield part


def snake(operation, client):
    return next(method for method, name in client.meta.method_to_api_mapping.items() if name == operation)


def main():
    clients = {}
    current = {}

    def intercept(request, **_):
        body = request.body
        if hasattr(body, "read"):
            body = body.read()
        if isinstance(body, str):
            body = body.encode()
        headers = {key: value.decode() if isinstance(value, bytes) else value for key, value in request.headers.items()}
        sent = {"method": request.method, "url": request.url, "headers": headers}
        current["request"] = {**sent, "body": base64.b64encode(body or b"").decode()}
        answer = current["response"]
        return AWSResponse(request.url, answer["status"], answer["headers"], Raw(base64.b64decode(answer["body"])))

    def client_for(service):
        if service not in clients:
            client = boto3.client(
                service,
                region_name="us-east-1",
                endpoint_url="http://loopback.invalid",
                aws_access_key_id="AKIDEXAMPLE",
                aws_secret_access_key="not-a-secret",
                config=boto3.session.Config(retries={"total_max_attempts": 1}),
            )
            client.meta.events.register("before-send", intercept)
            clients[service] = client
        return clients[service]

    results = []
    for case in json.load(sys.stdin)["cases"]:
        client = client_for(case["service"])
        current.clear()
        current["response"] = case["response"]
        result = {}
        try:
            output = getattr(client, snake(case["operation"], client))(**untag(case["input"]))
            output.pop("ResponseMetadata", None)
            result["output"] = tag(output)
        except (ClientError, EventStreamError) as error:
            response = {key: tag(value) for key, value in error.response.items() if key != "ResponseMetadata"}
            result["error"] = {"class": type(error).__name__, "response": response}
        result["request"] = current.get("request")
        results.append(result)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
