"""Drives unmodified boto3 and botocore signers against a server.

Reads {"endpoint", "region", "key", "secret", "role"} from standard input and prints what each call gave back.
"""

import json
import sys
import urllib.error
import urllib.request

import boto3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

given = json.load(sys.stdin)
common = {"endpoint_url": given["endpoint"], "region_name": given["region"]}
once = Config(retries={"total_max_attempts": 1})


def client(service, key, secret, token=None):
    return boto3.client(
        service,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=once,
        **common,
    )


def invoke(runtime, payload, **extra):
    answer = runtime.invoke_agent_runtime(
        agentRuntimeArn="arn:aws:bedrock-agentcore:%s:111122223333:runtime/a b-é" % given["region"],
        payload=payload,
        **{"runtimeSessionId": "s" * 40, **extra},
    )
    return json.loads(answer["response"].read())


result = {}
runtime = client("bedrock-agentcore", given["key"], given["secret"])
result["small"] = invoke(runtime, b'{"prompt":"hi"}', qualifier="DEFAULT", baggage="a=b")
result["large"] = invoke(runtime, b"x" * 3_000_000)
try:
    invoke(client("bedrock-agentcore", given["key"], given["secret"] + "x"), b"{}")
except ClientError as error:
    result["wrong"] = error.response["Error"]["Code"]
try:
    invoke(runtime, b"{}", runtimeSessionId="é" * 40)
except ClientError as error:
    result["not_ascii"] = error.response["Error"]

sts = client("sts", given["key"], given["secret"])
identity = sts.get_caller_identity()
result["identity"] = {name: identity[name] for name in ("Account", "Arn", "UserId")}
session = sts.assume_role(
    RoleArn=given["role"], RoleSessionName="boto", DurationSeconds=900, Tags=[{"Key": "team", "Value": "rød"}]
)
got = session["Credentials"]
temporary = (got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"])
result["session"] = client("sts", *temporary).get_caller_identity()["Arn"]
result["as_role"] = invoke(client("bedrock-agentcore", *temporary), b"{}")
for name, call in {
    "denied": lambda: sts.assume_role(RoleArn=given["role"] + "x", RoleSessionName="boto"),
    "refused": lambda: sts.assume_role(RoleArn=given["role"], RoleSessionName="boto", SerialNumber="arn:aws:iam::123456789012:mfa/me", TokenCode="123456"),
    "unknown": lambda: sts.get_session_token(),
    "stranger": lambda: client("sts", "AKIANOBODY", "x").get_caller_identity(),
}.items():
    try:
        call()
        result[name] = "no error"
    except ClientError as error:
        result[name] = error.response["Error"]["Code"]

request = AWSRequest("GET", given["endpoint"] + "/browser-streams/b-1/sessions/s/live-view?x=a%20b&y=%C3%A9")
SigV4QueryAuth(Credentials(*temporary), "bedrock-agentcore", given["region"], expires=60).add_auth(request)
with urllib.request.urlopen(request.url) as answer:
    result["presigned"] = json.load(answer)
try:
    urllib.request.urlopen(request.url.replace("y=%C3%A9", "y=%C3%A8"))
except urllib.error.HTTPError as error:
    result["presigned_altered"] = error.code

s3 = boto3.client(
    "s3",
    aws_access_key_id=given["key"],
    aws_secret_access_key=given["secret"],
    config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    **common,
)
s3.put_object(Bucket="bucket", Key="a b/ü+(1).txt", Body=b"hello")
url = s3.generate_presigned_url("put_object", Params={"Bucket": "bucket", "Key": "k 1"}, ExpiresIn=600)
with urllib.request.urlopen(urllib.request.Request(url, data=b"anything", method="PUT")) as answer:
    result["s3_presigned"] = answer.status

print(json.dumps(result))
