"""How a user's consent is waited for."""

import asyncio
import inspect
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

_log = logging.getLogger("agentplatform.identity")

OnAuthUrl = Callable[[str], Any]

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0
#: As long as a link counts.
PATIENCE_SECONDS = 600.0


class ConsentError(Exception):
    """The user did not consent: he denied it, or it failed at the provider."""


class TokenPoller(ABC):
    """Waits for a token in its own way, in the place of asking again and again."""

    @abstractmethod
    async def poll_for_token(self) -> str:
        """The token, once it is there."""


async def token_after_consent(
    ask: Callable[..., Awaitable[dict[str, Any]]],
    request: dict[str, Any],
    on_auth_url: OnAuthUrl | None,
    poller: TokenPoller | None,
) -> str:
    """Asks until the token is there, with growing pauses. Raises ConsentError, asyncio.TimeoutError, and what `ask` raises."""
    told: str | None = None
    pause = FIRST_PAUSE_SECONDS
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = await ask(**request)
        if answer.get("accessToken"):
            return str(answer["accessToken"])
        # A consent that was revoked has the status FAILED as well, with the address of a new one.
        url = answer.get("authorizationUrl")
        if not url:
            raise ConsentError("The user denied it, or the consent failed at the provider. Ask again for a new link.")
        if url != told:
            await _tell(on_auth_url or _print_url, url)
        told = url
        if poller is not None:
            return await poller.poll_for_token()
        if time.monotonic() + pause > deadline:
            raise asyncio.TimeoutError("The user did not consent within 10 minutes.")
        # Only the first request begins anew.
        request = {name: value for name, value in request.items() if name != "forceAuthentication"}
        if "sessionUri" in answer:
            request["sessionUri"] = answer["sessionUri"]
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


async def _tell(on_auth_url: OnAuthUrl, url: str) -> None:
    told = on_auth_url(url)
    if inspect.isawaitable(told):
        await told


def _print_url(url: str) -> None:
    _log.warning("Open this address to give the agent access: %s", url)
