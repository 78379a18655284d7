"""Drives the unmodified boto3 client of Bedrock Runtime, which finds the platform by its environment alone."""

import json
import sys

import boto3
from botocore.exceptions import ClientError

MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
TOOLS = {
    "tools": [
        {
            "toolSpec": {
                "name": "weather",
                "description": "The weather of a town",
                "inputSchema": {"json": {"type": "object", "properties": {"town": {"type": "string"}}}},
            }
        }
    ],
    "toolChoice": {"any": {}},
}
user = {"role": "user", "content": [{"text": "What is the weather?"}]}


def failure(call):
    try:
        call()
    except ClientError as error:
        return {
            "code": error.response["Error"]["Code"],
            "class": type(error).__name__,
            "message": error.response["Error"]["Message"],
        }


def main():
    given = json.load(sys.stdin)
    client = boto3.client("bedrock-runtime")
    first = client.converse(modelId=MODEL, messages=[user], system=[{"text": "Be kind."}], toolConfig=TOOLS)
    message = first["output"]["message"]
    result = {"toolUseId": message["content"][1]["toolUse"]["toolUseId"], "content": [{"json": {"sky": "blue"}}]}
    picture = {"image": {"format": "png", "source": {"bytes": b"not really"}}}
    turns = [user, message, {"role": "user", "content": [{"toolResult": result}, picture]}]
    second = client.converse(modelId=MODEL, messages=turns, toolConfig=TOOLS, inferenceConfig={"maxTokens": 50})
    streamed = client.converse_stream(modelId=MODEL, messages=[user], toolConfig=TOOLS)
    claude = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    openai = {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]}

    def invoke(body):
        return json.loads(client.invoke_model(modelId=MODEL, body=json.dumps(body))["body"].read())

    def stream(body):
        answer = client.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(body))
        return [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]

    said = {
        "first": {key: first[key] for key in ("output", "stopReason", "usage")},
        "second": second["output"]["message"]["content"],
        "events": list(streamed["stream"]),
        "arn": client.converse(modelId=given["arn"], messages=[user])["output"]["message"]["content"],
        "claude": invoke(claude),
        "claudeStream": stream(claude),
        "openai": invoke(openai),
        "openaiStream": stream(openai),
        "nova": failure(lambda: invoke({"inferenceConfig": {}, "messages": []})),
        "guardrail": failure(
            lambda: client.converse(
                modelId=MODEL,
                messages=[user],
                guardrailConfig={"guardrailIdentifier": "abcdefgh", "guardrailVersion": "1"},
            )
        ),
        "dynamodb": failure(lambda: boto3.client("dynamodb").list_tables()),
        "lambda": failure(lambda: boto3.client("lambda").invoke(FunctionName="f")),
        "ecr": failure(lambda: boto3.client("ecr").describe_repositories()),
        "secrets": failure(lambda: boto3.client("secretsmanager").get_secret_value(SecretId="s")),
        "ec2": failure(lambda: boto3.client("ec2").describe_instances()),
        "sns": failure(lambda: boto3.client("sns").list_topics()),
        "models": failure(lambda: boto3.client("bedrock").list_foundation_models()),
        "knowledge": failure(
            lambda: boto3.client("bedrock-agent-runtime").retrieve(
                knowledgeBaseId="ABCDEFGHIJ", retrievalQuery={"text": "boats"}
            )
        ),
    }
    json.dump(said, sys.stdout)


main()
