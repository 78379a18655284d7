"""A LangGraph store keeps its items as long-term records, beside those that strategies extract."""

import asyncio

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from agentplatform.memory.langgraph import MemoryStore
from agentplatform.memory.langgraph.item_record import key_text, place_of

from remembering import client, memory_id, needs_platform, until  # noqa: F401

pytestmark = needs_platform


@pytest.fixture
def store(client, memory_id):  # noqa: F811
    return MemoryStore(memory_id, client=client)


def test_items_are_put_got_replaced_and_deleted(store):
    place = ("prefs", "jane")
    assert store.get(place, "theme") is None
    store.put(place, "theme", {"color": "dark", "sizes": [1, None, {"x": "\u00e9\0"}]})
    first = store.get(place, "theme")
    assert (first.namespace, first.key) == (place, "theme")
    assert first.value == {"color": "dark", "sizes": [1, None, {"x": "\u00e9\0"}]}
    store.put(place, "theme", {"color": "light"})
    second = store.get(place, "theme")
    assert second.value == {"color": "light"}
    assert second.created_at == first.created_at and second.updated_at > first.updated_at
    assert store.get(("prefs",), "theme") is None and store.get(("prefs", "jan"), "theme") is None
    store.delete(place, "theme")
    store.delete(place, "theme")
    assert store.get(place, "theme") is None


@pytest.mark.parametrize("label", ["a/b", "user@x", "J\u00f6rg", "with space", "*2f", "a:b", "-_"])
def test_any_label_and_key_comes_back_and_stays_in_its_place(store, label):
    store.put(("odd", label), f"k={label}?", {"text": label})
    [found] = store.search(("odd", label))
    assert (found.namespace, found.key, found.value) == (("odd", label), f"k={label}?", {"text": label})
    assert store.get(("odd", label), f"k={label}?").value == {"text": label}
    assert store.search(("odd", label[:1])) == []


def test_places_and_keys_are_written_as_the_typescript_sdk_does():
    assert place_of(("facts", "J\u00f6rg@x/y", "*2f")) == "/facts/J*c3*b6rg*40x*2fy/*2a2f"
    assert place_of(()) == "/"
    assert key_text("a=b \u00fc/1") == "a=3db =c3=bc/1"


def test_an_item_that_somebody_changed_by_hand_is_its_text(client, memory_id, store):  # noqa: F811
    store.put(("edited",), "k", {"a": 1})
    [record] = client.list_records(memory_id, "/edited")
    client.update_record(memory_id, record["memoryRecordId"], "by hand", metadata=record["metadata"])
    assert store.get(("edited",), "k").value == {"text": "by hand"}


def test_search_ranks_filters_and_pages(store):
    for number, text in enumerate(["The cat sleeps.", "A sailing boat in Oslo.", "Bread and butter."]):
        store.put(("notes", "jane"), f"n{number}", {"text": text, "number": number})
    store.put(("notes", "jane", "hidden"), "n9", {"text": "Another boat.", "number": 9}, index=False)
    best = store.search(("notes",), query="a boat", limit=1)
    assert [item.key for item in best] == ["n1"] and best[0].score > 0
    assert [item.key for item in store.search(("notes",), query="a boat", filter={"number": {"$gt": 1}})] in (["n2"], [])
    assert {item.key for item in store.search(("notes",), filter={"number": {"$gte": 1, "$lt": 9}})} == {"n1", "n2"}
    assert [item.key for item in store.search(("notes",), filter={"number": 9})] == ["n9"]
    assert store.search(("notes",), filter={"number": {"$gt": "text"}}) == []
    pages = [store.search(("notes",), limit=2, offset=offset) for offset in (0, 2, 4)]
    assert sorted(item.key for page in pages for item in page) == ["n0", "n1", "n2", "n9"]
    assert store.list_namespaces(prefix=("notes",)) == [("notes", "jane"), ("notes", "jane", "hidden")]
    assert store.list_namespaces(prefix=("*", "jane"), suffix=("hidden",)) == [("notes", "jane", "hidden")]
    assert store.list_namespaces(prefix=("notes",), max_depth=2) == [("notes", "jane")]
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(("notes",), filter={"number": {"$near": 1}})
    with pytest.raises(NotImplementedError):
        store.put(("notes",), "n", {"text": "x"}, index=["text"])
    with pytest.raises(Exception, match="16000"):
        store.put(("notes",), "long", {"text": "x" * 16001})


def test_a_graph_finds_what_a_strategy_extracted(client, memory_id, store):  # noqa: F811
    client.create_event(memory_id, "gil", "talk", [("I live in Oslo with two dogs.", "USER")])

    def node(state: MessagesState, *, store: BaseStore) -> MessagesState:
        known = store.search(("facts", "gil"), query=state["messages"][-1].content)
        return {"messages": [("ai", f"I know: {known[0].value['text']}" if known else "nothing")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    compiled = graph.compile(store=store)
    asked = {"messages": [("user", "Where does he live?")]}
    said = until(lambda: [m for m in compiled.invoke(asked)["messages"] if "I know" in m.content])
    assert said[0].content == "I know: I live in Oslo with two dogs."
    [record] = store.search(("facts", "gil"))
    assert store.get(("facts", "gil"), record.key).value == record.value
    assert store.get(("facts", "other"), record.key) is None
    store.delete(("facts", "gil"), record.key)
    assert store.get(("facts", "gil"), record.key) is None


def test_asynchronous_use(store):
    async def work():
        await store.aput(("later",), "a", {"text": "one"})
        return await store.asearch(("later",)), await store.aget(("later",), "a"), await store.alist_namespaces(prefix=("later",))

    found, item, namespaces = asyncio.run(work())
    assert found[0].value == item.value == {"text": "one"} and namespaces == [("later",)]
