"""Who may only create events of a memory plants a checkpoint; the agent that reads it must not do what it says."""

import base64
import collections
import dataclasses
import enum
import os

import ormsgpack
import pydantic
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentplatform.memory.langgraph import MemorySaver


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


class Colour(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str
    secret: pydantic.SecretStr


Pair = collections.namedtuple("Pair", "left right")


class Planted:
    """A memory whose one event somebody else wrote."""

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint

    def list_events(self, *_args, metadata, **_options):
        if metadata["langgraph.kind"] != "checkpoint":
            return iter(())
        nothing = ["msgpack", base64.b64encode(ormsgpack.packb({})).decode()]
        kept = {"namespace": "", "id": "1", "parent": None, "checkpoint": self.checkpoint, "metadata": nothing}
        return iter([{"payload": [{"blob": kept}]}])


def call(code, module, name, given, *more):
    return ormsgpack.Ext(code, ormsgpack.packb((module, name, given, *more)))


def attacks(mark):
    line = f"touch {mark}"
    return {
        "a function": call(0, "os", "system", line),
        "one with several arguments": call(1, "os", "open", [str(mark), os.O_CREAT | os.O_WRONLY]),
        "one by name": call(2, "subprocess", "run", {"args": line, "shell": True}),
        "a class": call(1, "subprocess", "Popen", [["touch", str(mark)]]),
        "a model that is none": call(5, "subprocess", "Popen", {"args": ["touch", str(mark)]}),
        "an old one": call(4, "subprocess", "Popen", {"args": ["touch", str(mark)]}),
        "code": call(0, "builtins", "exec", f"open({str(mark)!r}, 'w')"),
        "a module that is not there yet": call(0, "antigravity", "webbrowser", line),
        "one within a value": call(2, __name__, "Point", {"x": 1, "inner": call(0, "os", "system", line)}),
        "one within a change": ormsgpack.Ext(7, ormsgpack.packb([call(0, "os", "system", line)])),
        "no name": ormsgpack.Ext(0, ormsgpack.packb(1)),
        "a name that is none": call(0, 1, None, line),
    }


def tuple_of(blob, **options):
    saver = MemorySaver("memory-0123456789", client=Planted(blob), **options)
    return saver.get_tuple({"configurable": {"thread_id": "t"}})


def packed(value):
    return ["msgpack", base64.b64encode(ormsgpack.packb({"channel_values": {"x": value}})).decode()]


@pytest.mark.parametrize("name", list(attacks("")))
def test_a_planted_checkpoint_calls_nothing(name, tmp_path):
    mark = tmp_path / "done"
    with pytest.raises(ValueError, match="no type of a graph's state"):
        tuple_of(packed(attacks(mark)[name]))
    assert not mark.exists()


def test_the_way_is_open_where_nobody_looks(tmp_path):
    done = []
    for name in ("a function", "one by name", "code", "one within a value"):
        mark = tmp_path / name.replace(" ", "-")
        tuple_of(packed(attacks(mark)[name]), serde=JsonPlusSerializer())
        done.append(mark.exists())
    assert done == [True] * 4


@pytest.mark.parametrize("kind", ["pickle", "yaml", ""])
def test_no_other_format_is_read(kind):
    with pytest.raises(NotImplementedError):
        tuple_of([kind, base64.b64encode(b"cos\nsystem\n(S'true'\ntR.").decode()])


def test_json_names_no_secret_of_the_environment(monkeypatch):
    monkeypatch.setenv("PLANTED_SECRET", "leaked-value")
    wish = b'{"channel_values": {"x": {"lc": 1, "type": "secret", "id": ["PLANTED_SECRET"]}}}'
    assert os.environ["PLANTED_SECRET"] == "leaked-value"
    found = tuple_of(["json", base64.b64encode(wish).decode()])
    assert "leaked-value" not in repr(found)


def test_values_of_a_graph_come_back_as_they_were():
    kept = {"p": Point(1, Point(2)), "c": Colour.RED, "m": Model(name="a", secret="b"), "t": Pair(1, {2}), "s": {1, 2}}
    saver = MemorySaver("memory-0123456789", client=Planted(None))
    kind, data = saver.serde.dumps_typed(kept)
    assert saver.serde.loads_typed((kind, data)) == kept
