"""Calls operations with unmodified boto3, one after the other; reads them as JSON and prints their answers as JSON.

In: [{service, operation, input}], bytes and dates as {"$bytes": base64} and {"$date": milliseconds}.
Out: [{"output": …} or {"error": {"code", "message", "fields"}}], in that order; a stream as what it holds.
"""

import json
import sys

import boto3
from boto3_exchange import snake, tag, untag
from botocore.config import Config
from botocore.exceptions import ClientError

config = Config(retries={"max_attempts": 1}, read_timeout=180)
clients = {}


def call(service, operation, input):
    client = clients.setdefault(service, boto3.client(service, config=config))
    try:
        output = getattr(client, snake(operation, client))(**untag(input))
    except ClientError as error:
        fields = [field["name"] for field in error.response.get("fieldList", [])]
        return {"error": {**{key.lower(): value for key, value in error.response["Error"].items()}, "fields": fields}}
    output.pop("ResponseMetadata", None)
    return {"output": tag(output)}


json.dump([call(**one) for one in json.load(sys.stdin)], sys.stdout)
