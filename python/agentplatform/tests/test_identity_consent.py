"""How a consent is waited for, with a clock that only sleeping puts on."""

import asyncio

import pytest

from agentplatform.identity import ConsentError, TokenPoller, consent

LINK = {"authorizationUrl": "https://platform.example/consent", "sessionUri": "urn:one"}


@pytest.fixture
def slept(monkeypatch):
    slept: list[float] = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(consent.asyncio, "sleep", sleep)
    monkeypatch.setattr(consent.time, "monotonic", lambda: sum(slept))
    return slept


def waits(answers, told, poller=None):
    """What comes of these answers; the last one is repeated."""
    asked = []

    async def ask(**request):
        asked.append(request)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    request = {"scopes": [], "forceAuthentication": True}
    return asked, consent.token_after_consent(ask, request, told.append, poller)


def test_asks_with_growing_pauses_tells_once_and_gives_up_after_ten_minutes(slept):
    told = []
    asked, waiting = waits([LINK], told)
    with pytest.raises(asyncio.TimeoutError, match="10 minutes"):
        asyncio.run(waiting)
    assert told == [LINK["authorizationUrl"]]
    assert asked[:2] == [{"scopes": [], "forceAuthentication": True}, {"scopes": [], "sessionUri": "urn:one"}]
    assert slept[:3] == [0.5, 0.75, 1.125]
    assert max(slept) == 5
    assert len(slept) < 130 and 590 < sum(slept) <= 600


def test_ends_with_the_token_a_denial_or_a_poller_of_its_own(slept):
    assert asyncio.run(waits([LINK, LINK, {"accessToken": "token"}], [])[1]) == "token"
    with pytest.raises(ConsentError, match="denied"):
        asyncio.run(waits([LINK, {"sessionStatus": "FAILED"}], [])[1])

    class Own(TokenPoller):
        async def poll_for_token(self):
            return "polled"

    assert asyncio.run(waits([LINK], [], Own())[1]) == "polled"


def test_begins_again_with_a_new_address_when_it_was_revoked(slept):
    told = []
    other = {**LINK, "authorizationUrl": "https://platform.example/again"}
    asyncio.run(waits([LINK, other, {"accessToken": "token"}], told)[1])
    assert told == [LINK["authorizationUrl"], other["authorizationUrl"]]
