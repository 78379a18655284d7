"""A LangGraph graph keeps its checkpoints in a memory and goes on from any of them."""

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agentplatform.memory.langgraph import MemorySaver

from remembering import client, memory_id, needs_platform  # noqa: F401

pytestmark = needs_platform


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def ask(state: State) -> State:
    return {"said": [f"answer {len(state['said'])}"]}


def confirm(state: State) -> State:
    return {"said": [f"confirmed {interrupt('sure?')}"]}


def graph_of(client, memory_id, *, confirming=False):  # noqa: F811
    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    if confirming:
        graph.add_node("confirm", confirm)
        graph.add_edge("ask", "confirm")
        graph.add_edge("confirm", END)
    else:
        graph.add_edge("ask", END)
    return graph.compile(checkpointer=MemorySaver(memory_id, client=client))


def thread(name, **more):
    return {"configurable": {"thread_id": name, "actor_id": "gil", **more}}


def test_a_thread_goes_on_in_a_graph_made_anew(client, memory_id):  # noqa: F811
    graph_of(client, memory_id).invoke({"said": ["one"]}, thread("t1"))
    second = graph_of(client, memory_id)
    assert second.invoke({"said": ["two"]}, thread("t1"))["said"] == ["one", "answer 1", "two", "answer 3"]
    assert second.invoke({"said": ["one"]}, thread("t2"))["said"] == ["one", "answer 1"]
    assert second.get_state(thread("t1", actor_id="other")).values == {}


def test_history_goes_back_and_forks(client, memory_id):  # noqa: F811
    graph = graph_of(client, memory_id)
    graph.invoke({"said": ["one"]}, thread("t3"))
    graph.invoke({"said": ["two"]}, thread("t3"))
    history = list(graph.get_state_history(thread("t3")))
    assert [len(one.values.get("said", [])) for one in history] == [4, 3, 2, 2, 1, 0]
    assert len(list(graph.get_state_history(thread("t3"), limit=2))) == 2
    assert [one.metadata["step"] for one in graph.get_state_history(thread("t3"), filter={"source": "input"})] == [2, -1]
    early = next(one for one in history if len(one.values.get("said", [])) == 2)
    assert len(list(graph.get_state_history(thread("t3"), before=early.config))) < len(history) - 2
    assert graph.invoke({"said": ["other"]}, early.config)["said"] == ["one", "answer 1", "other", "answer 3"]
    assert graph.get_state(thread("t3")).values["said"][2] == "other"


def test_an_interrupt_waits_for_its_answer_in_another_process(client, memory_id):  # noqa: F811
    stopped = graph_of(client, memory_id, confirming=True).invoke({"said": ["go"]}, thread("t4"))
    assert stopped["__interrupt__"][0].value == "sure?"
    again = graph_of(client, memory_id, confirming=True)
    assert again.invoke(Command(resume="yes"), thread("t4"))["said"][-1] == "confirmed yes"


def test_asynchronous_graphs_and_deletion(client, memory_id):  # noqa: F811
    graph = graph_of(client, memory_id)

    async def work():
        await graph.ainvoke({"said": ["one"]}, thread("t5"))
        return [one async for one in graph.aget_state_history(thread("t5"))]

    assert len(asyncio.run(work())) == 3
    saver = MemorySaver(memory_id, actor_id="gil", client=client)
    saver.delete_thread("t5")
    assert graph.get_state(thread("t5")).values == {}
    assert list(client.list_events(memory_id, "gil", "t5")) == []
    with pytest.raises(ValueError, match="thread_id"):
        next(saver.list(None))


def test_nothing_long_term_is_made_of_checkpoints(client, memory_id):  # noqa: F811
    assert client.retrieve_memories(memory_id, "/facts/gil", "answer") == []
