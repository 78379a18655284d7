"""Decorators that hand a credential to a function, in the vendor's spelling (spec: Identity)."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from ..context import get_context
from .clients import data_client
from .consent import OnAuthUrl, TokenPoller, token_after_consent
from .workload_token import workload_token

#: For the agent itself; for a user who consents; for a user whose own token came with the request.
AuthFlow = Literal["M2M", "USER_FEDERATION", "ON_BEHALF_OF_TOKEN_EXCHANGE"]

T = TypeVar("T")


def requires_access_token(
    *,
    provider_name: str,
    into: str = "access_token",
    scopes: list[str],
    resources: list[str] | None = None,
    audiences: list[str] | None = None,
    on_auth_url: OnAuthUrl | None = None,
    auth_flow: AuthFlow,
    callback_url: str | None = None,
    force_authentication: bool = False,
    token_poller: TokenPoller | None = None,
    custom_state: str | None = None,
    custom_parameters: dict[str, str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """
    Hands the function an OAuth2 access token as the keyword argument `into`. Each call asks the platform, which keeps tokens and
    renews them. `on_auth_url` gets the address at which the user consents. `callback_url` is where his browser goes afterwards, by
    default that of the request.

    The function then raises `ConsentError` when the user did not consent, `asyncio.TimeoutError` when he took more than ten minutes,
    and the errors of boto3 (`botocore.exceptions.ClientError`).
    """

    async def get() -> str:
        context = get_context()
        wish = {
            "workloadIdentityToken": await workload_token(),
            "resourceCredentialProviderName": provider_name,
            "scopes": scopes,
            "oauth2Flow": auth_flow,
            "resources": resources,
            "audiences": audiences,
            "resourceOauth2ReturnUrl": callback_url or (context.oauth2_callback_url if context else None),
            "forceAuthentication": force_authentication or None,
            "customState": custom_state,
            "customParameters": custom_parameters,
        }
        request = {name: value for name, value in wish.items() if value is not None}
        ask = functools.partial(asyncio.to_thread, data_client().get_resource_oauth2_token)
        return await token_after_consent(ask, request, on_auth_url, token_poller)

    return _handing(get, into)


def requires_api_key(*, provider_name: str, into: str = "api_key") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """
    Hands the function an API key as the keyword argument `into`. Each call asks the platform, which has the newest key. The function
    then raises the errors of boto3 (`botocore.exceptions.ClientError`).
    """

    async def get() -> str:
        request = {"workloadIdentityToken": await workload_token(), "resourceCredentialProviderName": provider_name}
        answer = await asyncio.to_thread(data_client().get_resource_api_key, **request)
        return str(answer["apiKey"])

    return _handing(get, into)


def _handing(get: Callable[[], Awaitable[str]], into: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives functions, asynchronous or not, what `get` resolves with."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            kwargs[into] = await get()
            return await function(*args, **kwargs)

        @functools.wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            kwargs[into] = _run(get)
            return function(*args, **kwargs)

        return waiting if inspect.iscoroutinefunction(function) else blocking

    return decorator


def _run(get: Callable[[], Awaitable[T]]) -> T:
    """What `get` resolves with, for a caller who cannot await; in a thread of its own where a loop is running already."""

    async def wait() -> T:
        return await get()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(lambda: context.run(asyncio.run, wait())).result()
