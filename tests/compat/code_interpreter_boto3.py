"""Drives every code-interpreter operation with unmodified boto3; reads its task as JSON and prints what it saw as JSON."""

import json
import sys
import time
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

task = json.load(sys.stdin)
config = Config(retries={"max_attempts": 1}, read_timeout=300)
control = boto3.client("bedrock-agentcore-control", config=config)
data = boto3.client("bedrock-agentcore", config=config)
BUILT_IN = "aws.codeinterpreter.v1"
seen = {}


def error_of(call):
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


made = control.create_code_interpreter(
    name="from_boto3",
    description="of a test",
    executionRoleArn=task["roleArn"],
    networkConfiguration={"networkMode": "SANDBOX"},
    clientToken=str(uuid.uuid4()),
    tags={"team": "red"},
)
own = made["codeInterpreterId"]
seen["status"] = made["status"]
got = control.get_code_interpreter(codeInterpreterId=own)
seen["got"] = {key: got[key] for key in ("name", "description", "executionRoleArn", "networkConfiguration", "status")}
seen["arn"] = got["codeInterpreterArn"] == made["codeInterpreterArn"]
seen["tags"] = control.list_tags_for_resource(resourceArn=made["codeInterpreterArn"])["tags"]
seen["listed"] = {
    kind or "ALL": [s["name"] for s in control.list_code_interpreters(**({"type": kind} if kind else {}))["codeInterpreterSummaries"]]
    for kind in ("", "SYSTEM", "CUSTOM")
}
pages = control.get_paginator("list_code_interpreters").paginate(PaginationConfig={"PageSize": 1})
seen["pages"] = [[s["name"] for s in page["codeInterpreterSummaries"]] for page in pages]
seen["twice"] = error_of(lambda: control.create_code_interpreter(name="from_boto3", networkConfiguration={"networkMode": "SANDBOX"}))
seen["vpc"] = error_of(
    lambda: control.create_code_interpreter(
        name="in_vpc",
        networkConfiguration={"networkMode": "VPC", "vpcConfig": {"subnets": ["subnet-0123456789abcdef0"], "securityGroups": ["sg-0123456789abcdef0"]}},
    )
)
seen["keepsBuiltIn"] = error_of(lambda: control.delete_code_interpreter(codeInterpreterId=BUILT_IN))

session = data.start_code_interpreter_session(codeInterpreterIdentifier=own, name="first", sessionTimeoutSeconds=600)["sessionId"]
about = data.get_code_interpreter_session(codeInterpreterIdentifier=own, sessionId=session)
seen["session"] = {key: about[key] for key in ("name", "status", "sessionTimeoutSeconds", "codeInterpreterIdentifier")}
seen["session"]["codeInterpreterIdentifier"] = about["codeInterpreterIdentifier"] == own


def invoke(name, **arguments):
    answer = data.invoke_code_interpreter(codeInterpreterIdentifier=own, sessionId=session, name=name, arguments=arguments)
    assert answer["sessionId"] == session
    return [event["result"] for event in answer["stream"]][-1]


code = invoke("executeCode", language="python", code="print('hi'); 6 * 7")
seen["code"] = {"content": code["content"], "stdout": code["structuredContent"]["stdout"], "isError": code["isError"]}
seen["typescript"] = invoke("executeCode", language="typescript", code="const n: number = 4; n")["content"][0]["text"]
seen["command"] = invoke("executeCommand", command="echo out; exit 2")["structuredContent"]["exitCode"]
seen["wrote"] = invoke("writeFiles", content=[{"path": "a.txt", "text": "text"}, {"path": "b.bin", "blob": b"\x00\xff"}])["isError"]
read = invoke("readFiles", paths=["a.txt", "b.bin"])["content"]
seen["read"] = [read[0]["resource"]["text"], list(read[1]["resource"]["blob"])]
seen["files"] = [item["name"] for item in invoke("listFiles", directoryPath=".")["content"]]
seen["removed"] = invoke("removeFiles", paths=["a.txt"])["isError"]
task_id = invoke("startCommandExecution", command="echo background; sleep 0.2")["structuredContent"]["taskId"]
for _ in range(100):
    state = invoke("getTask", taskId=task_id)["structuredContent"]
    if state["taskStatus"] not in ("submitted", "working"):
        break
    time.sleep(0.05)
seen["task"] = {key: state[key] for key in ("taskStatus", "stdout", "exitCode")}
long_task = invoke("startCommandExecution", command="sleep 100")["structuredContent"]["taskId"]
seen["stoppedTask"] = invoke("stopTask", taskId=long_task)["structuredContent"]["taskStatus"]
seen["badLanguage"] = error_of(lambda: invoke("executeCode", language="cobol", code="1"))
seen["noArguments"] = error_of(lambda: invoke("executeCode"))

sessions = lambda **more: [s["sessionId"] == session for s in data.list_code_interpreter_sessions(codeInterpreterIdentifier=own, **more)["items"]]
seen["sessions"] = [sessions(status="READY"), sessions(status="TERMINATED")]
data.stop_code_interpreter_session(codeInterpreterIdentifier=own, sessionId=session)
seen["afterStop"] = [sessions(status="READY"), sessions(status="TERMINATED")]
seen["ended"] = error_of(lambda: invoke("executeCode", language="python", code="1"))
seen["unknownSession"] = error_of(lambda: data.stop_code_interpreter_session(codeInterpreterIdentifier=own, sessionId="nobody"))
alone = data.invoke_code_interpreter(codeInterpreterIdentifier=BUILT_IN, name="executeCode", arguments={"language": "python", "code": "7"})
seen["withoutSession"] = [event["result"] for event in alone["stream"]][-1]["content"][0]["text"]
data.stop_code_interpreter_session(codeInterpreterIdentifier=BUILT_IN, sessionId=alone["sessionId"])
seen["deleted"] = control.delete_code_interpreter(codeInterpreterId=own)["status"]
seen["gone"] = error_of(lambda: control.get_code_interpreter(codeInterpreterId=own))
json.dump(seen, sys.stdout)
