"""Sends a request that botocore signs, as any Python program does: {url, region, method, body} in; status and text out."""

import json
import sys
import urllib.request

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

asked = json.load(sys.stdin)
body = asked["body"].encode()
request = AWSRequest(method=asked["method"], url=asked["url"], data=body)
SigV4Auth(boto3.Session().get_credentials(), "bedrock-agentcore", asked["region"]).add_auth(request)
sent = urllib.request.Request(asked["url"], data=body, headers=dict(request.headers), method=asked["method"])
with urllib.request.urlopen(sent) as answer:
    json.dump({"status": answer.status, "text": answer.read().decode()}, sys.stdout)
