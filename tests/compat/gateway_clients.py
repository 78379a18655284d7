"""Drives clients of models and agents of frameworks through a gateway, each pointed there by its settings alone."""

import asyncio
import json
import sys

import boto3
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from strands import Agent, tool
from strands.models.openai import OpenAIModel


def by_boto3(url, model):
    client = boto3.client("bedrock-runtime", endpoint_url=url)
    user = {"role": "user", "content": [{"text": "What is the weather?"}]}
    schema = {"json": {"type": "object", "properties": {"town": {"type": "string"}}}}
    tools = {"tools": [{"toolSpec": {"name": "weather", "description": "The weather", "inputSchema": schema}}]}
    said = client.converse(modelId=model, messages=[user], toolConfig=tools)
    streamed = client.converse_stream(modelId=model, messages=[user], toolConfig=tools)
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})
    invoked = client.invoke_model(modelId=model, body=body)
    chunks = client.invoke_model_with_response_stream(modelId=model, body=body)
    try:
        client.converse(modelId="none", messages=[user])
        refused = ""
    except client.exceptions.ResourceNotFoundException as error:
        refused = error.response["Error"]["Message"]
    return {
        "whole": said["output"]["message"]["content"],
        "usage": said["usage"]["totalTokens"],
        "streamed": "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in streamed["stream"] if "contentBlockDelta" in e),
        "invoked": json.loads(invoked["body"].read())["content"][0],
        "chunks": [json.loads(e["chunk"]["bytes"])["type"] for e in chunks["body"]],
        "refused": refused,
    }


def weather(town: str) -> str:
    """The weather of a town."""
    return f"{town}: blue sky"


def by_langchain(url, model):
    agent = create_agent(ChatOpenAI(base_url=f"{url}/v1", api_key="none", model=model, max_retries=0), [weather])
    turns = agent.invoke({"messages": [("user", "What is the weather?")]})["messages"]
    pieces = ChatOpenAI(base_url=f"{url}/v1", api_key="none", model=model, max_retries=0).stream("Hi")
    return {"kinds": [turn.type for turn in turns], "last": turns[-1].content, "streamed": "".join(piece.content for piece in pieces)}


async def by_strands(url, model):
    provider = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": "none"}, model_id=model)
    agent = Agent(model=provider, tools=[tool(weather)], callback_handler=None)
    answer = await agent.invoke_async("What is the weather?")
    return {"last": str(answer).strip(), "turns": len(agent.messages)}


def main():
    given = json.load(sys.stdin)
    url, model, what = given["url"], given["model"], given["client"]
    if what == "boto3":
        said = by_boto3(url, model)
    elif what == "langchain":
        said = by_langchain(url, model)
    else:
        said = asyncio.run(by_strands(url, model))
    json.dump(said, sys.stdout)


main()
