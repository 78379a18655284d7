"""Drives the runtime operations with unmodified boto3; reads its task as JSON and prints what it saw as JSON."""

import json
import sys
import time
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

task = json.load(sys.stdin)
config = Config(retries={"max_attempts": 1})
control = boto3.client("bedrock-agentcore-control", config=config)
data = boto3.client("bedrock-agentcore", config=config)
seen = {}


def error_of(call):
    try:
        call()
    except ClientError as error:
        return {"code": error.response["Error"]["Code"], "class": type(error).__name__, "message": error.response["Error"]["Message"]}
    return None


definition = dict(
    roleArn=task["roleArn"],
    networkConfiguration={"networkMode": "PUBLIC"},
    agentRuntimeArtifact={"codeConfiguration": {"code": {"s3": task["place"]}, "runtime": "NODE_22", "entryPoint": ["index.mjs"]}},
)
created = control.create_agent_runtime(agentRuntimeName="from_boto3", clientToken=str(uuid.uuid4()), **definition)
runtime_id, arn = created["agentRuntimeId"], created["agentRuntimeArn"]
for _ in range(600):
    runtime = control.get_agent_runtime(agentRuntimeId=runtime_id)
    if runtime["status"] == "READY":
        break
    time.sleep(0.1)
seen["status"] = runtime["status"]
seen["createdAt"] = runtime["createdAt"].isoformat()


def invoke(session, payload):
    answer = data.invoke_agent_runtime(
        agentRuntimeArn=arn, runtimeSessionId=session, contentType="application/json", payload=json.dumps(payload).encode()
    )
    return answer["response"].read().decode()


one, two = str(uuid.uuid4()), str(uuid.uuid4())
seen["counts"] = [json.loads(invoke(s, {"do": "count"}))["count"] for s in (one, one, two)]
seen["large"] = len(invoke(one, {"do": "echo", "filler": "x" * 2_000_000}))
typeless = data.invoke_agent_runtime(agentRuntimeArn=arn, runtimeSessionId=one, payload=b'{"do":"headers"}')
seen["typeSeen"] = json.load(typeless["response"]).get("content-type")
answer = data.invoke_agent_runtime(agentRuntimeArn=arn, runtimeSessionId=one, payload=b'{"do":"stream","parts":3}')
seen["stream"] = [line.decode() for line in answer["response"].iter_lines() if line]
seen["contentType"] = answer["contentType"]
seen["stopped"] = data.stop_runtime_session(agentRuntimeArn=arn, runtimeSessionId=one)["runtimeSessionId"] == one
seen["fresh"] = json.loads(invoke(one, {"do": "count"}))["count"]
seen["agentFails"] = error_of(lambda: invoke(one, {"do": "fail"}))
seen["noRuntime"] = error_of(lambda: control.get_agent_runtime(agentRuntimeId="nothing-0123456789"))
updated = control.update_agent_runtime(agentRuntimeId=runtime_id, clientToken=str(uuid.uuid4()), **definition)
seen["updated"] = updated["agentRuntimeVersion"]
seen["versions"] = [v["agentRuntimeVersion"] for v in control.list_agent_runtime_versions(agentRuntimeId=runtime_id)["agentRuntimes"]]
control.create_agent_runtime_endpoint(agentRuntimeId=runtime_id, name="pinned", agentRuntimeVersion="1")
seen["endpoint"] = control.get_agent_runtime_endpoint(agentRuntimeId=runtime_id, endpointName="pinned")["liveVersion"]
seen["endpoints"] = [e["name"] for e in control.list_agent_runtime_endpoints(agentRuntimeId=runtime_id)["runtimeEndpoints"]]
control.update_agent_runtime_endpoint(agentRuntimeId=runtime_id, endpointName="pinned", description="moved")
control.delete_agent_runtime_endpoint(agentRuntimeId=runtime_id, endpointName="pinned")
seen["paginated"] = sorted(r["agentRuntimeName"] for page in control.get_paginator("list_agent_runtimes").paginate(PaginationConfig={"PageSize": 1}) for r in page["agentRuntimes"])
control.tag_resource(resourceArn=arn, tags={"team": "red"})
seen["tags"] = control.list_tags_for_resource(resourceArn=arn)["tags"]
control.untag_resource(resourceArn=arn, tagKeys=["team"])
seen["deleted"] = control.delete_agent_runtime(agentRuntimeId=runtime_id)["status"]
json.dump(seen, sys.stdout)
