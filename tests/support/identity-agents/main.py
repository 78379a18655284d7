"""An agent that gets its credentials by the decorators of the Python SDK, and gives them no configuration. `index.mjs` is its twin."""

import asyncio

from agentplatform import AgentPlatformApp
from agentplatform.identity import requires_access_token, requires_api_key

app = AgentPlatformApp()


@requires_api_key(provider_name="search")
def key_of_search(*, api_key):
    return api_key


@requires_access_token(provider_name="orders", scopes=["read"], auth_flow="M2M")
def own_token(*, access_token):
    return access_token


@requires_access_token(provider_name="orders", scopes=["read"], auth_flow="ON_BEHALF_OF_TOKEN_EXCHANGE")
async def exchanged_token(*, access_token):
    return access_token


async def federation(user):
    """Says where to consent as soon as that is known, and then the token."""
    urls = asyncio.Queue()

    @requires_access_token(
        provider_name="orders",
        scopes=["openid", "offline_access", "read"],
        auth_flow="USER_FEDERATION",
        on_auth_url=urls.put,
        custom_parameters={"login_hint": user, "prompt": "login"},
    )
    async def token(*, access_token):
        return access_token

    waiting = asyncio.ensure_future(token())
    told = asyncio.ensure_future(urls.get())
    await asyncio.wait([waiting, told], return_when=asyncio.FIRST_COMPLETED)
    if told.done():
        yield {"url": told.result()}
    told.cancel()
    yield {"token": await waiting}


@app.entrypoint
async def invoke(payload, context):
    match payload["do"]:
        case "key":
            return {"key": key_of_search()}
        case "own":
            return {"token": own_token()}
        case "exchange":
            return {"token": await exchanged_token(), "headers": list(context.request_headers)}
        case _:
            return federation(payload["user"])


app.run()
