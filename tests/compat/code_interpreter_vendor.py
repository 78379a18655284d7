"""Drives the vendor's own Python client, unmodified; reads nothing and prints what it saw as JSON."""

import json
import os
import sys

from bedrock_agentcore.tools.code_interpreter_client import CodeInterpreter, code_session

seen = {}
with code_session(os.environ["AWS_REGION"]) as client:
    def text(answer):
        # As its users do it: from the first event.
        for event in answer["stream"]:
            return "".join(item.get("text", "") for item in event["result"]["content"])

    seen["code"] = text(client.execute_code("import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.3)"))
    seen["state"] = text(client.invoke("executeCode", {"language": "python", "code": "i"}))
    seen["command"] = text(client.execute_command("echo shell"))
    client.upload_file("data/a.csv", "x,y\n1,2")
    client.upload_files([{"path": "b.bin", "content": b"\x00\xff"}])
    seen["downloaded"] = client.download_file("data/a.csv")
    both = client.download_files(["data/a.csv", "b.bin"])
    seen["both"] = [both["data/a.csv"], list(both["b.bin"])]
    client.clear_context()
    seen["cleared"] = "NameError" in text(client.execute_code("i"))
    last = lambda answer: [event["result"] for event in answer["stream"]][-1]
    seen["files"] = [item["name"] for item in last(client.invoke("listFiles", {"directoryPath": "."}))["content"]]
    seen["removed"] = last(client.invoke("removeFiles", {"paths": ["b.bin"]}))["isError"]
    task = last(client.invoke("startCommandExecution", {"command": "sleep 100"}))["structuredContent"]["taskId"]
    seen["task"] = last(client.invoke("getTask", {"taskId": task}))["structuredContent"]["taskStatus"]
    seen["stopped"] = last(client.invoke("stopTask", {"taskId": task}))["structuredContent"]["taskStatus"]
    seen["listed"] = client.get_session()["status"]
    mine = client.session_id
    seen["sessions"] = [item["sessionId"] for item in client.list_sessions(status="READY")["items"]].count(mine)

interpreter = CodeInterpreter(os.environ["AWS_REGION"])
made = interpreter.create_code_interpreter(name="vendor_made", execution_role_arn=os.environ["TEST_ROLE_ARN"], network_configuration={"networkMode": "SANDBOX"})
seen["made"] = made["status"]
seen["interpreters"] = [one["name"] for one in interpreter.list_code_interpreters(interpreter_type="CUSTOM")["codeInterpreterSummaries"]]
seen["known"] = interpreter.get_code_interpreter(made["codeInterpreterId"])["name"]
seen["deleted"] = interpreter.delete_code_interpreter(made["codeInterpreterId"])["status"]
json.dump(seen, sys.stdout)
