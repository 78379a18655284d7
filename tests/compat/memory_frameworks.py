"""Strands and LangGraph with the vendor's own memory for each, unmodified; the models are scripts. Prints what was seen as JSON."""

import json
import sys
import time

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph_checkpoint_aws import AgentCoreMemorySaver, AgentCoreMemoryStore
from strands import Agent
from strands.models import Model

region = json.load(sys.stdin)["region"]
control = boto3.client("bedrock-agentcore-control", region_name=region)


def new_memory(name):
    strategy = {"semanticMemoryStrategy": {"name": "facts", "namespaceTemplates": ["/facts/{actorId}"]}}
    memory = control.create_memory(name=name, eventExpiryDuration=30, memoryStrategies=[strategy])["memory"]
    while control.get_memory(memoryId=memory["id"])["memory"]["status"] != "ACTIVE":
        time.sleep(0.2)
    return memory["id"]


def until(look):
    for _ in range(300):
        found = look()
        if found:
            return found
        time.sleep(0.2)
    return None


class Scripted(Model):
    """Says how many messages it was shown, and what of them stands in the vendor's mark for recalled text."""

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        last = "".join(part.get("text", "") for part in messages[-1]["content"])
        recalled = last.split("<user_context>")[-1].split("</user_context>")[0] if "<user_context>" in last else "nothing"
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"Shown {len(messages)}; recalled {recalled.strip()}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def strands_agent(memory_id, session_id):
    config = AgentCoreMemoryConfig(
        memory_id=memory_id,
        session_id=session_id,
        actor_id="jane",
        retrieval_config={"/facts/{actorId}": RetrievalConfig(top_k=3)},
    )
    manager = AgentCoreMemorySessionManager(config, region_name=region)
    return Agent(model=Scripted(), session_manager=manager, agent_id="helper", callback_handler=None)


seen = {}
memory_id = new_memory("strands")
first = strands_agent(memory_id, "s1")
seen["strands_first"] = str(first("I am allergic to hazelnuts.")).strip()
data = boto3.client("bedrock-agentcore", region_name=region)
until(
    lambda: data.retrieve_memory_records(
        memoryId=memory_id, namespace="/facts/jane", searchCriteria={"searchQuery": "allergies"}
    )["memoryRecordSummaries"]
)
seen["strands_same_session"] = len(strands_agent(memory_id, "s1").messages)
seen["strands_recalls"] = str(strands_agent(memory_id, "s2")("Which allergies do I have?")).strip()
records = data.list_memory_records(memoryId=memory_id, namespace="/facts/jane")["memoryRecordSummaries"]
seen["strands_records"] = [record["content"]["text"] for record in records]

memory_id = new_memory("langgraph")
store = AgentCoreMemoryStore(memory_id=memory_id, region_name=region)


def answer(state: MessagesState):
    return {"messages": [AIMessage(f"shown {len(state['messages'])}")]}


def graph():
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=AgentCoreMemorySaver(memory_id, region_name=region))


def config(thread):
    return {"configurable": {"thread_id": thread, "actor_id": "jane"}}


graph().invoke({"messages": [HumanMessage("one")]}, config("t1"))
again = graph().invoke({"messages": [HumanMessage("two")]}, config("t1"))
seen["langgraph"] = [message.content for message in again["messages"]]
seen["langgraph_history"] = len(list(graph().get_state_history(config("t1"))))
seen["langgraph_other"] = graph().get_state(config("t2")).values
store.put(("jane", "t1"), "m1", {"message": HumanMessage("I own two dogs.")})
found = until(lambda: store.search(("facts", "jane"), query="dog"))
seen["langgraph_store"] = [item.value["content"] for item in found or []]
seen["langgraph_item"] = store.get(("facts", "jane"), found[0].key).value["content"] if found else None
print(json.dumps(seen))
