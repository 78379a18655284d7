import os
import random
from types import SimpleNamespace

import pytest
from conftest import Serve

from agentplatform import AgentPlatformApp, copies, on_copy, reseed_if_copied


def become_copy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=name))


def test_a_copy_has_random_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_known", os.uname().nodename)
    monkeypatch.setattr(copies, "_hooks", [])
    called: list[str] = []
    on_copy(lambda: called.append("hook"))
    random.seed(7)
    state = random.getstate()
    assert reseed_if_copied() is False
    assert random.getstate() == state
    said = []
    for name in ["copy-one", "copy-two"]:
        random.setstate(state)
        become_copy(monkeypatch, name)
        assert reseed_if_copied() is True
        said.append(random.random())
        assert reseed_if_copied() is False
    assert called == ["hook", "hook"]
    random.setstate(state)
    assert len({*said, random.random()}) == 3


def test_the_app_asks_before_the_first_request(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_known", os.uname().nodename)
    monkeypatch.setattr(copies, "_hooks", [])
    called: list[str] = []
    on_copy(lambda: called.append("hook"))
    server = serve(AgentPlatformApp(lambda payload: payload))
    server.ping()
    assert called == []
    become_copy(monkeypatch, "copy")
    server.ping()
    server.ping()
    assert called == ["hook"]
